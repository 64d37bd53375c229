//! Runs of one test under many seeds; of the first that fails, a schedule as small as can be found.
//!
//! ```text
//! seeds ─▶ run, decisions kept ─▶ fails ─▶ once more, the same? ─▶ minimize ─▶ report: fault, seed, decisions
//! ```
//! Next stop: `minimize`.
#![forbid(unsafe_code)]

use super::{Decisions, Simulation, minimize};
use crate::client::Error;
use crate::runtime::Tape;
use crate::sync::Mutex;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A seed under which a test failed. As text: a report with the fault, the schedule, and how to run either again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The text of the panic, or of the error, that the seed gave.
    pub fault: String,
    /// A hash of what happened before that, as [`super::Simulated::trace`]; of all engines, if the test started several.
    pub trace: u64,
    /// How many decisions the seed's run took.
    pub decided: usize,
    /// The decisions of the smallest schedule that was found to fail as well: no single one can be left out, unless the
    /// search was given up before that was known.
    pub decisions: Decisions,
    /// What the smallest schedule gave.
    pub small_fault: String,
    /// How many runs the search took.
    pub runs: usize,
    /// Whether the seed failed again, in the same way. If not, the test depends on more than its simulation (a clock,
    /// chance, the order of a hash map, other threads), and the decisions are those of the seed, not made smaller.
    pub repeats: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, fault, decided, decisions, small_fault, runs, .. } = self;
        writeln!(f, "seed {seed} fails: {fault}")?;
        if !self.repeats {
            return write!(
                f,
                "It does not fail again in the same way: the test depends on more than its simulation, as a clock, \
                 chance, the order of a hash map, or other threads. Take those away first."
            );
        }
        let left = decisions.0.len();
        writeln!(f, "Of the {decided} decisions of its schedule {left} are enough, found in {runs} runs:")?;
        decisions.0.iter().try_for_each(|decision| writeln!(f, "    {decision}"))?;
        writeln!(f, "and else the ordinary: workers step in turn, all arrives at once, steps are not cut short.")?;
        if small_fault != fault {
            writeln!(f, "They give: {small_fault}")?;
        }
        write!(f, "Run the seed again by `check([{seed}], …)`, these alone by `replay({seed}, \"these lines\", …)`.")
    }
}

/// What came of one run.
pub(super) struct Outcome {
    pub(super) fault: Option<String>,
    pub(super) decisions: Decisions,
    pub(super) trace: u64,
}

/// Runs a test once, by the seed or by decisions.
pub(super) fn attempt<E: fmt::Display>(
    seed: u64,
    decisions: Option<&Decisions>,
    test: &mut impl FnMut(Simulation) -> Result<(), E>,
) -> Outcome {
    let tape = Arc::new(Mutex::new(Tape::default()));
    let simulation = Simulation { tape: Some(tape.clone()), ..Simulation::new(seed) };
    let simulation = decisions.cloned().into_iter().fold(simulation, Simulation::decisions);
    let fault = match catch_unwind(AssertUnwindSafe(|| test(simulation))) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(payload) => Some(panic_text(&*payload)),
    };
    let mut tape = tape.lock();
    let decisions = std::mem::take(&mut tape.decisions);
    Outcome { fault, decisions, trace: tape.trace() }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("a panic with a payload that is no text").to_string()
}

/// Runs a test in simulation, once for each seed, until one fails: whatever order, delays, yields, merges and clock a run
/// on threads may have, some seed has them. The test configures and starts the [`Simulation`] that it is given, and panics
/// or gives an error where a service is not as it should be. It is a function of the simulation and of its seed.
///
/// A service's dataflow against an oracle of one's own:
///
/// ```
/// use kpg::simulation;
/// use std::{collections::BTreeMap, time::Duration};
///
/// simulation::check(0..20, |simulation| {
///     let engine = simulation.workers(3).start()?;
///     // The service: how many orders each customer has open.
///     let (_query, (mut orders, mut counts)) = engine.install("open orders", |scope| {
///         let (input, orders) = scope.input::<(u32, u64)>();
///         (input, orders.map(|(customer, _)| customer).count().subscribe())
///     })?;
///     // The oracle, fed alike, and what has been heard of the service, summed up.
///     let (mut oracle, mut heard) = (BTreeMap::new(), BTreeMap::new());
///     for round in 0..10 {
///         orders.insert((round as u32 % 4, round))?;
///         *oracle.entry(round as u32 % 4).or_insert(0) += 1;
///         orders.advance_to(round + 1)?;
///         for ((customer, count), _time, diff) in counts.wait_past(&round, Duration::from_secs(1))? {
///             if diff > 0 { heard.insert(customer, count) } else { None };
///         }
///         assert_eq!(heard, oracle, "round {round}");
///     }
///     Ok(())
/// });
/// ```
///
/// Cost: a run for each seed. If one fails, up to a thousand more, for 20 seconds at most, to find a schedule with few
/// decisions that fails as well: with a fault whose text is the same up to its first digit. Each that fails by a panic is
/// printed by the process's panic hook, as any panic; the report comes last.
///
/// # Panics
/// If a seed fails, with the report that [`Failure`] is as text.
pub fn check(seeds: impl IntoIterator<Item = u64>, test: impl FnMut(Simulation) -> Result<(), Error>) {
    if let Some(failure) = find(seeds, test) {
        panic!("{failure}");
    }
}

