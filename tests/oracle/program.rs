//! What the oracle's programs are: dataflows as data, and what is done to them.
//!
//! All collections hold pairs of small numbers, so that each operator's output is any other's input. Times are written
//! as two coordinates; a program over `u64` leaves the second at 0. Next stop: `generate`, `naive`, `build`.

use std::fmt::{self, Write};

/// What all collections hold.
pub type D = (u32, u32);
/// A time outside of loops.
pub type Time = (u64, u64);

/// Numbers stay below this.
pub const DOMAIN: u32 = 8;

/// Functions of one datum.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Fun {
    Swap,
    Key,
    AddKey(u32),
    AddVal(u32),
    Sum,
    Halve,
    Const(u32),
}

impl Fun {
    pub fn apply(self, (k, v): D) -> D {
        let (k, v) = match self {
            Fun::Swap => (v, k),
            Fun::Key => (k, k),
            Fun::AddKey(n) => (k + n, v),
            Fun::AddVal(n) => (k, v + n),
            Fun::Sum => (k + v, v),
            Fun::Halve => (k / 2, v),
            Fun::Const(n) => (n, v),
        };
        (k % DOMAIN, v % DOMAIN)
    }
}

/// Which data stay.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Pred {
    KeyBelow(u32),
    ValBelow(u32),
    Ordered,
    SumIs(u32, u32),
    Never,
}

impl Pred {
    pub fn holds(self, (k, v): D) -> bool {
        match self {
            Pred::KeyBelow(n) => k < n,
            Pred::ValBelow(n) => v < n,
            Pred::Ordered => k <= v,
            Pred::SumIs(m, r) => (k + v) % m == r,
            Pred::Never => false,
        }
    }
}

/// What a join makes of a key and two vals.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum JoinFn {
    Vals,
    KeyAndRight,
    RightAndLeft,
    SumUnless(u32),
}

impl JoinFn {
    pub fn apply(self, k: u32, v: u32, w: u32) -> Option<D> {
        match self {
            JoinFn::Vals => Some((v, w)),
            JoinFn::KeyAndRight => Some((k, w)),
            JoinFn::RightAndLeft => Some((w, v)),
            JoinFn::SumUnless(n) => ((v + w) % DOMAIN != n).then_some((k, (v + w) % DOMAIN)),
        }
    }
}

/// How a join is asked for.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum How {
    /// `Collection::join`.
    Collections,
    /// `Collection::join_arranged`, the right side arranged and shared.
    Arranged,
    /// `join_core` of two shared arrangements.
    Core,
    /// `join_core`, the right side as whatever view it is.
    ViewRight,
    /// `join_core`, the left side as whatever view it is.
    ViewLeft,
    /// By an operator of the user's, with cursors.
    Own,
}

/// Functions of the vals of a key.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Reducer {
    Count,
    Total,
    Min,
    Max,
    Sum,
    Positive,
    Echo,
    Twice,
}

impl Reducer {
    pub fn apply(self, key: u32, vals: &[(u32, i64)], out: &mut Vec<(u32, i64)>) {
        let total: i64 = vals.iter().map(|(_, r)| r).sum();
        let small = |n: i64| n.rem_euclid(i64::from(DOMAIN)) as u32;
        let positive = vals.iter().filter(|(_, r)| *r > 0).map(|(v, _)| *v);
        match self {
            Reducer::Count => out.push((small(total), 1)),
            Reducer::Total => out.push((key, total)),
            Reducer::Min => out.extend(positive.min().map(|v| (v, 1))),
            Reducer::Max => out.extend(positive.max().map(|v| (v, 1))),
            Reducer::Sum => out.push((small(vals.iter().map(|(v, r)| i64::from(*v) * r).sum()), 1)),
            Reducer::Positive => out.extend(positive.map(|v| (v, 1))),
            Reducer::Echo => out.extend_from_slice(vals),
            Reducer::Twice => positive.for_each(|v| out.extend([(v, 1), ((v + 1) % DOMAIN, -1), (v, 1)])),
        }
    }
}

