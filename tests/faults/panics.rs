//! Panics at the n-th call of user code, for every n until the program runs to its end.

use super::common::{SOON, Witness, heavy, quiet, simulated, unaccounted};
use super::program::{Fuse, Importer, Program, ROUNDS};
use kpg::prelude::*;
use kpg::runtime::{Ending, Failure};
use std::collections::BTreeMap;

/// Feeds and hears all rounds; the error with which that ended.
fn rounds(
    engine: &Engine,
    program: &mut Program,
    importer: &mut Option<Importer>,
    witness: &mut Witness,
) -> Result<(), Error> {
    for t in 0..ROUNDS {
        let fed = program.feed(t);
        witness.check();
        fed?;
        program.hear(t)?;
        if t == 1 {
            *importer = match Importer::install(engine, program) {
                Err(Error::SourceGone { .. }) => return Err(program.error().expect("it is gone")),
                installed => Some(installed.unwrap()),
            };
        }
    }
    if let Err(error) = importer.as_mut().expect("it was installed").hear(ROUNDS - 1) {
        assert!(
            matches!(&error, Error::SourceEnded { query, source, .. } if query == "importer" && source == "program")
        );
        return Err(program.error().expect("what the importer reads has ended"));
    }
    Ok(())
}

/// The operators that may be blamed for a panic at `place`.
fn blamed(place: &str) -> &[&str] {
    match place {
        // Its clones, hashes and comparisons are those of whoever handles keys.
        "key" => &["wrap", "keyed, exchange", "keyed", "least", "join"],
        "pair" => &["join"],
        "map" => &["map"],
        "flat_map" => &["flat_map"],
        "filter" => &["filter"],
        "mine" => &["mine"],
        "wrap" => &["wrap"],
        "least" => &["least"],
        "halve" => &["halve"],
        "inspect" => &["inspect"],
        other => panic!("no such place: {other}"),
    }
}

/// Runs the program with a fuse for the `at`-th call: where it blew, and who was blamed.
fn run(engine: &Engine, at: u64, mut step: impl FnMut()) -> Option<(&'static str, String)> {
    let fuse = Fuse::new(at);
    let mut witness = Witness::install(engine);
    let before = unaccounted(engine);
    let mut importer = None;
    let installed = Program::install(engine, &fuse, &witness);
    let blame = match installed {
        Ok(mut program) => {
            let ended = rounds(engine, &mut program, &mut importer, &mut witness);
            // Idle workers merge on, which is user code too.
            let mut calls = 0;
            while std::mem::replace(&mut calls, fuse.calls()) != fuse.calls() {
                (0..100).for_each(|_| step());
            }
            let ended = ended.and_then(|()| program.error().map_or(Ok(()), Err));
            let blame = ended.err().map(|error| match error {
                Error::Poisoned { query, operator, failure: Failure::Panic(text) } => {
                    let place = fuse.blown().expect("nothing else panics");
                    assert_eq!((query.as_str(), text), ("program", format!("the fuse at {place}")));
                    assert!(blamed(place).contains(&operator.as_str()), "{operator} is blamed for {place}");
                    operator
                }
                other => panic!("call {at}: {other:?}"),
            });
            if let (Some(_), Some(importer)) = (&blame, &mut importer) {
                // Told with its source's own ending, soon.
                let heard = importer.copy.wait_past(&u64::MAX, SOON);
                let Err(Error::SourceEnded { ending: Ending::Poisoned { .. }, .. }) = heard else {
                    panic!("call {at}: the importer heard {heard:?}");
                };
            }
            witness.check();
            drop(importer);
            program.end(&mut step);
            blame
        }
        Err(Error::InstallPanicked { query, message }) => {
            assert_eq!((query.as_str(), message.as_str()), ("program", "panicked: the fuse at install"));
            Some("install".to_string())
        }
        Err(other) => panic!("call {at}: {other:?}"),
    };
    assert_eq!(fuse.blown().is_some(), blame.is_some(), "call {at}: a panic that nobody hears of");
    let mut queries = engine.metrics().queries;
    queries.retain(|query| query.name != "witness");
    assert!(queries.is_empty(), "call {at}: still there: {queries:?}");
    (0..3).for_each(|_| witness.check());
    let deadline = std::time::Instant::now() + SOON;
    // What was freed elsewhere is still on its way for a moment.
    while unaccounted(engine) != before {
        assert!(std::time::Instant::now() < deadline, "call {at}: {} bytes, then {}", before, unaccounted(engine));
        step();
    }
    witness.retire();
    fuse.blown().zip(blame)
}

/// In simulation: the same calls each time, in the same order, up to the one that panics.
#[test]
fn at_every_call_of_user_code() {
    let mut blames = BTreeMap::<_, u64>::new();
    let mut at = 1;
    loop {
        let engine = simulated(1);
        let Some(blame) = run(&engine, at, || {
            engine.step();
        }) else {
            break;
        };
        *blames.entry(blame).or_insert(0) += 1;
        at += 1;
    }
    println!("{} calls: {blames:?}", at - 1);
    let places: Vec<_> = blames.keys().map(|(place, _)| *place).collect();
    for place in ["install", "map", "flat_map", "filter", "mine", "wrap", "key", "least", "pair", "halve", "inspect"] {
        assert!(places.contains(&place), "nothing panicked at {place}");
    }
}

/// On threads, where calls race: some of the calls, all on one engine.
#[test]
fn at_many_calls_on_threads() {
    quiet();
    let engine = Engine::start(Config::default().workers(2).pinned(false)).unwrap();
    let (mut at, mut last) = (1, 0);
    while at < 100_000 {
        if run(&engine, at, || std::thread::sleep(std::time::Duration::from_micros(20))).is_some() {
            last = at;
        } else {
            break;
        }
        at += if heavy() { 1 } else { 1 + at / 8 };
    }
    assert!(last > 100, "it ran to its end after {last} calls");
}
