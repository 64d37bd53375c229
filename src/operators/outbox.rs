//! What a node gathers of its output before it sends it on: messages of bounded size, whatever it makes of whatever.
#![forbid(unsafe_code)]

use super::collection::Chunk;
use crate::dataflow::{CapabilitySet, OutputPort, Updates};
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::Columnar;
use std::rc::Rc;

/// Updates in a message: few enough to be in the cache when the next stage reads them.
pub(super) const CHUNK: usize = 1024;

/// Updates that are sent at one set of capabilities. Whoever has one calls `send` in the end.
pub(super) struct Outbox<'o, D: Columnar, T: Timestamp, R: Semigroup> {
    updates: Updates<D, T, R>,
    capabilities: &'o CapabilitySet<T>,
    output: &'o mut OutputPort<T, Chunk<D, T, R>>,
}

impl<'o, D: Columnar, T: Timestamp, R: Semigroup> Outbox<'o, D, T, R> {
    pub(super) fn new(capabilities: &'o CapabilitySet<T>, output: &'o mut OutputPort<T, Chunk<D, T, R>>) -> Self {
        Outbox { updates: Updates::default(), capabilities, output }
    }
    /// Adds an update; sends, if that fills a message.
    #[inline]
    pub(super) fn push(&mut self, datum: D::Ref<'_>, time: T, diff: R) {
        self.updates.push(datum, time, diff);
        if self.updates.len() >= CHUNK {
            self.send();
        }
    }
    /// Sends what is left.
    pub(super) fn send(&mut self) {
        if !self.updates.is_empty() {
            self.output.send(self.capabilities, Rc::new(std::mem::take(&mut self.updates)));
        }
    }
}
