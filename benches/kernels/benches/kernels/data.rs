//! Inputs and hashes that several kernels share.
#![forbid(unsafe_code)]

use kpg::columnar::Columnar;
use kpg::dataflow::Updates;
use kpg::order::Antichain;
use kpg::trace::{Batch, Cursor, OrdBatch, batch_from_sorted};
use workloads::generate::{below, mix, rnd};

/// Adds a number to a hash; the order counts.
pub fn fold(hash: u64, value: u64) -> u64 {
    mix(hash.rotate_left(1) ^ value)
}

/// A hash of numbers in order.
pub fn hash(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, fold)
}

/// A hash of sorted numbers, each with how often it is there.
pub fn hash_counts(sorted: impl IntoIterator<Item = (u64, i64)>) -> u64 {
    let (mut hash, mut last) = (0, None::<(u64, i64)>);
    for (value, count) in sorted {
        match &mut last {
            Some(last) if last.0 == value => last.1 += count,
            _ => {
                if let Some((value, count)) = last.replace((value, count)) {
                    hash = fold(fold(hash, value), count as u64);
                }
            }
        }
    }
    last.map_or(hash, |(value, count)| fold(fold(hash, value), count as u64))
}

/// Data of an arrangement that stand for numbers, in the same order.
pub trait Data: 'static {
    type Key: Columnar;
    type Val: Columnar;
    fn of(number: u64) -> (Self::Key, Self::Val);
    fn number(key: <Self::Key as Columnar>::Ref<'_>, val: <Self::Val as Columnar>::Ref<'_>) -> u64;
}

/// A number as a key of its own.
impl Data for (u64, ()) {
    type Key = u64;
    type Val = ();
    fn of(number: u64) -> (u64, ()) {
        (number, ())
    }
    fn number(key: u64, (): ()) -> u64 {
        key
    }
}

/// Its halves as key and val.
impl Data for (u32, u32) {
    type Key = u32;
    type Val = u32;
    fn of(number: u64) -> (u32, u32) {
        ((number >> 32) as u32, number as u32)
    }
    fn number(key: u32, val: u32) -> u64 {
        u64::from(key) << 32 | u64::from(val)
    }
}

/// Both halves as the key.
impl Data for ((u32, u32), ()) {
    type Key = (u32, u32);
    type Val = ();
    fn of(number: u64) -> ((u32, u32), ()) {
        (((number >> 32) as u32, number as u32), ())
    }
    fn number(key: (u32, u32), (): ()) -> u64 {
        u64::from(key.0) << 32 | u64::from(key.1)
    }
}

/// The batch that an arrangement of such data has.
pub type BatchOf<D> = OrdBatch<<D as Data>::Key, <D as Data>::Val, u64, i64>;

/// The batch of sorted numbers that differ, each once at `time`, between that and the next.
pub fn batch<D: Data>(numbers: &[u64], time: u64) -> BatchOf<D> {
    let mut updates = Updates::<(D::Key, D::Val), u64, i64>::default();
    for number in numbers {
        let data = D::of(*number);
        updates.push(data.borrow(), time, 1);
    }
    batch_from_sorted(updates, Antichain::from_elem(time), Antichain::from_elem(time + 1))
}

/// What is in a batch: numbers and counts, its times put together.
pub fn hash_batch<D: Data>(batch: &BatchOf<D>) -> u64 {
    let (mut counts, mut cursor) = (Vec::with_capacity(batch.len()), batch.cursor());
    while let Some(key) = cursor.key() {
        while let Some(val) = cursor.val() {
            cursor.for_each_time(|_, diff| counts.push((D::number(key, val), diff)));
            cursor.step_val();
        }
        cursor.step_key();
    }
    hash_counts(counts)
}

/// What numbers look like.
#[derive(Copy, Clone)]
pub enum Numbers {
    /// All 64 bits.
    Wide,
    /// Below 10 million.
    Keys,
    /// Edges of a random graph with so many nodes, the source in the upper half.
    Edges(u64),
}

impl Numbers {
    /// Number `i` of the sequence `seed`.
    pub fn at(self, seed: u64, i: u64) -> u64 {
        match self {
            Numbers::Wide => rnd(seed, i),
            Numbers::Keys => below(rnd(seed, i), 10_000_000),
            Numbers::Edges(nodes) => below(rnd(seed, 2 * i), nodes) << 32 | below(rnd(seed, 2 * i + 1), nodes),
        }
    }
    /// So many of them.
    pub fn many(self, seed: u64, count: u64) -> Vec<u64> {
        (0..count).map(|i| self.at(seed, i)).collect()
    }
    /// `parts` sorted sequences of numbers that all differ, `count` each.
    pub fn apart(self, parts: usize, count: u64) -> Vec<Vec<u64>> {
        let total = parts * count as usize;
        let mut all = Vec::new();
        let mut drawn = 0;
        while all.len() < total {
            let more = (total - all.len()) as u64 + 16;
            all.extend((drawn..drawn + more).map(|i| self.at(5, i)));
            drawn += more;
            all.sort_unstable();
            all.dedup();
        }
        // Which go is left to chance, too.
        let mut order: Vec<(u64, u64)> = all.into_iter().map(|number| (mix(number), number)).collect();
        order.sort_unstable();
        let mut out: Vec<Vec<u64>> = vec![Vec::new(); parts];
        for (index, (_, number)) in order.into_iter().take(total).enumerate() {
            out[index % parts].push(number);
        }
        out.iter_mut().for_each(|part| part.sort_unstable());
        out
    }
}

/// A count as people write it.
pub fn short(count: u64) -> String {
    match count {
        count if count >= 1_000_000 && count % 1_000_000 == 0 => format!("{}M", count / 1_000_000),
        count if count >= 1_000 && count % 1_000 == 0 => format!("{}k", count / 1_000),
        count => count.to_string(),
    }
}
