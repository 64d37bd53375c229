//! Exchange: each update to the worker that its data's hash names.
#![forbid(unsafe_code)]

use super::collection::Chunk;
use crate::dataflow::{InputPort, NodeBuilder, Stream, Updates};
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar};
use std::rc::Rc;

/// An input of a node to which each update comes on worker `hash % peers`. With one worker it is a plain one.
///
/// Cost: a copy of each update. A message that becomes none is not sent; each that is sent bears the original's stamp.
pub(crate) fn exchanged<'s, T: Timestamp, D: Columnar, R: Semigroup>(
    builder: &mut NodeBuilder<'s, T>,
    stream: &Stream<'s, T, Chunk<D, T, R>>,
    hash: impl Fn(D::Ref<'_>) -> u64 + 'static,
) -> InputPort<T, Chunk<D, T, R>> {
    let peers = builder.scope.peers();
    let mut parts: Vec<Updates<D, T, R>> = (0..peers).map(|_| Updates::default()).collect();
    builder.input_routed(
        stream,
        move |chunk: Chunk<D, T, R>, send: &mut dyn FnMut(usize, Updates<D, T, R>)| {
            // A little more than an equal share: to grow costs more than what is too much for the moment.
            let share = chunk.len() / peers + chunk.len() / 8;
            parts.iter_mut().for_each(|part| part.data.reserve(share));
            for (data, time, diff) in chunk.iter() {
                let shard = (hash(data) % peers as u64) as usize;
                parts[shard].push(data, time, diff);
            }
            for (shard, part) in parts.iter_mut().enumerate() {
                if !part.is_empty() {
                    send(shard, std::mem::take(part));
                }
            }
        },
        Rc::new,
    )
}
