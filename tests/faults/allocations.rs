//! The n-th allocation of a worker fails, for every n until the program runs to its end.
//!
//! Whoever asked is the one that ends: the program, the query that imports from it, or the witness. What a merge asks for
//! it can do without.

use super::common::{Witness, heavy, simulated};
use super::program::{Fuse, Importer, Program, ROUNDS};
use kpg::prelude::*;
use kpg::runtime::{Ending, Failure};
use std::collections::{BTreeMap, BTreeSet};

/// So many allocations are further off than any.
const NEVER: u64 = 1 << 40;

fn is_injected(failure: &Failure) -> bool {
    matches!(failure, Failure::OutOfMemory(text) if text.contains("injected"))
}

/// Who ended by the failed allocation: `error` is one of `query`'s handles'.
fn cause(query: &str, error: &Error) -> String {
    match error {
        Error::Poisoned { query: of, operator, failure } if is_injected(failure) && of == query => {
            format!("{query}: {operator}")
        }
        Error::SourceEnded { query: of, source, ending } if of == query => {
            let mut ending = ending;
            let mut source = source;
            while let Ending::Source { query, ending: inner } = ending {
                (source, ending) = (query, inner);
            }
            let Ending::Poisoned { operator, failure } = ending else { panic!("{query} ended with {error:?}") };
            assert!(is_injected(failure), "{query} ended with {error:?}");
            format!("{source}: {operator}")
        }
        Error::InstallPanicked { query: of, message } if of == query && message.contains("injected") => {
            format!("{query}: its install")
        }
        Error::SourceGone { query: of, source } if of == query => format!("{source}: gone"),
        other => panic!("{query} ended with {other:?}"),
    }
}

/// Runs the program while the `nth` allocation of `worker` fails: who ended, if anyone, and how many were made.
fn run(seed: u64, worker: usize, nth: u64) -> (Option<String>, u64) {
    let engine = simulated(seed);
    let arena = engine.arenas()[worker].clone();
    let mut witness = Witness::install(&engine);
    let mut causes = BTreeMap::<&str, String>::new();
    arena.fail_after(nth);
    let mut importer = None;
    let mut program = match Program::install(&engine, &Fuse::new(0), &witness) {
        Ok(program) => Some(program),
        Err(error) => {
            causes.insert("program", cause("program", &error));
            None
        }
    };
    for t in 0..ROUNDS {
        if let (Some(program), None) = (&mut program, causes.get("program"))
            && let Err(error) = program.feed(t)
        {
            causes.insert("program", cause("program", &error));
        }
        if !causes.contains_key("witness")
            && let Err(error) = witness.try_check()
        {
            causes.insert("witness", cause("witness", &error));
        }
        let Some(program) = &mut program else { continue };
        if !causes.contains_key("program")
            && let Err(error) = program.hear(t)
        {
            causes.insert("program", cause("program", &error));
        }
        if t == 1 && !causes.contains_key("program") {
            match Importer::install(&engine, program) {
                Ok(installed) => importer = Some(installed),
                Err(error) => drop(causes.insert("importer", cause("importer", &error))),
            }
        }
    }
    if let Some(importer) = &mut importer {
        match importer.hear(ROUNDS - 1) {
            Ok(()) => assert_eq!(importer.query.error(), None),
            Err(error) => drop(causes.insert("importer", cause("importer", &error))),
        }
    }
    let made = nth - arena.fails_in();
    let failed = arena.fails_in() == 0;
    arena.fail_after(0);
    // One failure, one cause: whoever ended, ended by it.
    let mut roots: Vec<String> = causes.into_values().filter(|cause| !cause.ends_with(": gone")).collect();
    roots.sort();
    roots.dedup();
    assert!(roots.len() <= usize::from(failed), "allocation {nth} of worker {worker}: {roots:?}");
    if !roots.iter().any(|cause| cause.starts_with("witness")) {
        witness.check();
    }
    drop(importer);
    program.into_iter().for_each(|program| {
        program.end(|| {
            engine.step();
        })
    });
    let queries = engine.metrics().queries;
    assert_eq!(queries.len(), 1, "allocation {nth} of worker {worker}: still there: {queries:?}");
    // The engine is whole: all of it once more, and right.
    if nth.is_multiple_of(16) {
        let mut witness = Witness::install(&engine);
        (0..4).for_each(|_| witness.check());
    }
    (roots.pop(), made)
}

#[test]
fn at_every_allocation() {
    let mut ended_by = BTreeSet::new();
    for worker in 0..2 {
        let (ended, made) = run(2, worker, NEVER);
        assert_eq!(ended, None);
        let mut ends = BTreeMap::<_, u64>::new();
        let step = if heavy() { 1 } else { (made / 400).max(1) };
        for nth in (1..=made).step_by(step as usize) {
            *ends.entry(run(2, worker, nth).0).or_insert(0) += 1;
        }
        println!("worker {worker}: {made} allocations: {ends:?}");
        ended_by.extend(ends.into_keys().flatten());
    }
    // On one worker or the other: where numbers are equally far apart, as the witness's are on one, they take no memory.
    for query in ["witness", "program", "importer"] {
        assert!(ended_by.iter().any(|cause| cause.starts_with(query)), "no allocation of {query} failed");
    }
}
