//! What crosses between workers.
#![forbid(unsafe_code)]

use crate::order::Coords;
use crate::progress::Location;
use std::any::Any;

/// A dataflow's number: the order in which installs were sequenced. Never used again.
pub type DataflowId = u32;

/// A typed message for one channel of one dataflow; the channel's ends know the type.
pub struct Envelope {
    /// The dataflow.
    pub dataflow: DataflowId,
    /// The exchange channel in it.
    pub channel: u32,
    /// A stamp and its payload.
    pub payload: Box<dyn Any + Send>,
}

/// Changes of one dataflow's pointstamps, in one piece: the steps of one worker in one round.
pub type Changes = Vec<(Location, Coords, i64)>;

/// One broadcast: the change batches of all dataflows stepped in a round.
pub type ProgressEntry = Vec<(DataflowId, Changes)>;