/// How often a datum is to be there, of how often it is.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Level {
    Modulo(i64),
    AtMost(i64),
    Absolute,
    Negative,
}

impl Level {
    pub fn apply(self, count: i64) -> i64 {
        match self {
            Level::Modulo(m) => count.rem_euclid(m),
            Level::AtMost(n) => count.min(n),
            Level::Absolute => count.abs(),
            Level::Negative => i64::from(count < 0),
        }
    }
}

/// One operator; operands are places in the same list, before it.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    // Where data come from.
    Input(usize),
    Constant(Vec<D>),
    Import {
        flow: usize,
        op: usize,
    },
    /// Of a published stream: what changes after the first time.
    ImportStream {
        flow: usize,
        op: usize,
    },
    // Inside loops: of the scope around.
    Enter(usize),
    EnterAt(usize, u32),
    EnterArranged(usize),
    Variable {
        source: Option<usize>,
        eager: bool,
    },
    // Without state.
    Map(usize, Fun),
    FlatMap(usize, Fun, Fun),
    Filter(usize, Pred),
    Negate(usize),
    Concat(Vec<usize>),
    Explode(usize, Fun, [i64; 3]),
    Consolidate(usize),
    Inspect(usize),
    Delay {
        of: usize,
        add: u64,
        round: u64,
    },
    // Views of arrangements.
    ViewFilter(usize, Pred),
    ViewNegate(usize),
    Flatten(usize),
    FlatMapRef(usize, Fun, Fun),
    // Of the user's own.
    Notified(usize),
    Difference(usize, usize),
    // With state.
    Join(usize, usize, JoinFn, How),
    Semijoin(usize, usize),
    Antijoin(usize, usize),
    Reduce(usize, Reducer),
    Count(usize),
    Distinct(usize),
    CountByReduce(usize),
    DistinctByReduce(usize),
    Threshold(usize, Level),
    Loop(Box<Loop>),
}

impl Op {
    /// What it is, as coverage and mutants have it.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Input(_) => "input",
            Op::Constant(_) => "constant",
            Op::Import { .. } => "import",
            Op::ImportStream { .. } => "import of a stream",
            Op::Enter(_) => "enter",
            Op::EnterAt(..) => "enter_at",
            Op::EnterArranged(_) => "enter of an arrangement",
            Op::Variable { source: None, .. } => "variable",
            Op::Variable { eager: true, .. } => "variable, eager",
            Op::Variable { .. } => "variable of a source",
            Op::Map(..) => "map",
            Op::FlatMap(..) => "flat_map",
            Op::Filter(..) => "filter",
            Op::Negate(_) => "negate",
            Op::Concat(_) => "concat",
            Op::Explode(..) => "explode",
            Op::Consolidate(_) => "consolidate",
            Op::Inspect(_) => "inspect",
            Op::Delay { .. } => "delay",
            Op::ViewFilter(..) => "filter of an arrangement",
            Op::ViewNegate(_) => "negate of an arrangement",
            Op::Flatten(_) => "as_collection",
            Op::FlatMapRef(..) => "flat_map_ref",
            Op::Notified(_) => "own unary with notifications",
            Op::Difference(..) => "own binary",
            Op::Join(.., How::Collections) => "join",
            Op::Join(.., How::Arranged) => "join_arranged",
            Op::Join(.., How::Core) => "join_core",
            Op::Join(.., How::ViewRight) => "join_core of a view, right",
            Op::Join(.., How::ViewLeft) => "join_core of a view, left",
            Op::Join(.., How::Own) => "own binary with cursors",
            Op::Semijoin(..) => "semijoin",
            Op::Antijoin(..) => "antijoin",
            Op::Reduce(..) => "reduce",
            Op::Count(_) => "count",
            Op::Distinct(_) => "distinct",
            Op::CountByReduce(_) => "count_arranged",
            Op::DistinctByReduce(_) => "threshold_arranged",
            Op::Threshold(..) => "threshold",
            Op::Loop(spec) if spec.iterate => "iterate",
            Op::Loop(_) => "iterative",
        }
    }
}

