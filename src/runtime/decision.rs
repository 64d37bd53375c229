//! The decisions of a simulation's schedule, as a list that can be printed, read again, and made shorter.
//!
//! Only what is out of the ordinary is a decision. In an ordinary run all workers step in turn; a step lasts a microsecond,
//! takes all that is on its way to its worker, is not cut short, and merges when it has nothing else to do. Each decision
//! stands at a place of its own (which round, or which step of which worker), so leaving one out moves no other. Next
//! stop: `schedule`, which makes them, or goes by a list of them.
#![forbid(unsafe_code)]

use std::fmt::{self, Write};
use std::str::FromStr;

/// What goes from one worker to another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Freight {
    /// Messages: data.
    Messages,
    /// Entries of progress: changes of counts, from which frontiers follow.
    Progress,
}

/// What is on its way from one worker, of one kind: in the order in which it was sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The sender.
    pub from: usize,
    /// What it is.
    pub freight: Freight,
}

/// What is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// How all arrangements merge; by default as [`crate::trace::MergePolicy`] says by default.
    Merging(Merging),
    /// The workers that step in a round, in this order; by default each once, in order.
    Steps(Vec<usize>),
    /// How many updates each operator touches in the step before it yields; by default as many as are configured.
    Fuel(usize),
    /// How many microseconds the step takes by the simulation's clock; by default one.
    Lasts(u64),
    /// In which order what has arrived is taken; by default in the order of the senders, messages first.
    Order(Vec<Lane>),
    /// How much of what is on its way has arrived; by default all.
    Takes(Lane, usize),
    /// No merge goes on in the step, though it has nothing else to do.
    Rests,
}

/// How arrangements merge.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// [`crate::trace::MergePolicy::lazy`].
    Lazy,
    /// [`crate::trace::MergePolicy::eager`].
    Eager,
}

/// Where something is decided.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// At the start.
    Start,
    /// In the n-th round, from 0.
    Round(u64),
    /// In the n-th step of a worker, from 0.
    Step {
        /// The worker.
        worker: usize,
        /// The step.
        step: u64,
    },
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The n-th engine that was started, from 0; mostly there is one.
    pub engine: u32,
    /// Where.
    pub place: Place,
    /// What.
    pub choice: Choice,
}

/// What tells a decision from others at its place.
pub(super) type Key = (u32, Place, u8, Option<Lane>);

impl Decision {
    /// Two decisions with the same key contradict each other.
    pub(super) fn key(&self) -> Key {
        key(self.engine, self.place, &self.choice)
    }
}

pub(super) fn key(engine: u32, place: Place, choice: &Choice) -> Key {
    let (kind, lane) = match choice {
        Choice::Merging(_) => (0, None),
        Choice::Steps(_) => (1, None),
        Choice::Fuel(_) => (2, None),
        Choice::Lasts(_) => (3, None),
        Choice::Order(_) => (4, None),
        Choice::Takes(lane, _) => (5, Some(*lane)),
        Choice::Rests => (6, None),
    };
    (engine, place, kind, lane)
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let freight = match self.freight {
            Freight::Messages => "messages",
            Freight::Progress => "progress",
        };
        write!(f, "{freight} from {}", self.from)
    }
}

/// As text: one line, which [`Decision::from_str`] reads.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.engine > 0 {
            write!(f, "engine {}, ", self.engine)?;
        }
        match self.place {
            Place::Start => f.write_str("start: ")?,
            Place::Round(round) => write!(f, "round {round}: ")?,
            Place::Step { worker, step } => write!(f, "worker {worker}, step {step}: ")?,
        }
        match &self.choice {
            Choice::Merging(Merging::Lazy) => f.write_str("merges lazily"),
            Choice::Merging(Merging::Eager) => f.write_str("merges eagerly"),
            Choice::Steps(workers) => {
                f.write_str("workers that step:")?;
                workers.iter().try_for_each(|worker| write!(f, " {worker}"))
            }
            Choice::Fuel(fuel) => write!(f, "yields after {fuel} updates"),
            Choice::Lasts(micros) => write!(f, "lasts {micros} microseconds"),
            Choice::Order(lanes) => {
                f.write_str("takes first ")?;
                let text: Vec<_> = lanes.iter().map(Lane::to_string).collect();
                f.write_str(&text.join(", then "))
            }
            Choice::Takes(lane, count) => write!(f, "takes only {count} {lane}"),
            Choice::Rests => f.write_str("does not merge"),
        }
    }
}

