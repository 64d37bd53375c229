//! The tracker: from counts of pointstamps to frontiers, incrementally.
//!
//! ```text
//! update ─▶ pending ─▶ counts at a location ─▶ their frontier ─┐
//!                                                              ├─▶ implied times ─▶ frontier of the location
//!                  frontiers of its sources, across the edges ─┘                        │
//!                          ▲────────────────────────────────────────────────────────────┘
//! ```
//! The frontier of a location: the minimal elements of the times that count positively there, and of the images of
//! its sources' frontiers across the edges. Images of minimal times are enough, for summaries are monotone. Each
//! location counts how often each time is implied; a change in its frontier goes on to its targets. Changes are
//! handled in the order of keys (see `positions`), so each (location, time) is handled once a call, when all that
//! implies it is final; implied counts are never negative.
//!
//! A frontier never passes a pointstamp that lives, whatever the order in which change batches of different workers
//! come, given that each is applied whole, those of one worker in order, and that a step takes its capabilities
//! from what it consumes or holds (`tests/progress_replicas.rs`).
//!
//! Cost: a call costs what changes, never the size of the graph: for each (location, time) that changes one visit of
//! a heap, one update of a counted antichain, and its edges. Previous stop: `positions`; next: `runtime`.

use super::worklist::{self, Entry, Worklist};
use super::{ChangeBatch, Graph, Location};
use crate::order::{Antichain, Coords, MutableAntichain};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Default)]
struct State {
    // Pointstamps here: messages at an input, capabilities at an output. Signed.
    counts: MutableAntichain<Coords>,
    // The frontier of `counts` and the images of the sources' frontiers, each with its multiplicity.
    implied: MutableAntichain<Coords>,
    // Whether `touched` has an entry for this location.
    touched: bool,
}

/// One replica of a dataflow's progress: counts of pointstamps, and the frontiers that follow.
pub struct Tracker {
    graph: Arc<Graph>,
    states: Vec<State>,
    pending: ChangeBatch,
    worklist: Worklist,
    // Locations whose frontier changed in this call, with what it was before.
    touched: Vec<(Location, Antichain<Coords>)>,
    // How many (location, time) have a count that is not zero.
    live: usize,
}

impl Tracker {
    /// A tracker with no pointstamp, all frontiers empty.
    pub fn new(graph: Arc<Graph>) -> Self {
        let states = std::iter::repeat_with(State::default).take(graph.location_count()).collect();
        let (pending, worklist, touched) = (ChangeBatch::new(), Worklist::default(), Vec::new());
        Tracker { graph, states, pending, worklist, touched, live: 0 }
    }

    /// The graph it tracks.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// Adds `diff` to the count of (`location`, `time`), at the next `propagate`.
    #[inline]
    pub fn update(&mut self, location: Location, time: Coords, diff: i64) {
        self.pending.update(location, time, diff);
    }

    /// Adds a change batch, whole, at the next `propagate`; it is empty then.
    pub fn apply(&mut self, changes: &mut ChangeBatch) {
        self.pending.merge(changes);
    }

    /// Brings the frontiers up to date; tells `changed` each location whose frontier is another than before, once.
    pub fn propagate(&mut self, mut changed: impl FnMut(Location)) {
        let Tracker { graph, states, pending, worklist, touched, live } = self;
        let graph: &Graph = graph;
        pending.take_each(|location, time, diff| {
            debug_assert_eq!(time.len(), graph.coordinates(location), "{}", graph.location_name(location));
            let counts = &mut states[location as usize].counts;
            let before = counts.counts().len();
            counts.update(time, diff, |&time, diff| {
                worklist.push(graph, Entry { time, location, diff: diff as i32 });
            });
            *live = *live + counts.counts().len() - before;
        });
        let mut last: Option<Entry> = None;
        while let Some(entry) = worklist.pop(graph) {
            debug_assert!(
                last.is_none_or(|last| worklist::compare(graph, &last, &entry).is_lt()),
                "{} at {:?}: handled before, or out of order",
                graph.location_name(entry.location),
                entry.time
            );
            last = Some(entry);
            if entry.diff != 0 {
                visit(graph, &mut states[entry.location as usize], worklist, touched, &entry);
            }
        }
        for (location, before) in touched.drain(..) {
            let state = &mut states[location as usize];
            state.touched = false;
            if *state.implied.frontier() != before {
                changed(location);
            }
        }
    }

    /// The minimal times that may still arrive at, or be sent from, `location`, pointstamps at it included.
    ///
    /// As of the last `propagate`.
    #[inline]
    pub fn frontier(&self, location: Location) -> &Antichain<Coords> {
        self.states[location as usize].implied.frontier()
    }

    /// The pointstamps at `location`, sorted, as of the last `propagate`. None is zero; any may be negative.
    pub fn counts(&self, location: Location) -> &[(Coords, i64)] {
        self.states[location as usize].counts.counts()
    }

    /// Whether no pointstamp has a count that is not zero, and no update is pending.
    pub fn is_empty(&self) -> bool {
        self.live == 0 && self.pending.is_untouched()
    }

    /// Checks the frontiers against the counts, from scratch. Costs the whole graph; for tests.
    ///
    /// # Panics
    /// If something is amiss, or updates are pending.
    pub fn check_invariants(&self) {
        assert!(self.pending.is_untouched(), "propagate first");
        let mut implied: HashMap<(Location, Coords), i64> = HashMap::new();
        let mut live = 0;
        for (location, state) in (0..).zip(&self.states) {
            assert!(!state.touched);
            let counts = state.counts.counts();
            live += counts.len();
            assert!(counts.iter().all(|(time, count)| *count != 0 && time.len() == self.graph.coordinates(location)));
            let positive: Antichain<Coords> = counts.iter().filter(|x| x.1 > 0).map(|x| x.0).collect();
            assert_eq!(&positive, state.counts.frontier(), "{}", self.graph.location_name(location));
            for &time in positive.elements() {
                *implied.entry((location, time)).or_default() += 1;
            }
            for time in state.implied.frontier().elements() {
                for &edge in self.graph.edges_of(location) {
                    if let Some(time) = self.graph.cross(edge, time) {
                        *implied.entry((edge.target, time)).or_default() += 1;
                    }
                }
            }
        }
        assert_eq!(live, self.live);
        for (location, state) in (0..).zip(&self.states) {
            let frontier: Antichain<Coords> = state.implied.counts().iter().map(|x| x.0).collect();
            assert_eq!(&frontier, state.implied.frontier(), "{}", self.graph.location_name(location));
            for &(time, count) in state.implied.counts() {
                assert_eq!(implied.remove(&(location, time)), Some(count), "{time:?} at location {location}");
            }
        }
        assert!(implied.is_empty(), "times implied but not counted: {implied:?}");
    }
}

/// Adds a change to what is implied at a location, and sends on what that changes in its frontier.
#[inline]
fn visit(
    graph: &Graph,
    state: &mut State,
    worklist: &mut Worklist,
    touched: &mut Vec<(Location, Antichain<Coords>)>,
    entry: &Entry,
) {
    let before = (!state.touched).then(|| state.implied.frontier().clone());
    let edges = graph.edges_of(entry.location);
    let mut moved = false;
    state.implied.update(entry.time, i64::from(entry.diff), |time, diff| {
        moved = true;
        for &edge in edges {
            if let Some(time) = graph.cross(edge, time) {
                worklist.push(graph, Entry { time, location: edge.target, diff: diff as i32 });
            }
        }
    });
    if let (true, Some(before)) = (moved, before) {
        state.touched = true;
        touched.push((entry.location, before));
    }
}
