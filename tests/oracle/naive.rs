//! The naive evaluator: what each collection is at a time, from nothing but the updates at or before it.
//!
//! ```text
//! value(op, t) = operator applied to value(operands, t)          a function of accumulations, whatever came before
//! delay:         value(operand, the latest time that f takes to t or before)
//! stream:        value(what is published, t) less value(what is published, the first time), unless that is the least one
//! loop:          round 0: variable = source; round r+1: variable = fed back of r + what its source gained in r+1;
//!                until nothing changes; then the value of what leaves
//! ```
//! With a limit L what is fed back of a round from L on is what was in round L-1. Nothing here knows of batches,
//! frontiers or differences in time.

use super::program::{D, Flow, Loop, Op, Program, Time};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// An accumulation; no zeroes.
pub type Bag = BTreeMap<D, i64>;

/// Updates of one input.
pub type Updates = Vec<(D, Time, i64)>;

/// Why a program is no use: too much of something.
#[derive(Debug)]
pub struct Rejected;

/// A mistake made on purpose, to see that it is noticed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Mutant {
    DistinctKeepsNegative,
    JoinForgetsKey(u32),
    ReduceForgetsNegative,
    LoopStopsEarly,
    DelayForgets,
    ImportForgets(D),
    NegateForgets,
    StreamHasHistory,
    /// The operator of this name loses its least datum.
    Loses(&'static str),
}

const MOST_DATA: usize = 64;
const MOST_COUNT: i64 = 1 << 20;
const MOST_ROUNDS: u32 = 60;

/// The values of one program's flows.
pub struct Naive<'p> {
    program: &'p Program,
    // By flow and input.
    inputs: Vec<Vec<Updates>>,
    /// The first time of each flow, once it is known.
    pub firsts: Vec<Option<Time>>,
    known: HashMap<(usize, usize, Time), Rc<Bag>>,
    pub mutant: Option<Mutant>,
}

pub fn before(a: Time, b: Time) -> bool {
    a.0 <= b.0 && a.1 <= b.1
}
pub fn join(a: Time, b: Time) -> Time {
    (a.0.max(b.0), a.1.max(b.1))
}

pub fn add(into: &mut Bag, datum: D, diff: i64) {
    let count = into.entry(datum).or_insert(0);
    *count += diff;
    if *count == 0 {
        into.remove(&datum);
    }
}

fn sum<'b>(bags: impl IntoIterator<Item = (&'b Bag, i64)>) -> Bag {
    let mut out = Bag::new();
    for (bag, factor) in bags {
        bag.iter().for_each(|(d, r)| add(&mut out, *d, r * factor));
    }
    out
}

fn each(bag: &Bag, f: impl Fn(D, i64, &mut dyn FnMut(D, i64))) -> Bag {
    let mut out = Bag::new();
    bag.iter().for_each(|(d, r)| f(*d, *r, &mut |d, r| add(&mut out, d, r)));
    out
}

fn by_key(bag: &Bag) -> BTreeMap<u32, Vec<(u32, i64)>> {
    let mut out = BTreeMap::<u32, Vec<(u32, i64)>>::new();
    bag.iter().for_each(|((k, v), r)| out.entry(*k).or_default().push((*v, *r)));
    out
}

fn small(bag: Bag) -> Result<Bag, Rejected> {
    let fits = bag.len() <= MOST_DATA && bag.values().all(|r| r.abs() <= MOST_COUNT);
    if fits { Ok(bag) } else { Err(Rejected) }
}

/// The latest time that a delay takes to `time` or before.
fn undelayed((a, b): Time, dimensions: usize, add: u64, round: u64) -> Option<Time> {
    match dimensions {
        1 => Some(((a / round * round).checked_sub(add)?, 0)),
        _ => Some((a.checked_sub(add)?, b / round * round)),
    }
}

/// What a delay makes of a time.
pub fn delayed((a, b): Time, dimensions: usize, add: u64, round: u64) -> Time {
    match dimensions {
        1 => ((a + add).next_multiple_of(round), 0),
        _ => (a + add, b.next_multiple_of(round)),
    }
}

