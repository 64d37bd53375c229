//! Random programs: each a function of its seed.
//!
//! Loops come to rest by construction: either what is fed back stops at a round limit, or it only grows
//! (value = distinct(distinct(anything) + variable)), or labels only shrink. Programs whose naive values grow too large
//! are made anew.

use super::naive::{Naive, Rejected, before, join};
use super::program::*;
use super::rng::Rng;

/// What to make.
#[derive(Copy, Clone, Debug)]
pub struct Shape {
    pub dimensions: usize,
    pub workers: usize,
    pub simulated: bool,
}

/// The program of a seed.
pub fn program(seed: u64, shape: Shape) -> Program {
    let kind = 2 * (shape.dimensions as u64 - 1) + u64::from(shape.simulated);
    for attempt in 0.. {
        let mut rng = Rng::new(seed.wrapping_mul(1000).wrapping_add(attempt) * 4 + kind);
        let program = draft(&mut rng, shape, seed, (attempt / 4) as usize);
        if is_modest(&program).is_ok() {
            return program;
        }
    }
    unreachable!("smaller and smaller programs are modest at last")
}

/// The program that bytes choose, simulated; nothing if they choose none that is modest.
pub fn program_of(bytes: &[u8]) -> Option<Program> {
    let mut rng = Rng::of(bytes);
    let shape = Shape { dimensions: rng.range(1, 2), workers: rng.range(1, 4), simulated: true };
    let seed = rng.next();
    (0..4).map(|attempt| draft(&mut rng, shape, seed, 3 * attempt)).find(|program| is_modest(program).is_ok())
}

/// All times that a program is looked at.
pub fn points(program: &Program) -> Vec<Time> {
    let size = program.size + 3;
    let second = if program.dimensions == 1 { 1 } else { size };
    (0..size).flat_map(|a| (0..second).map(move |b| (a, b))).collect()
}

/// Evaluates all at all times, as if each flow started at the first.
pub fn is_modest(program: &Program) -> Result<(), Rejected> {
    let mut naive = Naive::new(program);
    for (flow, event) in &program.events {
        if let Event::Update { input, datum, time, diff, .. } = event {
            naive.update(*flow, *input, *datum, *time, *diff);
        }
    }
    for (index, flow) in program.flows.iter().enumerate() {
        naive.firsts[index] = Some((0, 0));
        for time in points(program) {
            for op in 0..flow.ops.len() {
                naive.value(index, op, time)?;
            }
        }
    }
    Ok(())
}

fn draft(rng: &mut Rng, shape: Shape, seed: u64, smaller: usize) -> Program {
    let Shape { dimensions, workers, simulated } = shape;
    let long = rng.chance(10);
    let size = if dimensions == 1 { rng.range(2, if long { 40 } else { 10 }) } else { rng.range(2, 5) } as u64;
    let most = 12usize.saturating_sub(smaller).max(1);
    // A stream is published where times are totally ordered.
    let streams = dimensions == 1;
    let mut flows = vec![first_flow(rng, most, streams)];
    for _ in 0..rng.below(4) {
        let flow = later_flow(rng, &flows, most / 2 + 1, streams);
        flows.push(flow);
    }
    let mut program = Program {
        dimensions,
        workers,
        simulated: simulated.then_some(seed),
        eager_merges: rng.chance(50),
        quantum: *rng.pick(&[1, 5, 50, 4096]),
        capacity: rng.chance(20).then(|| rng.range(1, 8)),
        flows,
        events: Vec::new(),
        size,
    };
    program.events = events(rng, &program, if long { 300 } else { 60 });
    program
}

fn first_flow(rng: &mut Rng, most: usize, streams: bool) -> Flow {
    let mut flow = Flow { inputs: rng.range(1, 3), ..Flow::default() };
    flow.ops.extend((0..flow.inputs).map(Op::Input));
    if rng.chance(10) {
        // Nothing as often as something.
        let count = rng.below(4).saturating_sub(1);
        flow.ops.push(Op::Constant((0..count).map(|_| datum(rng)).collect()));
    }
    grow(rng, &mut flow.ops, most, 0, true);
    finish(rng, &mut flow, streams);
    flow
}

