//! The program that fails: every kind of user code in it passes a fuse, which blows at its n-th call.

use super::common::{SOON, Witness};
use kpg::client::QueryBytes;
use kpg::columnar::{HeapSize, Opaque};
use kpg::prelude::*;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Counts calls of user code, and panics in one of them.
#[derive(Debug, Default)]
pub struct Fuse {
    calls: AtomicU64,
    at: u64,
    blown: Mutex<Option<&'static str>>,
}

impl Fuse {
    /// One that blows at the `at`-th call, counted from 1; 0 is never.
    pub fn new(at: u64) -> Arc<Fuse> {
        Arc::new(Fuse { at, ..Fuse::default() })
    }
    /// A call, at `place`.
    pub fn pass(&self, place: &'static str) {
        if self.calls.fetch_add(1, SeqCst) + 1 == self.at {
            *self.blown.lock().unwrap() = Some(place);
            panic!("the fuse at {place}");
        }
    }
    /// How many there were.
    pub fn calls(&self) -> u64 {
        self.calls.load(SeqCst)
    }
    /// Where it blew.
    pub fn blown(&self) -> Option<&'static str> {
        *self.blown.lock().unwrap()
    }
}

/// A key of a user's type: each comparison, hash and clone is a call of user code.
#[derive(Debug)]
struct Key {
    number: u32,
    fuse: Arc<Fuse>,
}

impl HeapSize for Key {}
impl Clone for Key {
    fn clone(&self) -> Self {
        self.fuse.pass("key");
        Key { number: self.number, fuse: self.fuse.clone() }
    }
}
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.fuse.pass("key");
        self.number == other.number
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.fuse.pass("key");
        self.number.cmp(&other.number)
    }
}
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fuse.pass("key");
        self.number.hash(state);
    }
}

/// What the program's results are of.
pub type Pair32 = (u32, u32);

/// Every kind of user code: what it says of `numbers`, without the witness.
fn body<'s>(numbers: &Collection<'s, u64, Pair32>, fuse: &Arc<Fuse>) -> Collection<'s, u64, Pair32> {
    let at = |place: &'static str| {
        let fuse = fuse.clone();
        move || fuse.pass(place)
    };
    let (map, flat_map, filter, wrap) = (at("map"), at("flat_map"), at("filter"), at("wrap"));
    let (mine, least, pair, halve, inspect) = (at("mine"), at("least"), at("pair"), at("halve"), at("inspect"));
    let staged = numbers
        .map(move |(k, v)| {
            map();
            (k, v)
        })
        .flat_map(move |(k, v)| {
            flat_map();
            [(k, v), (k, v + 1)]
        })
        .filter(move |(_, v)| {
            filter();
            v % 3 != 0
        });
    let passed = staged.unary::<Pair32, i64>("mine", move |input, output, _| {
        while let Some((token, chunk)) = input.next() {
            let mut session = output.session(&token);
            for (data, time, diff) in chunk.iter() {
                mine();
                session.give(data, time, diff);
            }
        }
        false
    });
    let fuse = fuse.clone();
    let keyed = passed.map_named("wrap", move |(number, v)| {
        wrap();
        (Opaque(Key { number, fuse: fuse.clone() }), v)
    });
    let keyed = keyed.arrange_named("keyed");
    let least = keyed.reduce_named("least", move |_, vals, output: &mut Vec<(u32, i64)>| {
        least();
        output.push((vals[0].0, 1));
    });
    let sums = keyed.join_core(&least, move |key, v, w| {
        pair();
        Some((key.number, v + w))
    });
    let looped = sums.iterate(|_, inner| {
        let halves = inner.map_named("halve", move |(k, v)| {
            halve();
            (k, v / 2)
        });
        halves.concat(inner).distinct()
    });
    looped.inspect(move |_, _, _| inspect());
    looped
}

/// What `body` gives for these, from nothing.
pub fn expected(numbers: &BTreeSet<Pair32>) -> BTreeSet<Pair32> {
    let mut groups = BTreeMap::<u32, BTreeSet<u32>>::new();
    for (k, v) in numbers {
        groups.entry(*k).or_default().extend([*v, v + 1].into_iter().filter(|v| v % 3 != 0));
    }
    let mut out = BTreeSet::new();
    for (k, vals) in groups {
        for v in &vals {
            let mut sum = v + vals.first().unwrap();
            while out.insert((k, sum)) {
                sum /= 2;
            }
        }
    }
    out
}

/// How many rounds of numbers there are.
pub const ROUNDS: u64 = 4;

/// What is there once round `t` is complete.
pub fn numbers_at(t: u64) -> BTreeSet<Pair32> {
    let t = t as u32;
    (0..=t).flat_map(|t| (0..3).map(move |n| (n, 10 * t + 3 * n))).filter(|(k, v)| *k != 1 || *v >= 10 * t).collect()
}