impl<'p> Naive<'p> {
    pub fn new(program: &'p Program) -> Self {
        let inputs = program.flows.iter().map(|flow| vec![Updates::new(); flow.inputs]).collect();
        let firsts = vec![None; program.flows.len()];
        Naive { program, inputs, firsts, known: HashMap::new(), mutant: None }
    }

    /// A flow is installed, for the first time or again: its inputs are empty.
    pub fn start(&mut self, flow: usize, first: Time) {
        self.firsts[flow] = Some(first);
        self.inputs[flow].iter_mut().for_each(Updates::clear);
        self.known.retain(|(other, _, _), _| *other != flow);
    }

    /// Notes an update.
    pub fn update(&mut self, flow: usize, input: usize, datum: D, time: Time, diff: i64) {
        self.inputs[flow][input].push((datum, time, diff));
        // A loop that ignores what it enters may be complete before that is.
        self.known.retain(|(_, _, t), _| !before(time, *t));
    }

    /// What an operator of a flow's outermost scope is at a time, which must be complete.
    pub fn value(&mut self, flow: usize, op: usize, time: Time) -> Result<Rc<Bag>, Rejected> {
        if let Some(bag) = self.known.get(&(flow, op, time)) {
            return Ok(bag.clone());
        }
        let program = self.program;
        let Flow { ops, .. } = &program.flows[flow];
        let first = self.firsts[flow].expect("asked of a flow that was installed");
        let started = before(first, time);
        let bag = match &ops[op] {
            Op::Input(input) if started => {
                let updates = self.inputs[flow][*input].iter().filter(|(_, t, _)| before(*t, time));
                let mut bag = Bag::new();
                updates.for_each(|(d, _, r)| add(&mut bag, *d, *r));
                bag
            }
            Op::Constant(data) if started => {
                let mut bag = Bag::new();
                data.iter().for_each(|d| add(&mut bag, *d, 1));
                bag
            }
            Op::Import { flow, op } if started => {
                let mut bag = (*self.value(*flow, *op, time)?).clone();
                if let Some(Mutant::ImportForgets(d)) = self.mutant {
                    bag.remove(&d);
                }
                bag
            }
            Op::ImportStream { flow, op } if started => {
                let now = self.value(*flow, *op, time)?;
                let whole = first == (0, 0) || self.mutant == Some(Mutant::StreamHasHistory);
                let then = if whole { Rc::default() } else { self.value(*flow, *op, first)? };
                sum([(&*now, 1), (&*then, -1)])
            }
            Op::Input(_) | Op::Constant(_) | Op::Import { .. } | Op::ImportStream { .. } => Bag::new(),
            Op::Delay { of, add, round } => match undelayed(time, program.dimensions, *add, *round) {
                Some(_) if self.mutant == Some(Mutant::DelayForgets) => (*self.value(flow, *of, time)?).clone(),
                Some(earlier) => (*self.value(flow, *of, earlier)?).clone(),
                None => Bag::new(),
            },
            Op::Loop(spec) => {
                let mut around = HashMap::new();
                for of in entered(spec) {
                    around.insert(of, self.value(flow, of, time)?);
                }
                run_loop(spec, &|of| around[&of].clone(), self.mutant)?
            }
            op => {
                let mut values = HashMap::new();
                for of in operands(op) {
                    values.insert(of, self.value(flow, of, time)?);
                }
                apply(op, &|of| values[&of].clone(), self.mutant)
            }
        };
        let bag = Rc::new(small(lessened(&ops[op], bag, self.mutant))?);
        self.known.insert((flow, op, time), bag.clone());
        Ok(bag)
    }
}

/// What a mutant leaves of an operator's value.
fn lessened(op: &Op, mut bag: Bag, mutant: Option<Mutant>) -> Bag {
    if mutant == Some(Mutant::Loses(op.name())) {
        bag.pop_first();
    }
    bag
}

/// What a loop takes from the scope around it.
pub fn entered(spec: &Loop) -> Vec<usize> {
    let entered = spec.body.iter().filter_map(|op| match op {
        Op::Enter(of) | Op::EnterAt(of, _) | Op::EnterArranged(of) => Some(*of),
        _ => None,
    });
    entered.collect()
}

