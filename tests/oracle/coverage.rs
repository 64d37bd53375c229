//! What the programs have in them, counted: a generator that no longer makes something fails here, rather than leave it
//! unchecked.

use super::canary::OPERATORS;
use super::generate::{Shape, program, program_of};
use super::naive::{entered, operands};
use super::program::{Event, Flow, Loop, Op, Program};
use std::collections::{BTreeMap, BTreeSet};

/// What else programs have, besides operators.
const FEATURES: [&str; 36] = [
    "nothing, published",
    "a join of imports",
    "an import after an input closed",
    "1 dimension",
    "2 dimensions",
    "1 worker",
    "2 workers",
    "3 workers",
    "4 workers",
    "in simulation",
    "on threads",
    "several dataflows",
    "an import of an import",
    "an import from two dataflows",
    "a dataflow installed after its source ran on",
    "a retirement",
    "a retirement with importers",
    "a dataflow installed again",
    "events after a retirement",
    "a loop in a loop",
    "an iterate in a loop",
    "mutual recursion",
    "three variables",
    "a variable of another's value",
    "an arrangement for several readers",
    "an arrangement published and read",
    "updates that cancel",
    "inputs at different times",
    "updates ahead of their session",
    "several sessions of an input",
    "an input closed early",
    "a snapshot",
    "a wait in mid-stream",
    "subscriptions that coalesce",
    "a quantum of one",
    "merges at once",
];

fn each_op<'p>(ops: &'p [Op], depth: usize, f: &mut dyn FnMut(&'p Op, usize)) {
    for op in ops {
        f(op, depth);
        if let Op::Loop(spec) = op {
            each_op(&spec.body, depth + 1, f);
        }
    }
}

/// The places that a place of a body is made of, itself included.
fn made_of(body: &[Op], at: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::from([at]);
    let mut next = vec![at];
    while let Some(at) = next.pop() {
        // A variable's source is no use of the other variables' values.
        let of = if matches!(body[at], Op::Variable { .. }) { Vec::new() } else { operands(&body[at]) };
        next.extend(of.into_iter().filter(|of| all.insert(*of)));
    }
    all
}

/// Whether one variable's value is made of another's, and the other way round.
fn is_mutual(Loop { body, sets, .. }: &Loop) -> bool {
    let uses = |value: usize, variable: usize| made_of(body, value).contains(&variable);
    let mut pairs = sets.iter().flat_map(|a| sets.iter().map(move |b| (a, b)));
    pairs.any(|(a, b)| a.0 < b.0 && uses(a.1, b.0) && uses(b.1, a.0))
}

fn of_flow(flow: &Flow, found: &mut BTreeSet<&'static str>) {
    each_op(&flow.ops, 0, &mut |op, depth| {
        found.insert(op.name());
        if let Op::Loop(spec) = op {
            let source = |op: &Op| matches!(op, Op::Variable { source: Some(at), .. } if matches!(spec.body[*at], Op::Variable { .. }));
            let known = [
                (depth > 0, "a loop in a loop"),
                (depth > 0 && spec.iterate, "an iterate in a loop"),
                (is_mutual(spec), "mutual recursion"),
                (spec.sets.len() >= 3, "three variables"),
                (spec.body.iter().any(source), "a variable of another's value"),
            ];
            found.extend(known.iter().filter(|(is, _)| *is).map(|(_, name)| *name));
        }
    });
    let mut readers = vec![0; flow.ops.len()];
    for op in &flow.ops {
        let read = match op {
            Op::Join(a, b, how, _) if format!("{how:?}") != "Collections" => vec![*a, *b],
            Op::Reduce(a, _) | Op::ViewFilter(a, _) | Op::ViewNegate(a) => vec![*a],
            Op::Loop(spec) => entered(spec),
            _ => Vec::new(),
        };
        read.into_iter().for_each(|at| readers[at] += 1);
    }
    let published = |at: &usize| flow.publishes.contains(at);
    let import = |at: &usize| matches!(flow.ops[*at], Op::Import { .. });
    if flow.ops.iter().any(|op| matches!(op, Op::Join(a, b, ..) if import(a) && import(b))) {
        found.insert("a join of imports");
    }
    if flow.publishes.iter().any(|at| flow.ops[*at] == Op::Constant(Vec::new())) {
        found.insert("nothing, published");
    }
    if readers.iter().any(|count| *count >= 2) {
        found.insert("an arrangement for several readers");
    }
    if (0..readers.len()).any(|at| readers[at] > 0 && published(&at)) {
        found.insert("an arrangement published and read");
    }
    if flow.sources().collect::<BTreeSet<_>>().len() >= 2 {
        found.insert("an import from two dataflows");
    }
}

