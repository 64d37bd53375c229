//! Random lives of a trace: reads at every since and cut, snapshots and holds, during merges (invariants 7 to 10, 13,
//! 22, 25).
#![forbid(unsafe_code)]

use kpg::dataflow::Updates;
use kpg::order::Antichain;
use kpg::trace::check::{Op, check, check_bytes};
use kpg::trace::{MergePolicy, OrdBatch, Trace, TraceHandle, TraceWriter, batch_from_sorted};
use quickcheck::{Arbitrary, Gen, QuickCheck};

#[derive(Clone, Debug)]
struct Random(Op);

impl Arbitrary for Random {
    fn arbitrary(g: &mut Gen) -> Self {
        let byte = |g: &mut Gen| u8::arbitrary(g);
        let updates = |g: &mut Gen| {
            let len = byte(g) % 12;
            (0..len).map(|_| (byte(g), byte(g), byte(g), byte(g), (byte(g) % 5) as i8 - 2)).collect()
        };
        Random(match byte(g) % 26 {
            0..=4 => Op::Push(updates(g)),
            5..=8 => Op::Seal(byte(g), byte(g)),
            9 => Op::Work(byte(g)),
            10 => Op::Clone(byte(g)),
            11 => Op::Drop(byte(g)),
            12 => Op::Since(byte(g), byte(g), byte(g)),
            13 => Op::Bind(byte(g)),
            14 | 15 => Op::Cut(byte(g)),
            16 => Op::Advance,
            17 => Op::Snapshot(byte(g), byte(g)),
            18 => Op::Hold(byte(g), byte(g)),
            20..=22 => Op::Advance,
            23 => Op::Snapshot(byte(g), byte(g)),
            19 | 24 => Op::Catch(byte(g), byte(g)),
            _ => Op::Release(byte(g)),
        })
    }
}

#[test]
fn random_lives() {
    fn life(ops: Vec<Random>, fan_out: u8) {
        check(&ops.into_iter().map(|Random(op)| op).collect::<Vec<_>>(), 2 + usize::from(fan_out % 6));
    }
    QuickCheck::new().rng(Gen::new(80)).tests(300).quickcheck(life as fn(Vec<Random>, u8));
}

/// As a fuzzer has it: from bytes, and with each merge policy.
#[test]
fn random_bytes() {
    fn life(bytes: Vec<u8>) {
        check_bytes(&bytes, false);
    }
    QuickCheck::new().rng(Gen::new(300)).tests(300).quickcheck(life as fn(Vec<u8>));
}

/// The fuzz target's canary, without the fuzzer: a batch that is sealed without its last update.
#[test]
#[should_panic(expected = "left == right")]
fn a_lost_update_is_noticed() {
    // Three updates at (0, 0), sealed at {(1, 0), (0, 1)}.
    check_bytes(&[0, 0, 3, 1, 0, 0, 0, 3, 2, 0, 0, 0, 3, 3, 0, 0, 0, 3, 5, 1, 1], true);
}

type Writer = TraceWriter<OrdBatch<u64, (), u64, i64>>;

/// One update of one key, at each of `times`, in a batch of its own.
fn write(writer: &mut Writer, times: std::ops::Range<u64>) {
    for time in times {
        let mut updates = Updates::<(u64, ()), u64, i64>::default();
        updates.push((7, ()), time, 1);
        let (lower, upper) = (writer.upper().clone(), Antichain::from_elem(time + 1));
        writer.insert(batch_from_sorted(updates, lower, upper));
    }
}

/// What a handle asks for counts as long as it lives: its cut keeps batches apart, its since keeps times apart; dropped, it
/// keeps neither, though its last word was a beginning. Cut and since that are empty keep nothing either.
#[test]
fn a_dropped_handle_holds_nothing() {
    let stats = |reader: &TraceHandle<_>| (reader.stats().queued, reader.stats().updates);
    for by_drop in [true, false] {
        let (mut writer, mut reader) = Writer::new(MergePolicy::eager());
        let mut behind = reader.clone();
        write(&mut writer, 0..100);
        reader.set_cut(&Antichain::from_elem(100));
        reader.set_since(&Antichain::from_elem(99));
        while writer.work(&mut 1000) {}
        assert_eq!(stats(&reader), (100, 100), "one reader may still split between any two, and tell all times apart");
        if by_drop {
            drop(behind);
        } else {
            behind.set_cut(&Antichain::new());
            behind.set_since(&Antichain::new());
        }
        while writer.work(&mut 1000) {}
        assert_eq!(stats(&reader), (0, 1), "one batch, one time");
    }
}