fn later_flow(rng: &mut Rng, flows: &[Flow], most: usize, streams: bool) -> Flow {
    let mut flow = Flow { inputs: rng.below(2), ..Flow::default() };
    flow.ops.extend((0..flow.inputs).map(Op::Input));
    let published: Vec<_> =
        flows.iter().enumerate().flat_map(|(flow, f)| f.publishes.iter().map(move |op| (flow, *op))).collect();
    for _ in 0..rng.range(1, 3) {
        let (flow_index, op) = *rng.pick(&published);
        flow.ops.push(Op::Import { flow: flow_index, op });
    }
    let published: Vec<_> =
        flows.iter().enumerate().flat_map(|(flow, f)| f.streams.iter().map(move |op| (flow, *op))).collect();
    if !published.is_empty() && rng.chance(40) {
        let (flow_index, op) = *rng.pick(&published);
        flow.ops.push(Op::ImportStream { flow: flow_index, op });
    }
    grow(rng, &mut flow.ops, most, 0, true);
    finish(rng, &mut flow, streams);
    flow
}

fn finish(rng: &mut Rng, flow: &mut Flow, streams: bool) {
    let count = flow.ops.len();
    flow.outputs.push(count - 1);
    flow.outputs.extend((0..rng.below(3)).map(|_| rng.below(count)));
    flow.publishes = (0..rng.range(1, 2)).map(|_| rng.below(count)).collect();
    // What is complete from the start, too, has to be shown.
    flow.publishes.extend(flow.ops.iter().position(|op| *op == Op::Constant(Vec::new())));
    if streams && rng.chance(40) {
        flow.streams.push(rng.below(count));
    }
    for list in [&mut flow.outputs, &mut flow.publishes] {
        list.sort();
        list.dedup();
    }
}

pub fn datum(rng: &mut Rng) -> D {
    // Few data, so that updates meet.
    let most = if rng.chance(70) { 4 } else { DOMAIN as usize };
    (rng.below(most) as u32, rng.below(most) as u32)
}

fn fun(rng: &mut Rng) -> Fun {
    let n = rng.below(DOMAIN as usize) as u32;
    *rng.pick(&[Fun::Swap, Fun::Key, Fun::AddKey(n), Fun::AddVal(n), Fun::Sum, Fun::Halve, Fun::Const(n)])
}

fn pred(rng: &mut Rng) -> Pred {
    let n = rng.below(DOMAIN as usize) as u32;
    *rng.pick(&[
        Pred::KeyBelow(n),
        Pred::ValBelow(n),
        Pred::Ordered,
        Pred::SumIs(2, n % 2),
        Pred::SumIs(3, n % 3),
        Pred::Never,
    ])
}

fn join_fn(rng: &mut Rng) -> JoinFn {
    let n = rng.below(DOMAIN as usize) as u32;
    *rng.pick(&[JoinFn::Vals, JoinFn::KeyAndRight, JoinFn::RightAndLeft, JoinFn::SumUnless(n)])
}

fn how(rng: &mut Rng) -> How {
    *rng.pick(&[How::Collections, How::Arranged, How::Core, How::Core, How::ViewRight, How::ViewLeft, How::Own])
}

fn reducer(rng: &mut Rng) -> Reducer {
    use Reducer::*;
    *rng.pick(&[Count, Total, Min, Max, Sum, Positive, Echo, Twice])
}

