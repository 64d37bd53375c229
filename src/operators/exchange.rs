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
    // Where the updates of each shard stand in a message.
    let mut routes: Vec<Vec<u32>> = vec![Vec::new(); peers];
    builder.input_routed(
        stream,
        move |chunk: Chunk<D, T, R>, send: &mut dyn FnMut(usize, Updates<D, T, R>)| {
            routes.iter_mut().for_each(Vec::clear);
            for index in 0..chunk.len() {
                let shard = shard(hash(chunk.data.get(index)), peers);
                routes[shard].push(u32::try_from(index).expect("a message has fewer updates"));
            }
            for (shard, route) in routes.iter().enumerate() {
                if !route.is_empty() {
                    let mut part = Updates::default();
                    part.gather(&chunk, route);
                    send(shard, part);
                }
            }
        },
        Rc::new,
    )
}

/// The remainder, which for a power of two takes no division.
#[inline]
fn shard(hash: u64, peers: usize) -> usize {
    let peers = peers as u64;
    (if peers.is_power_of_two() { hash & (peers - 1) } else { hash % peers }) as usize
}

#[cfg(test)]
mod tests {
    use super::shard;

    #[test]
    fn a_shard_is_the_remainder() {
        for peers in 1..20 {
            for hash in (0..100).chain([u64::MAX, u64::MAX - 1, 1 << 63]) {
                assert_eq!(shard(hash, peers) as u64, hash % peers as u64);
            }
        }
    }
}
