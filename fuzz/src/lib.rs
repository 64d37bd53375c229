//! What the fuzz targets share: whether a fault is planted.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

/// Whether this run is a canary: `KPG_FUZZ_CANARY` is set, and each target plants the fault that its check names, which
/// the fuzzer must find.
pub fn planted() -> bool {
    static PLANTED: OnceLock<bool> = OnceLock::new();
    *PLANTED.get_or_init(|| std::env::var_os("KPG_FUZZ_CANARY").is_some())
}