/// Adds up to `most` random operators.
fn grow(rng: &mut Rng, ops: &mut Vec<Op>, most: usize, depth: usize, outermost: bool) {
    for _ in 0..rng.range(1, most) {
        // The latest more often than others.
        let len = ops.len();
        let any = |rng: &mut Rng| if rng.chance(40) { len - 1 } else { rng.below(len) };
        let a = any(rng);
        let next = match rng.below(if depth < 2 { 29 } else { 26 }) {
            0 => Op::Map(a, fun(rng)),
            1 => Op::FlatMap(a, fun(rng), fun(rng)),
            2 => Op::Filter(a, pred(rng)),
            3 => Op::Negate(a),
            4 | 5 => Op::Concat((0..if rng.chance(15) { 6 } else { 2 }).map(|_| any(rng)).collect()),
            6 => Op::Explode(a, fun(rng), [0; 3].map(|_| rng.below(4) as i64 - 1)),
            7 => Op::Consolidate(a),
            8 if outermost => Op::Delay { of: a, add: rng.below(3) as u64, round: rng.range(1, 3) as u64 },
            8 | 9 => Op::ViewFilter(a, pred(rng)),
            10 => Op::ViewNegate(a),
            11 => Op::Flatten(a),
            12..=14 => Op::Join(a, any(rng), join_fn(rng), how(rng)),
            15 => Op::Semijoin(a, any(rng)),
            16 => Op::Antijoin(a, any(rng)),
            17 | 18 => Op::Reduce(a, reducer(rng)),
            19 => rng.pick(&[Op::Count(a), Op::Distinct(a)]).clone(),
            20 => {
                let level = [Level::Modulo(2), Level::Modulo(3), Level::AtMost(1), Level::Absolute, Level::Negative];
                Op::Threshold(a, *rng.pick(&level))
            }
            21 => Op::FlatMapRef(a, fun(rng), fun(rng)),
            22 => Op::Notified(a),
            23 => Op::Difference(a, any(rng)),
            24 => rng.pick(&[Op::CountByReduce(a), Op::DistinctByReduce(a)]).clone(),
            25 => Op::Inspect(a),
            _ => make_loop(rng, ops, most.min(6), depth),
        };
        ops.push(next);
    }
}

fn make_loop(rng: &mut Rng, around: &mut Vec<Op>, most: usize, depth: usize) -> Op {
    Op::Loop(Box::new(match rng.below(4) {
        0 => shrinking(rng, around),
        1 | 2 => growing(rng, around, most, depth),
        _ => bounded(rng, around, most, depth),
    }))
}

/// A place around the loop, distinct if asked for.
fn source(rng: &mut Rng, around: &mut Vec<Op>, distinct: bool) -> usize {
    let at = rng.below(around.len());
    if distinct {
        around.push(Op::Distinct(at));
        return around.len() - 1;
    }
    at
}

fn enter(rng: &mut Rng, around: &[Op]) -> Op {
    let at = rng.below(around.len());
    match rng.below(4) {
        0 => Op::EnterAt(at, rng.range(1, 5) as u32),
        1 | 2 => Op::EnterArranged(at),
        _ => Op::Enter(at),
    }
}

/// Least labels, spread over edges.
fn shrinking(rng: &mut Rng, around: &mut Vec<Op>) -> Loop {
    let (labels, edges) = (source(rng, around, true), source(rng, around, true));
    let how = *rng.pick(&[How::Collections, How::Core, How::ViewRight]);
    let edges = if rng.chance(50) { Op::EnterArranged(edges) } else { Op::Enter(edges) };
    let source = Some(0);
    let body = vec![
        Op::Enter(labels),
        Op::Variable { source, eager: false },
        edges,
        Op::Join(1, 2, JoinFn::RightAndLeft, how),
        Op::Concat(vec![3, 0]),
        Op::Reduce(4, Reducer::Min),
    ];
    Loop { body, sets: vec![(1, 5)], leaves: vec![5], limit: None, iterate: rng.chance(60) }
}

