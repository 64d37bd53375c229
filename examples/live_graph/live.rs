//! The run: rounds of changes, queries that come and go, answers checked.
//!
//! ```text
//! round t:  edges and arguments at t, then all inputs to t + 1 ──► install or retire ──► wait for word of every query
//!                                                                                        └─ at some rounds: compare
//! ```
//!
//! One round is one time. Inputs that have nothing to say are moved along too: an idle input would hold its query back.
//! Next stop: `report`.

use crate::changes::{Changes, Edge, Round};
use crate::plain::Plain;
use crate::queries::{self, Edges, Kind};
use crate::report::{Progress, QueryRow};
use crate::watch::{Accumulated, PATIENCE, Watcher, Word};
use kpg::prelude::*;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// What to run.
pub struct Plan<'a> {
    /// Workers.
    pub workers: usize,
    /// Whether each has a core of its own.
    pub pinned: bool,
    /// All edges, distinct, in the order in which they arrive.
    pub edges: &'a [Edge],
    /// How many nodes there are; edges are between numbers below.
    pub nodes: usize,
    /// What queries are asked about from first to last.
    pub roots: &'a [u32],
    /// Whose edges all go and come back.
    pub hub: u32,
    /// Rounds in which edges arrive.
    pub load_rounds: u64,
    /// Rounds of changes after that.
    pub rounds: u64,
    /// Seed of the changes.
    pub seed: u64,
}

/// What came of it.
pub struct Outcome {
    /// A line a query, in the order of their installs.
    pub rows: Vec<QueryRow>,
    /// Results in short: kind, argument if it has one, how many pairs.
    pub answers: Vec<(Kind, Option<u32>, usize)>,
    /// How many nodes need the hub: before it goes, without it, and when it is back.
    pub hub_needed_by: Vec<usize>,
    /// Updates put in.
    pub updates: u64,
    /// Results compared with plain Rust.
    pub checks: u64,
}

/// Arguments that come and go besides the roots.
const PASSING: usize = 3;

/// Arguments change every so many rounds.
const ARGUMENTS_EVERY: u64 = 5;

struct Asked {
    kind: Kind,
    query: Query,
    input: Option<Input<u64, u32>>,
    watcher: Watcher,
    row: QueryRow,
    installed: Instant,
    passing: VecDeque<u32>,
}

struct Live<'a> {
    plan: &'a Plan<'a>,
    engine: Engine,
    graph: Query,
    input: Input<u64, Edge>,
    edges: Edges,
    changes: Changes,
    asked: Vec<Option<Asked>>,
    done: Vec<QueryRow>,
    words: (Sender<Word>, Receiver<Word>),
    outcome: Outcome,
}

/// Runs the plan; `progress` hears of each round.
///
/// # Errors
/// A sentence: what the engine refused, or the first result that differs from plain Rust's.
pub fn run(plan: &Plan<'_>, progress: &mut Progress) -> Result<Outcome, String> {
    let mut live = Live::start(plan).map_err(|error| error.to_string())?;
    let total = plan.load_rounds + plan.rounds;
    for time in 0..total {
        let started = live.send(time).map_err(|error| format!("round {time}: {error}"))?;
        live.come_and_go(time).map_err(|error| format!("round {time}: {error}"))?;
        live.hear(time, started)?;
        if live.is_to_be_checked(time) {
            live.check(time)?;
        }
        let arenas: u64 = live.engine.metrics().arenas.iter().map(|arena| arena.reserved_bytes as u64).sum();
        progress.show(time + 1, live.outcome.updates, arenas);
    }
    live.finish().map_err(|error| error.to_string())
}

impl<'a> Live<'a> {
    fn start(plan: &'a Plan<'a>) -> Result<Self, kpg::Error> {
        let engine = Engine::start(Config::default().workers(plan.workers).pinned(plan.pinned))?;
        let (graph, input, edges) = queries::graph(&engine)?;
        let outcome = Outcome { rows: vec![], answers: vec![], hub_needed_by: vec![], updates: 0, checks: 0 };
        let changes = Changes::new(plan.hub, plan.seed);
        let (asked, done) = (Vec::new(), Vec::new());
        Ok(Live { plan, engine, graph, input, edges, changes, asked, done, words: channel(), outcome })
    }