/// What an operator reads of its own scope.
pub fn operands(op: &Op) -> Vec<usize> {
    match op {
        Op::Input(_) | Op::Constant(_) | Op::Import { .. } | Op::ImportStream { .. } => Vec::new(),
        Op::Enter(_) | Op::EnterAt(..) | Op::EnterArranged(_) => Vec::new(),
        Op::Variable { source, .. } => source.iter().copied().collect(),
        Op::Concat(of) => of.clone(),
        Op::Join(a, b, ..) | Op::Semijoin(a, b) | Op::Antijoin(a, b) | Op::Difference(a, b) => vec![*a, *b],
        Op::Delay { of, .. } => vec![*of],
        Op::Map(a, _)
        | Op::FlatMap(a, ..)
        | Op::Filter(a, _)
        | Op::Negate(a)
        | Op::Explode(a, ..)
        | Op::Consolidate(a)
        | Op::Inspect(a)
        | Op::FlatMapRef(a, ..)
        | Op::Notified(a)
        | Op::CountByReduce(a)
        | Op::DistinctByReduce(a)
        | Op::ViewFilter(a, _)
        | Op::ViewNegate(a)
        | Op::Flatten(a)
        | Op::Reduce(a, _)
        | Op::Count(a)
        | Op::Distinct(a)
        | Op::Threshold(a, _) => vec![*a],
        Op::Loop(spec) => entered(spec),
    }
}

/// Operators whose output is a function of their operands' accumulations.
fn apply(op: &Op, of: &dyn Fn(usize) -> Rc<Bag>, mutant: Option<Mutant>) -> Bag {
    match op {
        Op::Map(a, f) => each(&of(*a), |d, r, out| out(f.apply(d), r)),
        Op::FlatMap(a, f, g) | Op::FlatMapRef(a, f, g) => each(&of(*a), |d, r, out| {
            out(f.apply(d), r);
            out(g.apply(d), r);
        }),
        Op::Filter(a, p) | Op::ViewFilter(a, p) => each(&of(*a), |d, r, out| {
            if p.holds(d) {
                out(d, r);
            }
        }),
        Op::Negate(a) if mutant == Some(Mutant::NegateForgets) => (*of(*a)).clone(),
        Op::Negate(a) | Op::ViewNegate(a) => each(&of(*a), |d, r, out| out(d, -r)),
        Op::Concat(all) => {
            let bags: Vec<_> = all.iter().map(|a| of(*a)).collect();
            sum(bags.iter().map(|bag| (&**bag, 1)))
        }
        Op::Explode(a, f, factors) => each(&of(*a), |d, r, out| {
            out(f.apply(d), r * factors[d.0 as usize % 3]);
            out(d, r * factors[d.1 as usize % 3]);
        }),
        Op::Consolidate(a) | Op::Flatten(a) | Op::Inspect(a) | Op::Notified(a) => (*of(*a)).clone(),
        Op::Difference(a, b) => sum([(&*of(*a), 1), (&*of(*b), -1)]),
        Op::Join(a, b, f, _) => {
            let (left, right, mut out) = (by_key(&of(*a)), by_key(&of(*b)), Bag::new());
            for (key, vals) in &left {
                if mutant == Some(Mutant::JoinForgetsKey(*key)) {
                    continue;
                }
                for ((v, r), (w, s)) in
                    vals.iter().flat_map(|v| right.get(key).into_iter().flatten().map(move |w| (v, w)))
                {
                    if let Some(d) = f.apply(*key, *v, *w) {
                        add(&mut out, d, r * s);
                    }
                }
            }
            out
        }
        Op::Semijoin(a, b) => semijoin(&of(*a), &of(*b)),
        Op::Antijoin(a, b) => sum([(&*of(*a), 1), (&semijoin(&of(*a), &of(*b)), -1)]),
        Op::Reduce(a, f) => {
            let mut out = Bag::new();
            for (key, mut vals) in by_key(&of(*a)) {
                if mutant == Some(Mutant::ReduceForgetsNegative) {
                    vals.retain(|(_, r)| *r > 0);
                }
                let mut output = Vec::new();
                if !vals.is_empty() {
                    f.apply(key, &vals, &mut output);
                }
                output.into_iter().for_each(|(v, r)| add(&mut out, (key, v), r));
            }
            out
        }
        Op::Count(a) | Op::CountByReduce(a) => each(&of(*a), |d, r, out| out(counted(d, r), 1)),
        Op::Distinct(a) | Op::DistinctByReduce(a) => each(&of(*a), |d, r, out| {
            if r > 0 || mutant == Some(Mutant::DistinctKeepsNegative) {
                out(d, 1);
            }
        }),
        Op::Threshold(a, level) => each(&of(*a), |d, r, out| out(d, level.apply(r))),
        other => unreachable!("{other:?} is no function of its operands"),
    }
}