/// Variables that only grow, whatever the body.
fn growing(rng: &mut Rng, around: &mut Vec<Op>, most: usize, depth: usize) -> Loop {
    let count = if rng.chance(60) { 1 } else { 2 };
    let mut body = vec![Op::Enter(source(rng, around, true))];
    let iterate = count == 1 && rng.chance(60);
    if rng.chance(30) && !iterate {
        body[0] = Op::EnterAt(rng.below(around.len()), rng.range(1, 4) as u32);
    }
    let mut sets = Vec::new();
    for _ in 0..count {
        let source = (iterate || rng.chance(60)).then_some(0);
        sets.push((body.len(), 0));
        body.push(Op::Variable { source, eager: !iterate && rng.chance(20) });
    }
    body.extend((0..rng.below(3)).map(|_| enter(rng, around)));
    grow(rng, &mut body, most, depth + 1, false);
    for set in &mut sets {
        let last = if rng.chance(50) { body.len() - 1 } else { rng.below(body.len()) };
        body.push(Op::Distinct(last));
        body.push(Op::Concat(vec![body.len() - 1, set.0]));
        body.push(Op::Distinct(body.len() - 1));
        set.1 = body.len() - 1;
    }
    let leaves = if iterate || rng.chance(60) { vec![sets[0].1] } else { vec![sets[0].1, rng.below(body.len())] };
    Loop { body, sets, leaves, limit: None, iterate }
}

/// Anything, up to a round.
fn bounded(rng: &mut Rng, around: &mut [Op], most: usize, depth: usize) -> Loop {
    let mut body: Vec<_> = (0..rng.range(1, 2)).map(|_| enter(rng, around)).collect();
    let mut sets = Vec::new();
    for _ in 0..rng.range(1, 3) {
        let source = rng.chance(60).then(|| rng.below(body.len()));
        sets.push((body.len(), 0));
        body.push(Op::Variable { source, eager: rng.chance(30) });
    }
    grow(rng, &mut body, most, depth + 1, false);
    for set in &mut sets {
        set.1 = if rng.chance(50) { body.len() - 1 } else { rng.below(body.len()) };
    }
    let leaves = (0..rng.range(1, 2)).map(|_| rng.below(body.len())).collect();
    Loop { body, sets, leaves, limit: Some(rng.range(1, 4) as u32), iterate: false }
}

/// A session of an input, as events are made for it.
struct Session {
    flow: usize,
    input: usize,
    session: usize,
    time: Time,
    open: bool,
    /// In a hundred, how often it moves on, and how far at most.
    pace: (usize, u64),
}

fn random_time(rng: &mut Rng, program: &Program, from: Time, reach: u64) -> Time {
    let most = program.size - 1;
    let mut one = |at: u64| (at + rng.below(reach as usize + 1) as u64).min(most.max(at));
    let time = (one(from.0), one(from.1));
    if program.dimensions == 1 { (time.0, 0) } else { time }
}

fn events(rng: &mut Rng, program: &Program, most: usize) -> Vec<(usize, Event)> {
    let mut out = vec![(0, Event::Install(0))];
    let mut sessions: Vec<Session> = Vec::new();
    let mut past: Vec<(usize, usize, D, i64)> = Vec::new();
    // Flows are installed in their order; which of them were not retired since, and so what a retirement does.
    let mut installed = 1;
    let mut live = vec![false; program.flows.len()];
    live[0] = true;
    open(rng, program, 0, &mut sessions);
    let length = rng.range(5, most);
    let skip = rng.range(1, 40);
    for _ in 0..length {
        if rng.chance(skip) {
            out.push((0, Event::Step(rng.range(1, 30))));
        }
        if installed < program.flows.len() && rng.chance(12) {
            installed += 1;
            install(rng, program, &mut live, installed - 1, &mut sessions, &mut out);
        }
        match rng.below(100) {
            0..=3 => out.push((rng.below(installed), Event::Poll)),
            4..=9 => out.push((rng.below(installed), Event::Wait)),
            10..=12 => out.push((rng.below(installed), Event::Snapshot)),
            13 | 14 if installed > 1 => {
                let flow = rng.below(installed);
                let cascade = rng.chance(30);
                out.push((flow, if cascade { Event::RetireCascade(flow) } else { Event::Retire(flow) }));
                retire(program, &mut live, flow, cascade);
                sessions.retain(|session| live[session.flow]);
            }
            15..=17 if live[..installed].contains(&false) => {
                let flow = live.iter().position(|live| !live).expect("just seen");
                install(rng, program, &mut live, flow, &mut sessions, &mut out);
            }
            _ if sessions.is_empty() => {}
            _ => session_event(rng, program, &mut sessions, &mut past, &mut out),
        }
    }
    for flow in installed..program.flows.len() {
        install(rng, program, &mut live, flow, &mut sessions, &mut out);
    }
    let end = (program.size + 8, if program.dimensions == 1 { 0 } else { program.size + 8 });
    let close = rng.chance(50);
    while !sessions.is_empty() {
        let Session { flow, input, session, open, .. } = sessions.swap_remove(rng.below(sessions.len()));
        if open {
            let time = end;
            let event = if close { Event::Close { input, session } } else { Event::Advance { input, session, time } };
            out.push((flow, event));
        }
        if rng.chance(20) {
            out.push((0, Event::Step(rng.range(1, 10))));
        }
    }
    out
}

