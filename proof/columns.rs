//! Columns of all kinds of types against vectors: the check of the fuzz target, as properties and over its saved inputs.
#![forbid(unsafe_code)]

#[path = "../tests/regressions/saved.rs"]
mod saved;

use kpg_columnar::check::{check_bytes, kinds};
use quickcheck::QuickCheck;

#[test]
fn each_kind_is_as_a_vector() {
    for (name, check) in kinds() {
        println!("{name}");
        QuickCheck::new().quickcheck(check as fn(Vec<u8>));
    }
}

/// What fuzzing once found, and inputs that are hard.
#[test]
fn saved_inputs() {
    saved::replay("columnar", |bytes| check_bytes(bytes, false));
}
