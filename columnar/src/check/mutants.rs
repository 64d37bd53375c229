//! Every faulty column must be caught by the check, and the one without a fault must pass.
use super::check;
use super::faulty::Faulty;
use std::panic::catch_unwind;

/// How many faults there are.
const FAULTS: u8 = 15;

/// True iff the check fails on some of a fixed set of inputs.
fn caught<const F: u8>() -> bool {
    (0..300u64).any(|seed| {
        let bytes: Vec<u8> = (0..60).map(|i| crate::mix(seed << 8 | i) as u8).collect();
        catch_unwind(|| check::<Faulty<F>>(&bytes)).is_err()
    })
}

#[test]
fn every_fault_is_caught() {
    assert!(!caught::<0>(), "no fault");
    let faults = [
        caught::<1>,
        caught::<2>,
        caught::<3>,
        caught::<4>,
        caught::<5>,
        caught::<6>,
        caught::<7>,
        caught::<8>,
        caught::<9>,
        caught::<10>,
        caught::<11>,
        caught::<12>,
        caught::<13>,
        caught::<14>,
        caught::<15>,
    ];
    assert_eq!(faults.len(), usize::from(FAULTS));
    for (index, caught) in faults.iter().enumerate() {
        assert!(caught(), "fault {} was not caught", index + 1);
    }
}