    /// Puts in what happens at `time`, and moves all inputs past it.
    fn send(&mut self, time: u64) -> Result<Instant, kpg::Error> {
        let plan = self.plan;
        let round = if time < plan.load_rounds {
            let at = |time| (plan.edges.len() as u64 * time / plan.load_rounds) as usize;
            self.changes.arrive(&plan.edges[at(time)..at(time + 1)])
        } else {
            self.changes.next(time - plan.load_rounds, plan.rounds)
        };
        if time % ARGUMENTS_EVERY == ARGUMENTS_EVERY - 1 {
            self.change_arguments()?;
        }
        let Round { added, removed } = round;
        self.outcome.updates += (added.len() + removed.len()) as u64;
        let started = Instant::now();
        added.into_iter().try_for_each(|edge| self.input.insert(edge))?;
        removed.into_iter().try_for_each(|edge| self.input.remove(edge))?;
        self.input.advance_to(time + 1)?;
        for asked in self.asked.iter_mut().flatten() {
            if let Some(input) = &mut asked.input {
                input.advance_to(time + 1)?;
            }
        }
        Ok(started)
    }

    fn change_arguments(&mut self) -> Result<(), kpg::Error> {
        for asked in self.asked.iter_mut().flatten() {
            let Some(input) = &mut asked.input else { continue };
            if asked.passing.len() == PASSING {
                let oldest = asked.passing.pop_front().expect("there are some");
                input.remove(oldest)?;
                self.outcome.updates += 1;
            }
            let new = self.changes.any_node().filter(|node| !asked.passing.contains(node));
            if let Some(node) = new.filter(|node| !self.plan.roots.contains(node)) {
                input.insert(node)?;
                asked.passing.push_back(node);
                self.outcome.updates += 1;
            }
        }
        Ok(())
    }

    /// Queries that are installed and retired while the edges of `time` are on their way.
    fn come_and_go(&mut self, time: u64) -> Result<(), kpg::Error> {
        let load = self.plan.load_rounds;
        let half = load + self.plan.rounds / 2;
        let moments = [
            (0, Kind::OutDegrees),
            (load / 4, Kind::TwoHop),
            (load / 2, Kind::Needs),
            (load * 3 / 4, Kind::NeededBy),
            (load - 1, Kind::Components),
            (half, Kind::TwoHopUsers),
        ];
        if time == half {
            self.retire(Kind::TwoHop)?;
        }
        for (_, kind) in moments.iter().filter(|(moment, _)| *moment == time) {
            self.install(*kind, time)?;
        }
        Ok(())
    }

    fn install(&mut self, kind: Kind, time: u64) -> Result<(), kpg::Error> {
        let installed = Instant::now();
        let (query, (mut input, changes)) = kind.install(&self.engine, &self.edges)?;
        if let Some(input) = &mut input {
            // Its first time may be before `time`: what the graph had complete when it was built.
            self.plan.roots.iter().try_for_each(|&root| input.insert(root))?;
            input.advance_to(time + 1)?;
            self.outcome.updates += self.plan.roots.len() as u64;
        }
        let watcher = Watcher::start(self.asked.len(), changes, self.words.0.clone());
        let row = QueryRow { name: kind.name().into(), ..QueryRow::default() };
        self.asked.push(Some(Asked { kind, query, input, watcher, row, installed, passing: VecDeque::new() }));
        Ok(())
    }

    fn retire(&mut self, kind: Kind) -> Result<(), kpg::Error> {
        let found = self.asked.iter_mut().find(|asked| asked.as_ref().is_some_and(|asked| asked.kind == kind));
        let Some(asked) = found.and_then(Option::take) else { return Ok(()) };
        let Asked { query, watcher, row, .. } = asked;
        let row = measured(row, &query, &self.graph);
        watcher.stop();
        query.retire()?;
        self.done.push(QueryRow { name: format!("{} (retired)", row.name), ..row });
        Ok(())
    }

    /// Waits until every query has told of `time`.
    fn hear(&mut self, time: u64, started: Instant) -> Result<(), String> {
        let asked = self.asked.iter().flatten();
        let expected = asked.map(|asked| asked.watcher.ask(time)).count();
        for _ in 0..expected {
            let word = self.words.1.recv_timeout(PATIENCE * 2).map_err(|_| format!("round {time}: no word"))?;
            let asked = self.asked[word.query].as_mut().expect("only those that are there are asked");
            let (when, changes) =
                word.complete.map_err(|error| format!("{}, round {time}: {error}", asked.kind.name()))?;
            asked.row.changes += changes as u64;
            if asked.row.first.is_zero() {
                asked.row.first = when - asked.installed;
            } else if time >= self.plan.load_rounds {
                asked.row.rounds.record(when - started);
            }
        }
        Ok(())
    }

    fn is_to_be_checked(&self, time: u64) -> bool {
        let Plan { load_rounds: load, rounds, .. } = *self.plan;
        let Some(round) = time.checked_sub(load) else { return time == load / 2 || time == load - 1 };
        round % (rounds / 8).max(1) == 0 || round == rounds - 1 || Changes::is_turn(round, rounds)
    }

