//! A soak: for so many seconds edges come and go, queries too, and what they answer is right and memory flat.
//!
//! ```text
//! round t:  edges and arguments at t, inputs to t + 1 ──► handles dropped, queries retired, queries installed
//!                ──► changes taken, but by those that lag ──► at some rounds: compared, and a snapshot asked for
//! ```
//!
//! What a query does is drawn when it is installed: what it is asked, how long it stays, whether its input or its
//! subscription is dropped before it is retired, whether it lags. The graph's size does not change, and the number of queries has
//! a bound, so what is there at a time varies about a mean; what grows is a leak. One seed, one story; only how many rounds
//! fit in the time differs, and what the reader's snapshots see. Next stop: `soak/curve`.

pub mod curve;
mod reader;

use crate::changes::{Changes, Edge, Random};
use crate::plain::Plain;
use crate::queries::{self, Edges, Kind};
use crate::report::{self, Progress};
use crate::watch::{Accumulated, PATIENCE};
use curve::Sample;
use kpg::client::Metrics;
use kpg::prelude::*;
use reader::{Content, Reader};
use std::collections::VecDeque;
use std::io::Write;
use std::time::{Duration, Instant};

/// What to run.
pub struct Plan<'a> {
    /// Workers.
    pub workers: usize,
    /// Whether each has a core of its own.
    pub pinned: bool,
    /// All edges, distinct.
    pub edges: &'a [Edge],
    /// How many nodes there are; edges are between numbers below.
    pub nodes: usize,
    /// How long, after the graph is loaded.
    pub seconds: u64,
    /// Seed of all that is random.
    pub seed: u64,
    /// What is to go wrong, so that it is seen that it would be noticed.
    pub fault: Option<Fault>,
}

/// Faults that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Queries are never retired, and their handles kept.
    Queries,
    /// Snapshots are never let go.
    Snapshots,
    /// Plain Rust does not know of the last edge.
    Answers,
}

impl Fault {
    /// The variable that plants one.
    pub const VARIABLE: &str = "KPG_SOAK_FAULT";

    /// The fault of that name.
    ///
    /// # Errors
    /// A sentence that lists them.
    pub fn named(name: &str) -> Result<Fault, String> {
        match name {
            "queries" => Ok(Fault::Queries),
            "snapshots" => Ok(Fault::Snapshots),
            "answers" => Ok(Fault::Answers),
            _ => Err(format!("{} is queries, snapshots or answers, or not set; not `{name}`.", Fault::VARIABLE)),
        }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Memory over time.
    pub samples: Vec<Sample>,
    /// A kind of query, how many came, how many results were compared.
    pub kinds: Vec<(Kind, u64, u64)>,
    /// Rounds.
    pub rounds: u64,
    /// Updates put in.
    pub updates: u64,
    /// Snapshots taken.
    pub snapshots: u64,
    /// Live bytes before the first query came, and after the last was retired.
    pub graph_alone: (u64, u64),
}

/// Rounds in which the edges arrive.
const LOAD_ROUNDS: u64 = 40;

/// So many samples in all, but no more than ten a second.
const SAMPLES: u32 = 600;

/// Queries at a time.
const QUERIES: usize = 8;

/// A query comes in one of so many rounds, if there is room.
const INSTALLS_EVERY: usize = 6;

/// Rounds that a query stays, at most.
const STAYS: usize = 120;

/// Rounds that a query lags, at most.
const LAGS: usize = 40;

/// Arguments of a query at a time, at most.
const ARGUMENTS: usize = 4;

/// One of so many rounds is compared with plain Rust.
const CHECKS_EVERY: usize = 10;

/// Steps of [`Changes`] in a round, at most.
const STEPS: usize = 8;

/// All kinds. The last one's queries come one after the other, so that one is always there: it takes about as much memory as
/// all others, and if it were there or not by chance, so would be the verdict.
const KINDS: [Kind; 6] =
    [Kind::OutDegrees, Kind::TwoHop, Kind::TwoHopUsers, Kind::Needs, Kind::NeededBy, Kind::Components];

/// How a query falls behind for a while.
#[derive(Clone, Copy, PartialEq)]
enum Lag {
    /// Its changes are not taken.
    Taking,
    /// Its input is not moved along: it keeps history of the graph.
    Input,
}

/// A query that is there.
struct Asked {
    kind: Kind,
    query: Query,
    input: Option<Input<u64, u32>>,
    changes: Option<Subscription<u64, (u32, u32)>>,
    result: Accumulated,
    arguments: VecDeque<u32>,
    /// Rounds in which the input is dropped, the subscription is, and all ends.
    ends: [u64; 3],
    /// Until which round, and how.
    lag: Option<(u64, Lag)>,
}

struct Soaking<'a> {
    plan: &'a Plan<'a>,
    engine: Engine,
    input: Input<u64, Edge>,
    edges: Edges,
    changes: Changes,
    random: Random,
    asked: Vec<Asked>,
    /// Handles that outlive their queries, and until which round.
    outliving: Vec<(u64, Subscription<u64, (u32, u32)>)>,
    /// Where a planted leak puts what should be retired.
    leaked: Vec<Asked>,
    outcome: Outcome,
}

