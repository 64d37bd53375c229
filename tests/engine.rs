//! What the engine does beyond right results: it shares, yields, takes its turns, and lets its layers and operators be
//! replaced. One binary, since each compiles the engine anew for its types.
#![forbid(unsafe_code)]

#[path = "engine/custom.rs"]
mod custom;
#[path = "engine/layers.rs"]
mod layers;
#[path = "engine/merging.rs"]
mod merging;
#[path = "engine/reduce_quanta.rs"]
mod reduce_quanta;
#[path = "engine/reduce_rounds.rs"]
mod reduce_rounds;
#[path = "engine/sharing.rs"]
mod sharing;
#[path = "engine/yields.rs"]
mod yields;
