//! Random lives of a trace: reads at every since and cut, snapshots and holds, during merges (invariants 7 to 10, 13,
//! 22, 25).
#![forbid(unsafe_code)]

use kpg::trace::check::{Op, check, check_bytes};
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
    fn life(ops: Vec<Random>) {
        check(&ops.into_iter().map(|Random(op)| op).collect::<Vec<_>>());
    }
    QuickCheck::new().rng(Gen::new(80)).tests(300).quickcheck(life as fn(Vec<Random>));
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