/// Runs the plan; each sample is written to `file` when it is taken.
///
/// # Errors
/// A sentence: what the engine refused, the first result that differs from plain Rust's, a file that cannot be written.
/// Whether memory stayed flat is for [`curve::verdict`] to say.
pub fn run(plan: &Plan<'_>, mut file: Option<&mut dyn Write>, progress: &mut Progress) -> Result<Outcome, String> {
    let mut soaking = Soaking::start(plan).map_err(|error| error.to_string())?;
    let loaded = soaking.load().map_err(|error| format!("while the graph is loaded: {error}"))?;
    let reader = Reader::start(&soaking.edges, plan.nodes, plan.seed ^ 1, plan.fault);
    let duration = Duration::from_secs(plan.seconds);
    let every = (duration / SAMPLES).max(Duration::from_millis(100));
    let (started, mut next) = (Instant::now(), Duration::ZERO);
    let mut write = |line: &str| {
        let written = file.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()).and_then(|()| file.flush()));
        written.map_err(|error| format!("the curve cannot be written: {error}."))
    };
    write(curve::HEAD)?;
    let mut result = Ok(());
    for time in loaded.. {
        let elapsed = started.elapsed();
        if elapsed >= next {
            let sample = soaking.sample(elapsed)?;
            write(&sample.line())?;
            soaking.outcome.samples.push(sample);
            progress.tell(elapsed >= duration, || sample.progress(plan.seconds));
            // From now on, not from when it was due: a long round is not made up for by samples that are all the same.
            next = (elapsed + every).min(duration);
        }
        if elapsed >= duration {
            break;
        }
        result = soaking.round(time, &reader).map_err(|error| format!("round {time}: {error}"));
        if result.is_err() {
            break;
        }
    }
    // Its word first: if it is gone, the round only says that.
    soaking.outcome.snapshots = reader.stop()?;
    result?;
    soaking.finish()
}

impl<'a> Soaking<'a> {
    fn start(plan: &'a Plan<'a>) -> Result<Self, kpg::Error> {
        let engine = Engine::start(Config::default().workers(plan.workers).pinned(plan.pinned))?;
        let (_graph, input, edges) = queries::graph(&engine)?;
        let outcome = Outcome { kinds: KINDS.map(|kind| (kind, 0, 0)).to_vec(), ..Outcome::default() };
        Ok(Soaking {
            plan,
            engine,
            input,
            edges,
            // All edges of a hub going at once is what the example's other way to run is for: no round of rounds is a turn.
            changes: Changes::new(0, plan.seed),
            random: Random::new(plan.seed ^ 2),
            asked: Vec::new(),
            outliving: Vec::new(),
            leaked: Vec::new(),
            outcome,
        })
    }

    /// Puts all edges in, and waits until they are there: the round that comes next.
    fn load(&mut self) -> Result<u64, kpg::Error> {
        let edges = self.plan.edges;
        let rounds = LOAD_ROUNDS.min(edges.len() as u64);
        for time in 0..rounds {
            let at = |time| (edges.len() as u64 * time / rounds) as usize;
            let round = self.changes.arrive(&edges[at(time)..at(time + 1)]);
            round.added.into_iter().try_for_each(|edge| self.input.insert(edge))?;
            self.input.advance_to(time + 1)?;
        }
        self.edges.by_source.wait_snapshot(&(rounds - 1), PATIENCE)?;
        Ok(rounds)
    }

    fn sample(&self, elapsed: Duration) -> Result<Sample, String> {
        let metrics = self.engine.metrics();
        Ok(Sample {
            seconds: elapsed.as_secs_f64(),
            rounds: self.outcome.rounds,
            installed: self.outcome.kinds.iter().map(|&(_, came, _)| came).sum(),
            live: metrics.queries.len() as u64 - 1,
            live_bytes: live_bytes(&metrics),
            mapped_bytes: metrics.arenas.iter().map(|arena| arena.reserved_bytes as u64).sum(),
            resident_bytes: curve::resident_bytes()?,
        })
    }