/// A loop: its body, what its variables are set to, what leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub body: Vec<Op>,
    /// (variable, value), both places in the body.
    pub sets: Vec<(usize, usize)>,
    /// What leaves; summed.
    pub leaves: Vec<usize>,
    /// What is fed back stays as it is from this round on.
    pub limit: Option<u32>,
    /// By `Collection::iterate`: the body starts with the source entered and the variable of it.
    pub iterate: bool,
}

/// A dataflow.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Flow {
    pub inputs: usize,
    pub ops: Vec<Op>,
    pub outputs: Vec<usize>,
    /// Arranged by key and published.
    pub publishes: Vec<usize>,
    /// Published as streams; none, unless times are totally ordered.
    pub streams: Vec<usize>,
}

impl Flow {
    /// The flows that it imports from.
    pub fn sources(&self) -> impl Iterator<Item = usize> {
        self.ops.iter().filter_map(|op| match op {
            Op::Import { flow, .. } | Op::ImportStream { flow, .. } => Some(*flow),
            _ => None,
        })
    }
}

/// What is done while dataflows run.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Event {
    Update {
        input: usize,
        session: usize,
        datum: D,
        time: Time,
        diff: i64,
    },
    Advance {
        input: usize,
        session: usize,
        time: Time,
    },
    /// Another session of the input, at session 0's time.
    Clone {
        input: usize,
    },
    Close {
        input: usize,
        session: usize,
    },
    Flush {
        input: usize,
        session: usize,
    },
    /// In a simulation: steps. Otherwise: a moment.
    Step(usize),
    /// What is complete is looked at.
    Poll,
    /// What can be complete is waited for.
    Wait,
    Snapshot,
    Install(usize),
    /// Unless others import from it.
    Retire(usize),
    /// With all that import from it.
    RetireCascade(usize),
}

/// Dataflows, where they run, what is done to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    pub dimensions: usize,
    pub workers: usize,
    /// The seed of the schedule, or real threads.
    pub simulated: Option<u64>,
    pub eager_merges: bool,
    /// Updates that a node may touch in one step.
    pub quantum: usize,
    /// Subscriptions hold so many updates before they coalesce; none: as many as come.
    pub capacity: Option<usize>,
    pub flows: Vec<Flow>,
    /// With the flow that each is about.
    pub events: Vec<(usize, Event)>,
    /// Times are below this in each coordinate.
    pub size: u64,
}

fn ops(f: &mut String, ops: &[Op], indent: usize) {
    for (index, op) in ops.iter().enumerate() {
        let pad = " ".repeat(indent);
        match op {
            Op::Loop(of) => {
                let (limit, iterate) = (of.limit, of.iterate);
                let _ = writeln!(f, "{pad}{index}: loop, limit {limit:?}, iterate {iterate}");
                self::ops(f, &of.body, indent + 4);
                let _ = writeln!(f, "{pad}    sets {:?} leaves {:?}", of.sets, of.leaves);
            }
            op => {
                let _ = writeln!(f, "{pad}{index}: {op:?}");
            }
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { dimensions, workers, simulated, eager_merges, size, quantum, capacity, .. } = self;
        writeln!(f, "{dimensions}-D below {size}, {workers} workers, simulated {simulated:?}, eager {eager_merges}")?;
        writeln!(f, "  quantum {quantum}, subscriptions of {capacity:?}")?;
        for (index, flow) in self.flows.iter().enumerate() {
            let mut text = String::new();
            ops(&mut text, &flow.ops, 4);
            writeln!(f, "  flow {index}, {} inputs:", flow.inputs)?;
            write!(f, "{text}")?;
            let Flow { outputs, publishes, streams, .. } = flow;
            writeln!(f, "    outputs {outputs:?} publishes {publishes:?} streams {streams:?}")?;
        }
        for (flow, event) in &self.events {
            writeln!(f, "  on {flow}: {event:?}")?;
        }
        Ok(())
    }
}
