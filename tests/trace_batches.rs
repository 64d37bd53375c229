//! Random piles of batches, built, merged with times folded, read and sought.
#![forbid(unsafe_code)]

use kpg::trace::check::batch::check_bytes;
use quickcheck::{Gen, QuickCheck};

#[test]
fn random_piles() {
    fn pile(bytes: Vec<u8>) {
        check_bytes(&bytes, false);
    }
    QuickCheck::new().rng(Gen::new(300)).tests(2_000).quickcheck(pile as fn(Vec<u8>));
}

/// The fuzz target's canary, without the fuzzer: a merge that folds beyond the since.
#[test]
#[should_panic(expected = "left == right")]
fn a_merge_that_folds_too_far_is_noticed() {
    // Two batches with an update each, sealed at (1, 0) and at the end; the since is {(0, 2), (3, 0)}.
    check_bytes(&[0, 0, 1, 1, 0, 0, 8, 0, 1, 1, 4, 4, 8, 7, 2, 0, 0, 10, 1, 1], true);
}