/// A datum and its count as a datum.
pub fn counted((k, v): D, count: i64) -> D {
    let count = count.rem_euclid(i64::from(super::program::DOMAIN)) as u32;
    ((k + v) % super::program::DOMAIN, count)
}

fn semijoin(left: &Bag, keys: &Bag) -> Bag {
    let mut counts = BTreeMap::new();
    keys.iter().for_each(|((k, _), r)| *counts.entry(*k).or_insert(0) += r);
    each(left, |d, r, out| out(d, r * counts.get(&d.0).copied().unwrap_or(0)))
}

fn run_loop(spec: &Loop, around: &dyn Fn(usize) -> Rc<Bag>, mutant: Option<Mutant>) -> Result<Bag, Rejected> {
    let rounds_of = |op: &Op| if let Op::EnterAt(_, rounds) = op { *rounds } else { 0 };
    let settled = spec.body.iter().map(rounds_of).max().unwrap_or(0);
    // What is fed back of the round before, and the sources as of then.
    let mut back: HashMap<usize, (Rc<Bag>, Rc<Bag>)> = HashMap::new();
    let mut variables: HashMap<usize, Rc<Bag>> = HashMap::new();
    // Rounds in a row in which no variable changed. A variable whose source is another follows it a round later.
    let mut still = 0;
    for round in 0..MOST_ROUNDS {
        let mut values: Vec<Rc<Bag>> = Vec::new();
        for (index, op) in spec.body.iter().enumerate() {
            let bag = match op {
                Op::Enter(of) | Op::EnterArranged(of) => around(*of),
                Op::EnterAt(of, rounds) => Rc::new(each(&around(*of), |d, r, out| {
                    if d.0 % rounds.max(&1) <= round {
                        out(d, r);
                    }
                })),
                Op::Variable { source, .. } => {
                    let source = source.map_or_else(Rc::default, |at| values[at].clone());
                    match back.get(&index) {
                        None => source,
                        Some((fed, old)) => Rc::new(sum([(&**fed, 1), (&*source, 1), (&**old, -1)])),
                    }
                }
                Op::Loop(inner) => Rc::new(run_loop(inner, &|of| values[of].clone(), mutant)?),
                op => Rc::new(apply(op, &|of| values[of].clone(), mutant)),
            };
            let bag = match mutant {
                Some(Mutant::Loses(_)) => Rc::new(lessened(op, (*bag).clone(), mutant)),
                _ => bag,
            };
            if bag.len() > MOST_DATA || bag.values().any(|r| r.abs() > MOST_COUNT) {
                return Err(Rejected);
            }
            values.push(bag);
        }
        let unchanged = round > 0 && spec.sets.iter().all(|(v, _)| variables.get(v) == Some(&values[*v]));
        still = if unchanged { still + 1 } else { 0 };
        let past_limit = spec.limit.is_none_or(|limit| round > limit);
        let early = mutant == Some(Mutant::LoopStopsEarly) && round == 1;
        if (still > spec.sets.len() && past_limit && round > settled) || early {
            let leaving: Vec<_> = spec.leaves.iter().map(|at| values[*at].clone()).collect();
            return Ok(sum(leaving.iter().map(|bag| (&**bag, 1))));
        }
        for (variable, value) in &spec.sets {
            variables.insert(*variable, values[*variable].clone());
            let Op::Variable { source, .. } = &spec.body[*variable] else { unreachable!("only variables are set") };
            let source = source.map_or_else(Rc::default, |at| values[at].clone());
            let fed = match (spec.limit, back.get(variable)) {
                (Some(limit), Some((fed, _))) if round >= limit => fed.clone(),
                _ => values[*value].clone(),
            };
            back.insert(*variable, (fed, source));
        }
    }
    Err(Rejected)
}
