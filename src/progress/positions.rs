//! Positions: an order of work in which every edge leads on.
//!
//! A UNIT of a scope is a location in it or a scope nested in it. Each unit has a position in its scope. The KEY of a
//! pointstamp (location, time), whose location lies in scopes S0 (the root) ⊃ S1 ⊃ … ⊃ Sk, is
//! ```text
//! (coordinates of S0, position in S0, coordinate of S1, position in S1, …, coordinate of Sk, position in Sk)
//! ```
//! the i-th position being that of the unit which contains the location. Keys are compared lexicographically.
//!
//! **Claim.** The key strictly grows along every edge, and of two times at one location the earlier has the lesser key.
//!
//! *Proof.* The second: positions are the same, and lexicographic order extends the partial one. The first: let the
//! edge lead from u to v, L be the innermost scope around both, n its number of coordinates, `keep` ≤ n the
//! coordinates the summary keeps (`Shape` is refused otherwise). Keys of u and v have the same positions outside L.
//! 1. Some kept coordinate grows (the edge ADVANCES): those before the first that does stay, so the key grows there,
//!    whatever comes later. Such an edge may lead anywhere: it is a feedback, or contains one.
//! 2. None grows and keep = n: the keys agree up to L's last coordinate; next are the positions in L of the units
//!    around u and v. These are assigned here by a topological sort of just these edges, lifted to L, hence grow.
//! 3. None grows and keep < n: a coordinate of a scope that was left is set back to a constant. Refused: `Reenters`.
//!
//! If the sort finds a cycle of locations, it is a cycle on which no time grows: `NotAdvancing`. If the cycle leads
//! through a nested scope as a unit, what leaves that scope comes back to it without an advance outside: `Reenters`.
//!
//! **So** the keys that a worklist hands out in order only grow while it fills itself along edges: each (location,
//! time) is handled once, and its sources are final by then. Keys are tuples of naturals of bounded length, which are
//! well ordered: frontiers are determined by the counts, uniquely, and no set of times holds itself up round a cycle.
//!
//! One sort does all scopes, for edges join units of one scope only. Cost: linear. Next stop: `worklist`.

use super::graph::{Place, Scope};
use super::{GraphError, Location, ScopeId, Summary};
use crate::order::MAX_COORDINATES;

type EdgeRow = (Location, Location, Summary);

/// Checks all edges and writes positions into `places` and paths into `scopes`.
pub(super) fn assign(
    scopes: &mut [Scope],
    places: &mut [Place],
    names: &[String],
    edges: &[EdgeRow],
) -> Result<(), GraphError> {
    if let Some(scope) = scopes.iter().find(|scope| scope.len as usize > MAX_COORDINATES) {
        return Err(GraphError::TooDeep { scope: scope.name.clone() });
    }
    let mut lifted = Vec::new();
    for (index, edge) in edges.iter().enumerate() {
        if let Some((from, to)) = lift(scopes, places, names, edge)? {
            lifted.push(Lifted { from, to, edge: index as u32 });
        }
    }
    let unit_count = places.len() + scopes.len();
    let (order, indegree) = sort(unit_count, &mut lifted);
    if order.len() < unit_count {
        let cycle = cycle(&lifted, &indegree);
        return Err(name_cycle(scopes, places.len(), names, edges, &cycle));
    }

    let mut next = vec![0; scopes.len()];
    let mut scope_position = vec![0; scopes.len()];
    for unit in order {
        let nested = (unit as usize).checked_sub(places.len());
        let scope = nested.map_or_else(|| places[unit as usize].scope, |scope| scopes[scope].parent);
        let position = match nested {
            // The root is a unit of nothing.
            Some(0) => continue,
            Some(scope) => &mut scope_position[scope],
            None => &mut places[unit as usize].position,
        };
        *position = next[scope.0 as usize];
        next[scope.0 as usize] += 1;
    }
    // A scope's number is greater than its parent's.
    for index in 1..scopes.len() {
        let mut path = scopes[scopes[index].parent.0 as usize].path;
        path[scopes[index].depth as usize - 1] = scope_position[index];
        scopes[index].path = path;
    }
    Ok(())
}

/// An edge that must lead on in position, between two units of one scope. Locations come first, then scopes.
struct Lifted {
    from: u32,
    to: u32,
    edge: u32,
}