/// A line that is no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDecision(String);

impl fmt::Display for NoDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no decision of a schedule: {:?}; a line is as it was printed", self.0)
    }
}
impl std::error::Error for NoDecision {}

impl FromStr for Decision {
    type Err = NoDecision;

    fn from_str(line: &str) -> Result<Self, NoDecision> {
        read(line).ok_or_else(|| NoDecision(line.to_string()))
    }
}

fn read(line: &str) -> Option<Decision> {
    let (place, choice) = line.trim().split_once(':')?;
    let mut place: Vec<&str> = place.split(", ").collect();
    let mut engine = 0;
    if let Some(text) = place[0].strip_prefix("engine ") {
        engine = text.parse().ok()?;
        place.remove(0);
    }
    let place = match place[..] {
        ["start"] => Place::Start,
        [round] => Place::Round(round.strip_prefix("round ")?.parse().ok()?),
        [worker, step] => Place::Step {
            worker: worker.strip_prefix("worker ")?.parse().ok()?,
            step: step.strip_prefix("step ")?.parse().ok()?,
        },
        _ => return None,
    };
    let choice = choice.trim();
    let words: Vec<&str> = choice.split(' ').collect();
    let choice = match words[..] {
        ["merges", "lazily"] => Choice::Merging(Merging::Lazy),
        ["merges", "eagerly"] => Choice::Merging(Merging::Eager),
        ["workers", "that", "step:", ref workers @ ..] => {
            Choice::Steps(workers.iter().map(|worker| worker.parse().ok()).collect::<Option<_>>()?)
        }
        ["yields", "after", fuel, "updates"] => Choice::Fuel(fuel.parse().ok()?),
        ["lasts", micros, "microseconds"] => Choice::Lasts(micros.parse().ok()?),
        ["takes", "first", ..] => {
            let lanes = choice.strip_prefix("takes first ")?.split(", then ").map(lane);
            Choice::Order(lanes.collect::<Option<_>>()?)
        }
        ["takes", "only", count, freight, "from", from] => {
            Choice::Takes(lane(&format!("{freight} from {from}"))?, count.parse().ok()?)
        }
        ["does", "not", "merge"] => Choice::Rests,
        _ => return None,
    };
    Some(Decision { engine, place, choice })
}

fn lane(text: &str) -> Option<Lane> {
    let (freight, from) = text.split_once(" from ")?;
    let freight = match freight {
        "messages" => Freight::Messages,
        "progress" => Freight::Progress,
        _ => return None,
    };
    Some(Lane { from: from.parse().ok()?, freight })
}

/// The decisions of a run, in the order in which they were made; as text, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions(pub Vec<Decision>);

impl fmt::Display for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.0.iter().try_for_each(|decision| writeln!(text, "{decision}"))?;
        f.write_str(text.trim_end())
    }
}

/// Lines that are empty, or begin with `#`, say nothing.
impl FromStr for Decisions {
    type Err = NoDecision;

    fn from_str(text: &str) -> Result<Self, NoDecision> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::parse).collect::<Result<_, _>>().map(Decisions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        let (messages, progress) =
            (Lane { from: 2, freight: Freight::Messages }, Lane { from: 0, freight: Freight::Progress });
        let choices = [
            Choice::Merging(Merging::Lazy),
            Choice::Merging(Merging::Eager),
            Choice::Steps(vec![2, 0, 0]),
            Choice::Fuel(32),
            Choice::Lasts(17),
            Choice::Order(vec![messages]),
            Choice::Order(vec![progress, messages]),
            Choice::Takes(progress, 0),
            Choice::Rests,
        ];
        let places = [Place::Start, Place::Round(3), Place::Step { worker: 1, step: 40 }];
        let mut all = Decisions::default();
        for engine in [0, 3] {
            for place in places {
                all.0.extend(choices.iter().map(|choice| Decision { engine, place, choice: choice.clone() }));
            }
        }
        assert_eq!(all.to_string().parse(), Ok(all));
        assert_eq!("\n  # what it says\n  ".parse(), Ok(Decisions::default()));
        for wrong in ["round: does not merge", "round 1: sleeps", "worker 1: does not merge", "start: takes only x"] {
            assert_eq!(wrong.parse::<Decisions>(), Err(NoDecision(wrong.to_string())));
        }
    }
}