    fn round(&mut self, time: u64, reader: &Reader) -> Result<(), String> {
        let sentence = |error: kpg::Error| error.to_string();
        self.send(time).map_err(sentence)?;
        self.end(time)?;
        let last = KINDS.len() - 1;
        if self.asked.iter().all(|asked| asked.kind != KINDS[last]) {
            self.install(last, time).map_err(sentence)?;
        } else if self.asked.len() < QUERIES && self.one_in(INSTALLS_EVERY) {
            let index = self.random.below(last);
            self.install(index, time).map_err(sentence)?;
        }
        self.take(time)?;
        if self.one_in(CHECKS_EVERY) {
            self.check()?;
            reader.ask(time, Content::of(self.changes.present.iter().copied()))?;
        }
        self.outcome.rounds += 1;
        Ok(())
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    /// A node of a random edge: sources and targets, so that those with many of either come often.
    fn node(&mut self) -> u32 {
        let (source, target) = self.changes.present[self.random.below(self.changes.present.len())];
        if self.one_in(4) { target } else { source }
    }

    /// Puts in what happens at `time`, and moves the inputs past it.
    fn send(&mut self, time: u64) -> Result<(), kpg::Error> {
        for _ in 0..=self.random.below(STEPS) {
            let round = self.changes.next(0, 0);
            self.outcome.updates += (round.added.len() + round.removed.len()) as u64;
            round.added.into_iter().try_for_each(|edge| self.input.insert(edge))?;
            round.removed.into_iter().try_for_each(|edge| self.input.remove(edge))?;
        }
        self.input.advance_to(time + 1)?;
        for index in 0..self.asked.len() {
            let (node, changes) = (self.node(), self.one_in(5));
            let Asked { input: Some(input), arguments, lag, .. } = &mut self.asked[index] else { continue };
            if changes {
                if arguments.len() == ARGUMENTS || arguments.contains(&node) {
                    input.remove(arguments.pop_front().expect("there is one at least"))?;
                } else {
                    input.insert(node)?;
                    arguments.push_back(node);
                }
                self.outcome.updates += 1;
            }
            if !lag.is_some_and(|(_, how)| how == Lag::Input) {
                input.advance_to(time + 1)?;
            }
        }
        Ok(())
    }

    /// Drops handles and retires queries whose round has come.
    fn end(&mut self, time: u64) -> Result<(), String> {
        for asked in &mut self.asked {
            let [input, changes, _] = asked.ends;
            if input == time {
                asked.input = None;
            }
            if changes == time {
                asked.changes = None;
            }
        }
        let (done, asked) = std::mem::take(&mut self.asked).into_iter().partition(|asked| asked.ends[2] <= time);
        self.asked = asked;
        if self.plan.fault == Some(Fault::Queries) {
            self.leaked.extend::<Vec<_>>(done);
            return Ok(());
        }
        for Asked { query, changes, kind, .. } in done {
            query.retire().map_err(|error| format!("{} is not retired: {error}", kind.name()))?;
            if let Some(changes) = changes {
                self.outliving.push((time + self.random.below(LAGS) as u64, changes));
            }
        }
        for (_, changes) in self.outliving.iter_mut().filter(|(until, _)| *until <= time) {
            // What was complete and not taken comes first, once.
            match changes.poll().and_then(|_| changes.poll()) {
                Err(kpg::Error::Retired { .. }) => {}
                other => return Err(format!("a handle of a retired query gives {other:?}")),
            }
        }
        self.outliving.retain(|(until, _)| *until > time);
        Ok(())
    }

    fn install(&mut self, index: usize, time: u64) -> Result<(), kpg::Error> {
        let kind = KINDS[index];
        let (query, (mut input, changes)) = kind.install(&self.engine, &self.edges)?;
        let mut arguments = VecDeque::new();
        if let Some(input) = &mut input {
            for _ in 0..=self.random.below(ARGUMENTS) {
                let node = self.node();
                if !arguments.contains(&node) {
                    input.insert(node)?;
                    arguments.push_back(node);
                }
            }
            input.advance_to(time + 1)?;
        }
        let end = time + 1 + self.random.below(STAYS) as u64;
        let mut perhaps = || if self.one_in(3) { time + 1 + self.random.below(STAYS) as u64 } else { u64::MAX };
        let ends = [perhaps(), perhaps(), end];
        let (changes, result) = (Some(changes), Accumulated::default());
        self.asked.push(Asked { kind, query, input, changes, result, arguments, ends, lag: None });
        self.outcome.kinds[index].1 += 1;
        Ok(())
    }

    /// Takes the changes of all that do not lag; some begin to, some stop.
    fn take(&mut self, time: u64) -> Result<(), String> {
        for index in 0..self.asked.len() {
            let begins = self.one_in(30).then(|| {
                let how = if self.one_in(2) { Lag::Taking } else { Lag::Input };
                (time + 1 + self.random.below(LAGS) as u64, how)
            });
            let asked = &mut self.asked[index];
            match asked.lag {
                Some((until, _)) if until <= time => {
                    if let Some(input) = &mut asked.input {
                        input.advance_to(time + 1).map_err(|error| error.to_string())?;
                    }
                    asked.lag = None;
                }
                Some(_) => {}
                None => asked.lag = begins,
            }
            if asked.lag.is_none() {
                asked.take(time)?;
            }
        }
        Ok(())
    }

    /// Compares what the changes of those that do not lag add up to with plain Rust.
    fn check(&mut self) -> Result<(), String> {
        let known = self.changes.present.len() - usize::from(self.plan.fault == Some(Fault::Answers));
        let plain = Plain::new(self.plan.nodes, &self.changes.present[..known]);
        for asked in self.asked.iter_mut().filter(|asked| asked.lag.is_none() && asked.changes.is_some()) {
            let expected = asked.kind.plain(&plain, asked.arguments.make_contiguous());
            if let Some((pair, count)) = asked.result.first_difference(&expected) {
                let times = u8::from(expected.binary_search(&pair).is_ok());
                let name = asked.kind.name();
                return Err(format!("{name}: {pair:?} should be there {times} times, the changes add up to {count}"));
            }
            let tally = self.outcome.kinds.iter_mut().find(|(kind, ..)| *kind == asked.kind);
            tally.expect("all kinds are there").2 += 1;
        }
        Ok(())
    }

    /// Retires what is there, and stops the workers.
    fn finish(mut self) -> Result<Outcome, String> {
        let sentence = |error: kpg::Error| error.to_string();
        for Asked { query, .. } in self.asked.drain(..) {
            query.retire().map_err(sentence)?;
        }
        let report = self.engine.shutdown(PATIENCE).map_err(sentence)?;
        let left = report.metrics.queries.len() - 1 - self.leaked.len();
        if !report.drained || left > 0 {
            return Err(format!(
                "at the end {left} queries are left over; the workers are at rest: {}",
                report.drained
            ));
        }
        let first = self.outcome.samples.first().map_or(0, |sample| sample.live_bytes);
        self.outcome.graph_alone = (first, live_bytes(&report.metrics));
        Ok(self.outcome)
    }
}

fn live_bytes(metrics: &Metrics) -> u64 {
    metrics.arenas.iter().map(|arena| arena.live_bytes as u64).sum()
}

impl Asked {
    fn take(&mut self, time: u64) -> Result<(), String> {
        let Some(changes) = &mut self.changes else { return Ok(()) };
        let taken = changes.wait_past(&time, PATIENCE).map_err(|error| format!("{}: {error}", self.kind.name()))?;
        taken.into_iter().for_each(|(pair, _, diff)| self.result.add(pair, diff));
        Ok(())
    }
}

/// What is shown at the end.
pub fn table(outcome: &Outcome) -> String {
    let mut lines = vec![["query", "came", "compared"].map(String::from)];
    let line =
        |&(kind, came, compared): &(Kind, u64, u64)| [kind.name().into(), report::count(came), report::count(compared)];
    lines.extend(outcome.kinds.iter().map(line));
    format!("{}\n{}", report::align(&lines), curve::table(&outcome.samples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A second on a small graph.
    fn soak(workers: usize, fault: Option<Fault>) -> Result<(Outcome, String), String> {
        let mut random = Random::new(3);
        let edges: BTreeSet<Edge> = (0..400).map(|_| (random.below(100) as u32, random.below(100) as u32)).collect();
        let edges: Vec<Edge> = edges.into_iter().collect();
        let plan = Plan { workers, pinned: false, edges: &edges, nodes: 100, seconds: 1, seed: 5, fault };
        let mut file = Vec::new();
        let outcome = run(&plan, Some(&mut file), &mut Progress::start(0))?;
        Ok((outcome, String::from_utf8(file).expect("a curve is text")))
    }

    #[test]
    fn a_second_on_a_small_graph() {
        for workers in [1, 2] {
            let (outcome, curve) = soak(workers, None).expect("all results are those of plain Rust");
            assert_eq!(curve.lines().count(), 1 + outcome.samples.len());
            assert!(curve.starts_with(curve::HEAD) && outcome.samples.len() > 1);
            assert!(outcome.rounds > 0 && outcome.kinds[KINDS.len() - 1].1 > 0, "{outcome:?}");
        }
    }

    #[test]
    fn an_answer_that_differs_ends_it() {
        let sentence = soak(1, Some(Fault::Answers)).map(|_| ()).expect_err("plain Rust lacks an edge");
        assert!(sentence.contains("the changes add up to"), "{sentence}");
    }

    #[test]
    fn faults_have_names() {
        assert_eq!(Fault::named("snapshots"), Ok(Fault::Snapshots));
        assert!(Fault::named("").is_err_and(|sentence| sentence.contains("queries, snapshots or answers")));
    }
}