/// The units that an edge joins in the innermost scope around both; nothing if the edge advances.
fn lift(
    scopes: &[Scope],
    places: &[Place],
    names: &[String],
    &(from, to, summary): &EdgeRow,
) -> Result<Option<(u32, u32)>, GraphError> {
    let scope_of = |scope: ScopeId| &scopes[scope.0 as usize];
    let unit_of = |scope: ScopeId| places.len() as u32 + scope.0;
    let (mut a, mut b) = (places[from as usize].scope, places[to as usize].scope);
    let (mut from_unit, mut to_unit) = (from, to);
    let fits = summary.from_len() == scope_of(a).len as usize && summary.to_len() == scope_of(b).len as usize;
    while a != b {
        if scope_of(a).depth >= scope_of(b).depth {
            from_unit = unit_of(a);
            a = scope_of(a).parent;
        } else {
            to_unit = unit_of(b);
            b = scope_of(b).parent;
        }
    }
    let around = scope_of(a);
    let name = |location: Location| names[location as usize].clone();
    if !fits || summary.keep() > around.len as usize {
        return Err(GraphError::Shape { from: name(from), to: name(to) });
    }
    if summary.advances() {
        return Ok(None);
    }
    if summary.keep() == around.len as usize {
        return Ok(Some((from_unit, to_unit)));
    }
    // The outermost scope whose coordinate is dropped and set anew; the root itself if it is a root coordinate.
    let mut left = around;
    while left.depth > 0 && scope_of(left.parent).len as usize > summary.keep() {
        left = scope_of(left.parent);
    }
    Err(GraphError::Reenters { scope: left.name.clone(), from: name(from), to: name(to) })
}

/// Kahn's topological sort, first come first served. Returns the order and how many sources each unit still waits for.
///
/// Leaves `lifted` sorted by source.
fn sort(unit_count: usize, lifted: &mut [Lifted]) -> (Vec<u32>, Vec<u32>) {
    lifted.sort_unstable_by_key(|edge| (edge.from, edge.edge));
    let mut offsets = vec![0u32; unit_count + 1];
    let mut indegree = vec![0u32; unit_count];
    for edge in lifted.iter() {
        offsets[edge.from as usize + 1] += 1;
        indegree[edge.to as usize] += 1;
    }
    for index in 1..offsets.len() {
        offsets[index] += offsets[index - 1];
    }
    let mut order: Vec<u32> = (0..unit_count as u32).filter(|&unit| indegree[unit as usize] == 0).collect();
    let mut done = 0;
    while done < order.len() {
        let unit = order[done] as usize;
        done += 1;
        for edge in &lifted[offsets[unit] as usize..offsets[unit + 1] as usize] {
            indegree[edge.to as usize] -= 1;
            if indegree[edge.to as usize] == 0 {
                order.push(edge.to);
            }
        }
    }
    (order, indegree)
}

/// A cycle among units that still wait, as edges in order: each such unit has a source that waits.
fn cycle<'a>(lifted: &'a [Lifted], indegree: &[u32]) -> Vec<&'a Lifted> {
    let mut source: Vec<Option<&Lifted>> = vec![None; indegree.len()];
    for edge in lifted.iter().filter(|edge| indegree[edge.from as usize] > 0) {
        source[edge.to as usize].get_or_insert(edge);
    }
    let waits = indegree.iter().position(|&count| count > 0).expect("the sort was stopped by a cycle");
    let back = |unit: u32| source[unit as usize].expect("a unit that waits has a source that waits");
    // Far enough back one is on a cycle for sure.
    let on_cycle = (0..indegree.len()).fold(waits as u32, |unit, _| back(unit).from);
    let mut edges = vec![back(on_cycle)];
    while edges[edges.len() - 1].from != on_cycle {
        edges.push(back(edges[edges.len() - 1].from));
    }
    edges.reverse();
    edges
}

fn name_cycle(
    scopes: &[Scope],
    location_count: usize,
    names: &[String],
    edges: &[EdgeRow],
    cycle: &[&Lifted],
) -> GraphError {
    let name = |location: Location| names[location as usize].clone();
    let through = cycle.iter().position(|edge| edge.from as usize >= location_count);
    match through {
        None => GraphError::NotAdvancing { cycle: cycle.iter().map(|edge| name(edge.from)).collect() },
        Some(index) => {
            let (leaves, enters) = (cycle[index], cycle[(index + cycle.len() - 1) % cycle.len()]);
            GraphError::Reenters {
                scope: scopes[leaves.from as usize - location_count].name.clone(),
                from: name(edges[leaves.edge as usize].0),
                to: name(edges[enters.edge as usize].1),
            }
        }
    }
}