fn of_events(program: &Program, found: &mut BTreeSet<&'static str>) {
    let mut installs = BTreeMap::<usize, usize>::new();
    // By flow, input and session.
    let mut times = BTreeMap::<(usize, usize, usize), (u64, u64)>::new();
    let mut sums = BTreeMap::new();
    let mut retired = false;
    let mut closed = BTreeSet::new();
    let closing = program.events.iter().rposition(|(_, event)| matches!(event, Event::Update { .. })).unwrap_or(0);
    for (index, (flow, event)) in program.events.iter().enumerate() {
        match event {
            Event::Install(flow) => {
                *installs.entry(*flow).or_default() += 1;
                let ran = |source: usize| times.iter().any(|((flow, ..), time)| *flow == source && *time > (0, 0));
                if program.flows[*flow].sources().any(ran) {
                    found.insert("a dataflow installed after its source ran on");
                }
                if program.flows[*flow].sources().any(|source| closed.contains(&source)) {
                    found.insert("an import after an input closed");
                }
                times.retain(|(other, ..), _| other != flow);
            }
            Event::Retire(_) => {
                found.insert("a retirement");
            }
            Event::RetireCascade(flow) => {
                if program.flows.iter().any(|other| other.sources().any(|source| source == *flow)) {
                    found.insert("a retirement with importers");
                }
            }
            Event::Advance { input, session, time } => {
                times.insert((*flow, *input, *session), *time);
                let of_first = times.iter().filter(|((f, _, session), _)| f == flow && *session == 0);
                if of_first.map(|(_, time)| *time).collect::<BTreeSet<_>>().len() >= 2 && index < closing {
                    found.insert("inputs at different times");
                }
            }
            Event::Update { input, session, datum, time, diff } => {
                let sum: &mut i64 = sums.entry((*flow, *input, *datum)).or_default();
                if *sum != 0 && *sum + diff == 0 {
                    found.insert("updates that cancel");
                }
                *sum += diff;
                if times.get(&(*flow, *input, *session)).is_none_or(|at| at != time) {
                    found.insert("updates ahead of their session");
                }
                if retired {
                    found.insert("events after a retirement");
                }
            }
            Event::Clone { .. } => {
                found.insert("several sessions of an input");
            }
            Event::Close { .. } => {
                closed.insert(*flow);
                found.extend((index < closing).then_some("an input closed early"));
            }
            Event::Snapshot => {
                found.insert("a snapshot");
            }
            Event::Wait => {
                found.insert("a wait in mid-stream");
            }
            Event::Flush { .. } | Event::Step(_) | Event::Poll => {}
        }
        retired |= matches!(event, Event::Retire(_) | Event::RetireCascade(_));
    }
    if installs.values().any(|count| *count >= 2) {
        found.insert("a dataflow installed again");
    }
}

