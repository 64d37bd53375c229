//! Makes a program that fails smaller.

use super::generate::is_modest;
use super::naive::operands;
use super::program::{Event, Op, Program};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(120);

/// The smallest program found that still fails, and how.
pub fn shrink(
    mut program: Program,
    mut fault: String,
    check: impl Fn(&Program) -> Result<(), String>,
) -> (Program, String) {
    let end = Instant::now() + TIME;
    let mut chunk = program.events.len().max(1);
    loop {
        let mut progress = false;
        for candidate in candidates(&program, chunk) {
            if Instant::now() > end {
                return (program, fault);
            }
            // Without this, loops that come to rest would become ones that do not.
            if is_modest(&candidate).is_ok()
                && let Err(text) = check(&candidate)
            {
                (program, fault) = (candidate, text);
                progress = true;
                break;
            }
        }
        if !progress {
            if chunk == 1 {
                return (program, fault);
            }
            chunk /= 2;
        }
    }
}

fn candidates(program: &Program, chunk: usize) -> Vec<Program> {
    let mut out = Vec::new();
    let mut push = |change: &dyn Fn(&mut Program)| {
        let mut candidate = program.clone();
        change(&mut candidate);
        if candidate != *program {
            out.push(candidate);
        }
    };
    // Events first: the last ones close inputs and must stay, for times to complete.
    for start in (0..program.events.len()).step_by(chunk) {
        push(&|p| {
            let end = (start + chunk).min(p.events.len());
            let mut index = 0;
            p.events.retain(|(flow, event)| {
                index += 1;
                !(start..end).contains(&(index - 1)) || must_stay(*flow, event)
            });
        });
    }
    if chunk > 1 {
        return out;
    }
    for flow in 1..program.flows.len() {
        push(&|p| p.events.retain(|(f, _)| *f != flow));
    }
    for (flow, spec) in program.flows.iter().enumerate() {
        for output in 0..spec.outputs.len() {
            push(&|p| {
                p.flows[flow].outputs.remove(output);
            });
        }
        for (index, op) in spec.ops.iter().enumerate() {
            for simpler in simpler(op) {
                push(&|p| p.flows[flow].ops[index] = simpler.clone());
            }
        }
    }
    if program.workers > 1 {
        push(&|p| p.workers -= 1);
    }
    push(&|p| p.eager_merges = false);
    out
}

fn must_stay(flow: usize, event: &Event) -> bool {
    match event {
        Event::Install(_) => true,
        Event::Close { .. } => true,
        Event::Advance { time, .. } => flow < usize::MAX && time.0 >= 10,
        _ => false,
    }
}

/// An operator in place of another: what it reads, or nothing.
fn simpler(op: &Op) -> Vec<Op> {
    match op {
        Op::Input(_) | Op::Import { .. } | Op::ImportStream { .. } => Vec::new(),
        Op::Constant(data) if data.is_empty() => Vec::new(),
        Op::Concat(one) if one.len() == 1 => Vec::new(),
        Op::Loop(spec) => {
            let mut out = vec![Op::Constant(Vec::new())];
            for (index, op) in spec.body.iter().enumerate() {
                if matches!(op, Op::Enter(_) | Op::EnterAt(..) | Op::EnterArranged(_) | Op::Variable { .. }) {
                    continue;
                }
                for inner in simpler(op).into_iter().filter(|op| !matches!(op, Op::Constant(_))) {
                    let mut spec = spec.clone();
                    spec.body[index] = inner;
                    out.push(Op::Loop(spec));
                }
            }
            out
        }
        op => {
            let mut out = vec![Op::Constant(Vec::new())];
            out.extend(operands(op).into_iter().map(|of| Op::Concat(vec![of])));
            out
        }
    }
}