fn open(rng: &mut Rng, program: &Program, flow: usize, sessions: &mut Vec<Session>) {
    for input in 0..program.flows[flow].inputs {
        let pace = *rng.pick(&[(15, 1), (15, 2), (5, 1), (40, 3), (60, program.size)]);
        sessions.push(Session { flow, input, session: 0, time: (0, 0), open: true, pace });
    }
}

/// Installs a flow that is not there, if all that it imports from is.
fn install(
    rng: &mut Rng,
    program: &Program,
    live: &mut [bool],
    flow: usize,
    sessions: &mut Vec<Session>,
    out: &mut Vec<(usize, Event)>,
) {
    out.push((flow, Event::Install(flow)));
    if !live[flow] && program.flows[flow].sources().all(|source| live[source]) {
        live[flow] = true;
        open(rng, program, flow, sessions);
    }
}

/// What a retirement does: nothing to a flow that others import from, unless those end as well.
fn retire(program: &Program, live: &mut [bool], flow: usize, cascade: bool) {
    let importers: Vec<_> =
        (0..live.len()).filter(|o| live[*o] && program.flows[*o].sources().any(|s| s == flow)).collect();
    if live[flow] && (cascade || importers.is_empty()) {
        live[flow] = false;
        importers.into_iter().for_each(|importer| retire(program, live, importer, true));
    }
}

fn session_event(
    rng: &mut Rng,
    program: &Program,
    sessions: &mut Vec<Session>,
    past: &mut Vec<(usize, usize, D, i64)>,
    out: &mut Vec<(usize, Event)>,
) {
    let chosen = rng.below(sessions.len());
    let others = sessions.len();
    let Session { flow, input, session, time, open, pace } = &mut sessions[chosen];
    let (flow, input, session) = (*flow, *input, *session);
    if !*open {
        return;
    }
    if rng.chance(pace.0) {
        *time = random_time(rng, program, *time, pace.1);
        out.push((flow, Event::Advance { input, session, time: *time }));
        return;
    }
    match rng.below(100) {
        0..=2 => {
            *open = false;
            out.push((flow, Event::Close { input, session }));
        }
        3..=5 => out.push((flow, Event::Flush { input, session })),
        6..=8 if others < 8 => {
            let origin = sessions.iter().find(|s| s.flow == flow && s.input == input && s.session == 0);
            let Some((time, pace)) = origin.filter(|s| s.open).map(|s| (s.time, s.pace)) else { return };
            let session = sessions.iter().filter(|s| s.flow == flow && s.input == input).count();
            sessions.push(Session { flow, input, session, time, open: true, pace });
            out.push((flow, Event::Clone { input }));
        }
        kind => {
            let at = if kind < 60 { *time } else { random_time(rng, program, *time, program.size) };
            let again = past.iter().filter(|p| p.0 == flow && p.1 == input).count();
            let (datum, diff) = if again > 0 && rng.chance(35) {
                let all: Vec<_> = past.iter().filter(|p| p.0 == flow && p.1 == input).collect();
                let (_, _, datum, diff) = **rng.pick(&all);
                (datum, -diff)
            } else {
                (datum(rng), *rng.pick(&[1, 1, 1, 1, 2, -1, -2]))
            };
            past.push((flow, input, datum, diff));
            debug_assert!(before(*time, at) && join(*time, at) == at);
            out.push((flow, Event::Update { input, session, datum, time: at, diff }));
        }
    }
}