/// All that a program has.
fn features(program: &Program) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    program.flows.iter().for_each(|flow| of_flow(flow, &mut found));
    of_events(program, &mut found);
    let imports = |flow: &Flow, op: usize| matches!(flow.ops[op], Op::Import { .. });
    let again = program
        .flows
        .iter()
        .flat_map(|flow| &flow.ops)
        .any(|op| matches!(op, Op::Import { flow, op } if imports(&program.flows[*flow], *op)));
    let known = [
        (program.dimensions == 1, "1 dimension"),
        (program.dimensions == 2, "2 dimensions"),
        (program.workers == 1, "1 worker"),
        (program.workers == 2, "2 workers"),
        (program.workers == 3, "3 workers"),
        (program.workers == 4, "4 workers"),
        (program.simulated.is_some(), "in simulation"),
        (program.simulated.is_none(), "on threads"),
        (program.flows.len() > 1, "several dataflows"),
        (again, "an import of an import"),
        (program.capacity.is_some(), "subscriptions that coalesce"),
        (program.quantum == 1, "a quantum of one"),
        (program.eager_merges, "merges at once"),
    ];
    found.extend(known.iter().filter(|(is, _)| *is).map(|(_, name)| *name));
    found
}

/// The inputs saved for the fuzz target, and what their names say that they have.
const SAVED: [(&str, &[&str]); 11] = [
    ("a-constant-of-nothing-is-published", &["nothing, published"]),
    ("a-query-retired-in-mid-stream", &["a retirement", "events after a retirement"]),
    ("a-reduce-with-a-quantum-of-one-partial-times", &["reduce", "a quantum of one", "2 dimensions"]),
    ("a-stream-after-its-source-ran-on", &["import of a stream", "a dataflow installed after its source ran on"]),
    ("an-eager-variable-of-three-workers", &["variable, eager", "3 workers"]),
    ("an-import-after-an-input-closed", &["an import after an input closed"]),
    ("counts-with-a-quantum-of-one", &["count", "a quantum of one", "1 dimension"]),
    ("installed-again-after-a-cascade", &["a dataflow installed again", "a retirement with importers"]),
    ("joins-of-imports-partial-times", &["a join of imports", "2 dimensions"]),
    ("loops-within-loops-partial-times", &["a loop in a loop", "2 dimensions"]),
    ("subscriptions-that-coalesce", &["subscriptions that coalesce"]),
];

/// A changed generator makes other programs of the saved inputs: they still have what they are there for.
#[test]
fn saved_inputs_are_what_they_are_called() {
    let saved = crate::saved::directory().join("dataflow");
    let mut wrong = Vec::new();
    for (name, has) in SAVED {
        let is_so = |bytes: &[u8]| {
            program_of(bytes).map(|program| features(&program)).is_some_and(|f| has.iter().all(|one| f.contains(one)))
        };
        if !std::fs::read(saved.join(name)).is_ok_and(|bytes| is_so(&bytes)) {
            let other = (0..5000_u32).map(u32::to_be_bytes).find(|bytes| is_so(bytes));
            wrong.push(format!("{name} should have {has:?}, as {other:?} has"));
        }
    }
    let names = std::fs::read_dir(&saved).expect("there are saved inputs");
    let names = names.map(|entry| entry.expect("readable").file_name().into_string().expect("as saved"));
    wrong.extend(names.filter(|name| SAVED.iter().all(|(known, _)| known != name)).map(|name| name + " has no line"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each operator and each feature is in several of some hundred programs, and nothing is in one that has no line here.
#[test]
fn programs_have_everything() {
    let mut counts = BTreeMap::new();
    for seed in 0..100 {
        for (dimensions, simulated) in [(1, false), (1, true), (2, false), (2, true)] {
            let shape = Shape { dimensions, workers: 1 + seed as usize % 4, simulated };
            features(&program(seed, shape)).into_iter().for_each(|name| *counts.entry(name).or_insert(0) += 1);
        }
    }
    let known: BTreeSet<_> = OPERATORS.iter().chain(&FEATURES).copied().collect();
    println!("{counts:#?}");
    let few: Vec<_> = known.iter().filter(|name| counts.get(*name).is_none_or(|count| *count < 6)).collect();
    assert!(few.is_empty(), "in fewer than six of 400 programs: {few:?}");
    let unknown: Vec<_> = counts.keys().filter(|name| !known.contains(*name)).collect();
    assert!(unknown.is_empty(), "without a line: {unknown:?}");
}
