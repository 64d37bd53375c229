//! Queries on graphs, in the formulation that is natural in kpg: loops over indexes that are shared.
#![forbid(unsafe_code)]

use kpg::prelude::*;

/// Pairs of nodes, or of a node and a number.
pub type Pairs<'s> = Collection<'s, u64, (u32, u32)>;

/// What there is a path to from `roots`.
pub fn reach<'s, Tr: Trace<Key = u32, Val = u32, Time = u64, Diff = i64>>(
    roots: &Collection<'s, u64, u32>,
    forward: &Arranged<'s, Tr>,
) -> Collection<'s, u64, u32> {
    roots.iterate(|inner, reached| {
        let next = reached.arrange_by_self().join_core(&forward.enter(inner), |_, (), target| Some(target));
        next.concat(&roots.enter(inner)).distinct()
    })
}

/// (node, least number of edges to it from one of `roots`).
pub fn distances<'s, Tr: Trace<Key = u32, Val = u32, Time = u64, Diff = i64>>(
    roots: &Collection<'s, u64, u32>,
    forward: &Arranged<'s, Tr>,
) -> Pairs<'s> {
    let roots = roots.map(|root| (root, 0));
    roots.iterate(|inner, distances| {
        let next = distances.arrange_by_key();
        let next = next.join_core(&forward.enter(inner), |_, distance, target| Some((target, distance + 1)));
        let least = next.concat(&roots.enter(inner)).arrange_by_key();
        least
            .reduce(|_, distances, least| least.push((distances[0].0, 1)))
            .as_collection(|node, distance| (node, distance))
    })
}

/// (node, smallest node that it is connected with).
///
/// Only the smaller end of an edge needs a label of its own. Small labels come into the loop first, those of a class of
/// like size together: when the larger ones come, nearly all nodes have a smaller one already.
pub fn components<'s, F, B>(forward: &Arranged<'s, F>, backward: &Arranged<'s, B>) -> Pairs<'s>
where
    F: Trace<Key = u32, Val = u32, Time = u64, Diff = i64>,
    B: Trace<Key = u32, Val = u32, Time = u64, Diff = i64>,
{
    let own = forward.as_collection(|source, target| source.min(target)).distinct();
    forward.scope().iterative(|inner| {
        let own = own.map(|node| (node, node)).enter_at(inner, |(node, _)| 256 * (u32::BITS - node.leading_zeros()));
        let labels = Variable::new(inner);
        let arranged = labels.arrange_by_key();
        let from_sources = arranged.join_core(&forward.enter(inner), |_, label, target| Some((target, label)));
        let from_targets = arranged.join_core(&backward.enter(inner), |_, label, source| Some((source, label)));
        let all = from_sources.concat(&from_targets).concat(&own).arrange_by_key();
        let least =
            all.reduce(|_, labels, least| least.push((labels[0].0, 1))).as_collection(|node, label| (node, label));
        labels.set(&least).leave()
    })
}

/// (x, y): a path of at least one edge leads from x to y.
pub fn closure<'s>(edges: &Pairs<'s>) -> Pairs<'s> {
    let forward = edges.arrange_by_key();
    edges.iterate(|inner, paths| {
        let by_end = paths.map(|(from, to)| (to, from)).arrange_by_key();
        let longer = by_end.join_core(&forward.enter(inner), |_, from, to| Some((from, to)));
        longer.concat(&edges.enter(inner)).distinct()
    })
}

/// What pointers may point to, by the rules of Graspan (Wang and others, ASPLOS 2017), without regard to context. A and D
/// are given; value flow F, memory alias M and value alias V are found:
///
/// ```text
/// F(x, x)  for each x of A or D      V(a, b) ← F(x, a), F(x, b)
/// F(a, b) ← A(a, x), F(x, b)         V(a, b) ← F(x, a), M(x, y), F(y, b)
/// F(a, b) ← A(a, x), M(x, y), F(y, b)
/// M(a, b) ← D(x, a), V(x, y), D(y, b)
/// ```
pub fn pointers<'s>(assigns: &Pairs<'s>, dereferences: &Pairs<'s>) -> [Pairs<'s>; 3] {
    let nodes = assigns.concat(dereferences).flat_map(|(a, b)| [(a, a), (b, b)]).distinct();
    let assigned = assigns.map(|(a, x)| (x, a));
    let (by_source, dereferences) = (assigned.arrange_by_key(), dereferences.arrange_by_key());
    assigns.scope().iterative(|inner| {
        let (nodes, assigned) = (nodes.enter(inner), assigned.enter(inner));
        let (by_source, dereferences) = (by_source.enter(inner), dereferences.enter(inner));
        let (flow, memory) = (Variable::new(inner), Variable::new(inner));
        let (flows, memories) = (flow.arrange_by_key(), memory.arrange_by_key());

        let through_memory = by_source.join_core(&memories, |_, a, y| Some((y, a)));
        let next = through_memory.concat(&assigned).arrange_by_key().join_core(&flows, |_, a, b| Some((a, b)));
        let found_flow = next.concat(&nodes).distinct();

        let direct = flows.join_core(&flows, |_, a, b| Some((a, b)));
        let half = flows.join_core(&memories, |_, a, y| Some((y, a))).arrange_by_key();
        let value = half.join_core(&flows, |_, a, b| Some((a, b))).concat(&direct).distinct();

        let half = value.arrange_by_key().join_core(&dereferences, |_, y, a| Some((y, a))).arrange_by_key();
        let found_memory = half.join_core(&dereferences, |_, a, b| Some((a, b))).distinct();

        [flow.set(&found_flow).leave(), memory.set(&found_memory).leave(), value.leave()]
    })
}