/// The program's handles, and those of the query that imports from it.
pub struct Program {
    /// Kept, so that it can be asked how it ended, and taken down.
    pub query: Option<Query>,
    /// Its input.
    pub input: Option<Input<u64, Pair32>>,
    /// Its results.
    pub results: Option<Subscription<u64, Pair32>>,
    /// Its probe.
    pub probe: Option<Probe<u64>>,
    /// Its results, arranged.
    pub published: Option<Published<u32, u32>>,
    heard: BTreeMap<Pair32, i64>,
}

impl Program {
    /// Installs it; it imports from the witness as well.
    ///
    /// # Errors
    /// As an install.
    pub fn install(engine: &Engine, fuse: &Arc<Fuse>, witness: &Witness) -> Result<Program, Error> {
        let (query, (input, results, probe, published)) = engine.install("program", |scope| {
            fuse.pass("install");
            let (input, numbers) = scope.input::<Pair32>();
            let out = body(&numbers, fuse);
            // Nothing comes of this, but that it reads what the witness publishes.
            let imported = witness.published.import(scope).as_collection(|k, v| (k as u32, v as u32));
            let out = out.concat(&imported.filter(|_| false));
            let arranged = out.arrange_by_key();
            (input, out.subscribe(), out.probe(), arranged.publish())
        })?;
        let (input, results, probe, published) = (Some(input), Some(results), Some(probe), Some(published));
        Ok(Program { query: Some(query), input, results, probe, published, heard: BTreeMap::new() })
    }

    /// How it ended, if it has.
    pub fn error(&self) -> Option<Error> {
        self.query.as_ref().and_then(Query::error)
    }

    /// Puts in round `t`.
    ///
    /// # Errors
    /// As an input.
    pub fn feed(&mut self, t: u64) -> Result<(), Error> {
        self.gather(t)?;
        self.input.as_mut().unwrap().advance_to(t + 1)
    }

    /// Puts in round `t`, but for saying that it is over: the input has only gathered it.
    ///
    /// # Errors
    /// As an input.
    pub fn gather(&mut self, t: u64) -> Result<(), Error> {
        let before = if t == 0 { BTreeSet::new() } else { numbers_at(t - 1) };
        let (now, input) = (numbers_at(t), self.input.as_mut().unwrap());
        now.difference(&before).try_for_each(|number| input.insert(*number))?;
        before.difference(&now).try_for_each(|number| input.remove(*number))
    }

    /// Waits for round `t`: all results so far, exactly.
    ///
    /// # Errors
    /// As a subscription.
    pub fn hear(&mut self, t: u64) -> Result<(), Error> {
        let changes = self.results.as_mut().unwrap().wait_past(&t, SOON)?;
        for (data, _, diff) in changes {
            *self.heard.entry(data).or_insert(0) += diff;
        }
        self.heard.retain(|_, count| *count != 0);
        let want = expected(&numbers_at(t)).into_iter().map(|data| (data, 1)).collect();
        assert_eq!(self.heard, want, "round {t}");
        Ok(())
    }

    /// Drops what is left, and takes it down with whoever imports from it: nothing of it is left, once what is on its way
    /// has arrived, for which `step` is called.
    pub fn end(self, mut step: impl FnMut()) {
        let Program { query, input, results, probe, published, .. } = self;
        drop((input, results, probe, published));
        let query = query.expect("it was not let go");
        query.retire_cascade_timeout(SOON).unwrap();
        let deadline = std::time::Instant::now() + SOON;
        while query.bytes() != (QueryBytes { private: 0, shared: 0 }) {
            assert!(std::time::Instant::now() < deadline, "it is not freed: {:?}", query.bytes());
            step();
        }
    }
}

/// A query that imports from the program.
pub struct Importer {
    /// Kept, so that it can be asked how it ended.
    pub query: Query,
    /// The program's results.
    pub copy: Subscription<u64, Pair32>,
}

impl Importer {
    /// Installs it.
    ///
    /// # Errors
    /// As an install.
    pub fn install(engine: &Engine, program: &Program) -> Result<Importer, Error> {
        let published = program.published.as_ref().unwrap();
        let (query, copy) =
            engine.install("importer", |scope| published.import(scope).as_collection(|k, v| (k, v)).subscribe())?;
        Ok(Importer { query, copy })
    }

    /// What it has heard for round `t` on is what the program gave.
    ///
    /// # Errors
    /// As a subscription.
    pub fn hear(&mut self, t: u64) -> Result<(), Error> {
        let mut sums = BTreeMap::new();
        for (data, _, diff) in self.copy.wait_past(&t, SOON)? {
            *sums.entry(data).or_insert(0) += diff;
        }
        sums.retain(|_, count| *count != 0);
        let want: BTreeMap<_, i64> = expected(&numbers_at(t)).into_iter().map(|data| (data, 1)).collect();
        assert_eq!(sums, want, "the importer's");
        Ok(())
    }
}