/// As [`check`]; gives what it found, and takes tests with errors of any type. Cost: as there.
pub fn find<E: fmt::Display>(
    seeds: impl IntoIterator<Item = u64>,
    mut test: impl FnMut(Simulation) -> Result<(), E>,
) -> Option<Failure> {
    for seed in seeds {
        let first = attempt(seed, None, &mut test);
        let Some(fault) = first.fault else { continue };
        let again = attempt(seed, None, &mut test);
        let repeats = again.fault.as_ref() == Some(&fault) && again.trace == first.trace;
        let decided = first.decisions.0.len();
        let mut failure = Failure {
            seed,
            small_fault: fault.clone(),
            fault,
            trace: first.trace,
            decided,
            decisions: first.decisions,
            runs: 0,
            repeats,
        };
        if repeats {
            minimize::minimize(&mut failure, &mut test);
        }
        return Some(failure);
    }
    None
}

/// Runs a test once, by the lines of a report: of a seed that failed, so that it is a test of its own from then on.
///
/// # Panics
/// If the test fails; if a line is no decision.
pub fn replay(seed: u64, decisions: &str, test: impl FnOnce(Simulation) -> Result<(), Error>) {
    let decisions = decisions.parse::<Decisions>().unwrap_or_else(|error| panic!("{error}"));
    if let Err(error) = test(Simulation::new(seed).decisions(decisions)) {
        panic!("{error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn counts(simulation: Simulation) -> Result<(), Error> {
        // Two engines, one after the other: each has decisions of its own.
        let simulation = simulation.clone().workers(1 + simulation.seed() as usize % 4);
        counts_by(simulation.clone())?;
        counts_by(simulation.workers(5))
    }

    fn counts_by(simulation: Simulation) -> Result<(), Error> {
        let seed = simulation.seed();
        let engine = simulation.start()?;
        let (_query, (mut input, mut counts)) = engine.install("counts", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.map(|n| n % 7).count().subscribe())
        })?;
        for round in 0..20 {
            (0..20).try_for_each(|n| input.insert(round * n + seed))?;
            input.advance_to(round + 1)?;
            engine.step();
        }
        counts.wait_past(&19, Duration::from_secs(1)).map(drop)
    }

    #[test]
    fn what_does_not_repeat_is_said_to() {
        let mut runs = 0;
        let failure = find([7], |_| {
            runs += 1;
            if runs == 1 { Err("once") } else { Ok(()) }
        });
        let failure = failure.expect("it failed once");
        assert!(!failure.repeats && failure.runs == 0 && failure.to_string().contains("does not fail again"));
        // In the same way, but after other events.
        let mut workers = 0;
        let failure = find([7], |simulation| {
            workers += 1;
            counts_by(simulation.workers(workers)).map_err(|error| error.to_string())?;
            Err("always".to_string())
        });
        assert!(!failure.expect("it always fails").repeats);
    }

    /// All kinds of decisions are made, and the list of a run is that run, event by event, and makes that list.
    #[test]
    fn the_list_of_a_run_is_the_run() {
        let mut text = String::new();
        for seed in 0..24 {
            let run = attempt(seed, None, &mut counts);
            assert_eq!(run.fault, None);
            let again = attempt(seed, Some(&run.decisions), &mut counts);
            assert_eq!((again.fault, again.decisions == run.decisions, again.trace), (None, true, run.trace));
            let ordinary = attempt(seed, Some(&Decisions::default()), &mut counts);
            assert!(ordinary.decisions.0.is_empty() && ordinary.trace != run.trace);
            text += &run.decisions.to_string();
        }
        for kind in [
            "merges lazily",
            "merges eagerly",
            "workers that step: ",
            "yields after 1 updates",
            "microseconds",
            "takes first messages",
            "takes first progress",
            "takes only 0 messages",
            "takes only 1 progress",
            "does not merge",
        ] {
            assert!(text.contains(kind), "no seed {kind}");
        }
    }
}
