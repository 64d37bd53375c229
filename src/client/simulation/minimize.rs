//! Makes the schedule of a test that fails small, by delta debugging (Zeller, Hildebrandt: Simplifying and isolating
//! failure-inducing input, TSE 2002).
//!
//! ```text
//! none at all?  without each half?  without each quarter?  …  without each one?      begun anew after what went well
//! ```
//! What is left out is the ordinary, so a part of a schedule is a schedule; after each run that fails the decisions that
//! it came to are gone on with, which leaves out those that it never came to. Cost: about n runs for n decisions, more
//! where few can be left out; bounded.
#![forbid(unsafe_code)]

use super::check::{Failure, Outcome, attempt};
use super::{Decisions, Simulation};
use std::fmt;
use std::time::{Duration, Instant};

/// Most runs of a search.
const RUNS: usize = 1000;

/// The longest that a search goes on.
const TIME: Duration = Duration::from_secs(20);

/// What two faults have in common that are the same but for their numbers.
fn kind(fault: &str) -> &str {
    fault.split(|c: char| c.is_ascii_digit() || c == '\n').next().unwrap_or_default()
}

/// Makes a failure's decisions fewer.
pub(super) fn minimize<E: fmt::Display>(failure: &mut Failure, test: &mut impl FnMut(Simulation) -> Result<(), E>) {
    let end = Instant::now() + TIME;
    let seed = failure.seed;
    search(failure, |runs| runs < RUNS && Instant::now() < end, &mut |decisions| attempt(seed, Some(decisions), test));
}

fn search(failure: &mut Failure, go_on: impl Fn(usize) -> bool, run: &mut dyn FnMut(&Decisions) -> Outcome) {
    let mut chunk = failure.decisions.0.len();
    let mut left_out = false;
    while chunk > 0 {
        let mut start = 0;
        while start < failure.decisions.0.len() {
            if !go_on(failure.runs) {
                return;
            }
            failure.runs += 1;
            let all = &failure.decisions.0;
            let rest = [&all[..start], &all[(start + chunk).min(all.len())..]].concat();
            let outcome = run(&Decisions(rest));
            match outcome.fault.filter(|fault| kind(fault) == kind(&failure.fault)) {
                // What a run came to is no more than what it was told.
                Some(fault) if outcome.decisions.0.len() < all.len() => {
                    failure.decisions = outcome.decisions;
                    failure.small_fault = fault;
                    left_out = true;
                }
                _ => start += chunk,
            }
        }
        // Once one can be left out, others may be that could not be before.
        chunk = if chunk == 1 && left_out { 1 } else { chunk / 2 };
        left_out = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{Choice, Decision, Place};

    fn decisions(steps: impl IntoIterator<Item = u64>) -> Decisions {
        let one = |step| Decision { engine: 0, place: Place::Step { worker: 0, step }, choice: Choice::Rests };
        Decisions(steps.into_iter().map(one).collect())
    }

    /// Searches among `count` decisions, of which `fails` says whether some are enough; all that are told are come to.
    fn found(count: u64, most: usize, fails: impl Fn(&[u64]) -> bool) -> Failure {
        let mut failure = Failure {
            seed: 0,
            fault: "it broke at 7".to_string(),
            trace: 0,
            decided: count as usize,
            decisions: decisions(0..count),
            small_fault: String::new(),
            runs: 0,
            repeats: true,
        };
        search(&mut failure, |runs| runs < most, &mut |told| {
            let steps = told.0.iter().map(|decision| match decision.place {
                Place::Step { step, .. } => step,
                _ => unreachable!("none other was made"),
            });
            let steps: Vec<_> = steps.collect();
            let fault = fails(&steps).then(|| format!("it broke at {}", steps.len()));
            Outcome { fault, decisions: told.clone(), trace: 0 }
        });
        failure
    }

    #[test]
    fn what_cannot_be_left_out_is_left() {
        for wanted in [vec![], vec![0], vec![99], vec![3, 50, 51, 98], (0..100).collect()] {
            let failure = found(100, usize::MAX, |steps| wanted.iter().all(|one| steps.contains(one)));
            assert_eq!(failure.decisions, decisions(wanted.clone()));
            assert!(failure.runs <= 600, "{} runs for {wanted:?}", failure.runs);
        }
        // Not one by one: either both or none.
        let failure = found(100, usize::MAX, |steps| steps.contains(&10) == steps.contains(&60));
        assert_eq!(failure.decisions, decisions([]));
        // The first can be left out only after the last was.
        let failure = found(3, usize::MAX, |steps| steps.contains(&1) && (steps.contains(&0) || !steps.contains(&2)));
        assert_eq!(failure.decisions, decisions([1]));
    }

    #[test]
    fn other_faults_are_not_it_and_the_search_ends() {
        assert_eq!(kind("assertion 1 of 2"), "assertion ");
        assert_eq!(kind("one\ntwo"), "one");
        let failure = found(100, 20, |steps| steps.contains(&1) && steps.len() > 90);
        assert_eq!(failure.runs, 20);
        assert!(failure.decisions.0.len() > 90);
    }
}