    /// Compares what every query's changes add up to with plain Rust.
    fn check(&mut self, time: u64) -> Result<(), String> {
        let plain = Plain::new(self.plan.nodes, &self.changes.present);
        for asked in self.asked.iter().flatten() {
            let arguments: Vec<u32> = self.plan.roots.iter().chain(&asked.passing).copied().collect();
            let expected = asked.kind.plain(&plain, &arguments);
            if let Some((pair, count)) = asked.watcher.look(|result| result.first_difference(&expected)) {
                let expected = u8::from(expected.binary_search(&pair).is_ok());
                return Err(format!(
                    "{}, round {time}: {pair:?} should be there {expected} times, the changes add up to {count}",
                    asked.kind.name()
                ));
            }
            self.outcome.checks += 1;
        }
        let hub = self.plan.hub;
        if let Some(round) = time.checked_sub(self.plan.load_rounds).filter(|round| *round + 1 < self.plan.rounds) {
            let turn = Changes::is_turn(round, self.plan.rounds) && self.outcome.hub_needed_by.len() < 3;
            if turn || self.outcome.hub_needed_by.is_empty() {
                let count = |result: &Accumulated| result.pairs().filter(|pair| pair.0 == hub).count();
                let needed = self.asked.iter().flatten().find(|asked| asked.kind == Kind::NeededBy);
                self.outcome.hub_needed_by.extend(needed.map(|asked| asked.watcher.look(count)));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome, kpg::Error> {
        let mut answers = Vec::new();
        for asked in self.asked.iter().flatten() {
            let mut ask = |argument: Option<u32>, belongs: &dyn Fn((u32, u32)) -> bool| {
                let count = asked.watcher.look(|result| result.pairs().filter(|&pair| belongs(pair)).count());
                answers.push((asked.kind, argument, count));
            };
            match asked.kind {
                Kind::Components => ask(None, &|(node, label)| node == label),
                Kind::OutDegrees => ask(None, &|_| true),
                _ => self.plan.roots.iter().for_each(|&root| ask(Some(root), &|pair| pair.0 == root)),
            }
        }
        let mut rows = std::mem::take(&mut self.done);
        for asked in self.asked.drain(..).flatten() {
            let Asked { query, watcher, row, .. } = asked;
            rows.push(measured(row, &query, &self.graph));
            watcher.stop();
        }
        self.engine.shutdown(PATIENCE)?;
        Ok(Outcome { rows, answers, ..self.outcome })
    }
}

fn measured(mut row: QueryRow, query: &Query, graph: &Query) -> QueryRow {
    row.private_bytes = query.bytes().private as u64;
    row.shared_bytes = graph.bytes().shared as u64;
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Random;
    use std::collections::BTreeSet;

    /// Every round is compared with plain Rust by `run` itself, so it is enough that it ends well.
    #[test]
    fn a_small_graph_lives_through_all_of_it() {
        let mut random = Random::new(3);
        let edges: BTreeSet<Edge> = (0..200).map(|_| (random.below(50) as u32, random.below(50) as u32)).collect();
        let edges: Vec<Edge> = edges.into_iter().collect();
        for workers in [1, 2, 3] {
            let plan = Plan {
                workers,
                pinned: false,
                edges: &edges,
                nodes: 50,
                roots: &[1, 7, 20],
                hub: 7,
                load_rounds: 8,
                rounds: 40,
                seed: 5,
            };
            let outcome = run(&plan, &mut Progress::start(48)).expect("all results are those of plain Rust");
            assert_eq!(outcome.rows.len(), 6);
            assert!(outcome.rows.iter().all(|row| row.changes > 0 && !row.first.is_zero()));
            let [before, without, back] = outcome.hub_needed_by[..] else { panic!("the hub goes and comes back") };
            assert!(before > 1 && without == 1 && back > 1, "{before} {without} {back}");
            assert!(outcome.checks > 40);
        }
    }

    #[test]
    fn few_rounds_and_few_edges_are_fine() {
        for rounds in 0..10 {
            let edges = [(0, 1), (1, 0)];
            let (roots, load_rounds) = ([0], 2);
            let plan = Plan {
                workers: 1,
                pinned: false,
                edges: &edges,
                nodes: 2,
                roots: &roots,
                hub: 1,
                load_rounds,
                rounds,
                seed: 1,
            };
            run(&plan, &mut Progress::start(2 + rounds)).expect("all results are those of plain Rust");
        }
    }
}
