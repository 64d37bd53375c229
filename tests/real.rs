//! Real graphs, with answers known from elsewhere.
//!
//! ```text
//! ../shared/data ──► data     edges                    ─┐
//!                └─► answers  published values           ├─► tests
//!            edges ─┬► plain   the same, computed here  ─┤
//!                   └► engine  the same, by dataflows    ─┘
//! ```
//!
//! Each test compares with the published value and with a plain evaluator. The data is not part of this package: it
//! lies in `../shared/data` beside it, or where the environment variable `KPG_REAL_DATA` says; where it is absent, a
//! test prints a line and passes.
#![forbid(unsafe_code)]

#[path = "real/answers.rs"]
mod answers;
#[path = "real/data.rs"]
mod data;
#[path = "real/engine.rs"]
mod engine;
#[path = "real/plain.rs"]
mod plain;
#[path = "real/plain_tests.rs"]
mod plain_tests;
