use super::super::queue::tests::copies;
use super::super::{Batch, OrdBatch, Shard, Trace, batch_from_sorted};
use super::*;
use crate::dataflow::Updates;
use std::sync::Arc;

type B = OrdBatch<u64, (), u64, i64>;

fn at(time: u64) -> Antichain<u64> {
    Antichain::from_elem(time)
}

fn batch(time: u64, len: u64) -> B {
    let mut updates = Updates::<(u64, ()), u64, i64>::default();
    (0..len).for_each(|key| updates.push((key, ()), time, 1));
    batch_from_sorted(updates, at(time), at(time + 1))
}

/// What tells lists of batches apart.
fn outline<'a>(batches: impl Iterator<Item = &'a B>) -> Vec<(Antichain<u64>, Antichain<u64>, usize)> {
    batches.map(|b| (b.lower().clone(), b.upper().clone(), b.len())).collect()
}

#[test]
fn publishing_copies_a_logarithm_of_what_is_pinned() {
    const PINNED: u64 = 20_000;
    let published = Published::<B>::new(1);
    let (mut writer, reader) = TraceWriter::new(MergePolicy::eager());
    writer.publish(&published, 0);
    let mut early = None;
    for time in 0..PINNED {
        let before = copies();
        writer.insert(batch(time, 1));
        let (copied, bound) = (copies() - before, 2 * (2 + time.max(1).ilog2() as usize));
        assert!(copied <= bound, "{copied} copies of {time} batches");
        let shown = published.shard(0).batches.clone();
        assert!(shown.len() as u64 == time + 1 && !writer.is_overdue());
        writer.advance_upper(&at(time + 1));
        assert!(published.shard(0).batches.is_same(&shown), "the upper moves, the list stays");
        assert_eq!(reader.batches_after(&at(time)).map(|(new, _)| new.len()), Some(1));
        assert_eq!(copies() - before, copied, "none for the upper, none for a reader of what is new");
        if time == 99 {
            early = Some(shown);
        }
    }
    let early = early.expect("seen");
    assert!(outline(early.iter()) == (0..100).map(|t| (at(t), at(t + 1), 1)).collect::<Vec<_>>());
    // The pinned are let in: each admission publishes a logarithm too.
    let mut reader = reader;
    reader.set_cut(&Antichain::new());
    for time in PINNED..PINNED + 2_000 {
        let before = copies();
        writer.insert(batch(time, 1));
        let admitted = 3;
        assert!(copies() - before <= (2 + 2 * admitted) * (2 + PINNED.ilog2() as usize), "{}", copies() - before);
    }
    assert_eq!(outline(published.shard(0).batches.iter()), outline(reader.batches().0.iter()));
}

#[test]
fn what_is_shown_is_the_list_and_stays_as_it_was() {
    // Inserts, merges, moves the cut and the upper in any order; what was loaded is looked at again when all is over.
    fn check(forgetful: bool, ops: Vec<(u8, u8)>) {
        let published = Published::<B>::new(1);
        let (mut writer, mut reader) = TraceWriter::new(MergePolicy::lazy());
        if forgetful {
            writer.keep_no_history();
        }
        writer.publish(&published, 0);
        let (mut time, mut cut) = (0, 0);
        let mut seen: Vec<(Arc<Shard<B>>, _)> = Vec::new();
        for (op, count) in ops {
            match op % 4 {
                0 => {
                    for _ in 0..=count % 20 {
                        writer.insert(batch(time, u64::from(count % 5)));
                        time += 1;
                    }
                }
                1 => {
                    writer.work(&mut isize::from(count % 64));
                }
                2 => {
                    cut = time.min(cut + u64::from(count % 20));
                    reader.set_cut(&at(cut));
                    reader.set_since(&at(cut));
                }
                _ => writer.advance_upper(&at(time)),
            }
            let shard = published.shard(0);
            let shown = outline(shard.batches.iter());
            assert_eq!(shown, outline(reader.batches().0.iter()));
            assert_eq!((shard.batches.len(), shard.batches.is_empty()), (shown.len(), shown.is_empty()));
            if !shown.is_empty() {
                let index = usize::from(count) % shown.len();
                let after = reader.batches_after(&shown[index].0).map(|(batches, _)| outline(batches.iter()));
                assert_eq!(after.as_deref(), Some(&shown[index..]));
                let through = reader.batches_through(&shown[index].1).map(|batches| outline(batches.iter()));
                assert_eq!(through.as_deref(), Some(&shown[..=index]));
            }
            seen.push((shard, shown));
        }
        drop((writer, reader, published));
        seen.iter().for_each(|(shard, shown)| assert_eq!(outline(shard.batches.iter()), *shown));
    }
    quickcheck::quickcheck(check as fn(bool, Vec<(u8, u8)>));
}
