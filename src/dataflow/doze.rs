//! Whether a dataflow would have anyone learn of the ticks of what it imports.
//!
//! It has not, and dozes, while it has no node that always hears (probes and subscriptions do), publishes nothing, and no
//! node but its importers holds a capability, on any worker. Which nodes there are is the same on all workers; the
//! capabilities are counted from the very change batches that the tracker gets, so that all workers come to the same
//! answer, each as soon as it has heard. Cost: an addition for each change; nothing in dataflows that import nothing.
#![forbid(unsafe_code)]

use super::run::NodeSlot;
use crate::progress::Location;

/// One import, as the importing dataflow sees its source.
pub(crate) trait ImportSource {
    /// Whether to tell it of few ticks only; true iff it may have missed one and has to be told now.
    fn set_dozing(&self, dozing: bool) -> bool;
    /// The dataflow has ended: it hears of nothing any more.
    fn forget(&self);
}

/// The imports of one dataflow on one worker.
pub(crate) struct Imports {
    /// Each with its node.
    sources: Vec<(u32, Box<dyn ImportSource>)>,
    /// Output ports of nodes other than importers; empty if the dataflow never dozes.
    counted: Vec<bool>,
    /// Capabilities there, of all workers. Not zero also while some are heard of and others are not.
    held: i64,
    dozing: bool,
}

impl Imports {
    /// Those of a dataflow with these nodes, of which `births` are born with a capability on each of `peers` workers.
    pub(crate) fn new(
        sources: Vec<(u32, Box<dyn ImportSource>)>,
        publishes: bool,
        nodes: &[NodeSlot],
        births: &[Location],
        peers: i64,
    ) -> Self {
        let mut imports = Imports { sources, counted: Vec::new(), held: 0, dozing: false };
        if imports.sources.is_empty() || publishes || nodes.iter().any(|node| node.always) {
            return imports;
        }
        for (index, node) in nodes.iter().enumerate() {
            if imports.sources.iter().any(|(import, _)| *import as usize == index) {
                continue;
            }
            for output in &node.outputs {
                let output = *output as usize;
                if imports.counted.len() <= output {
                    imports.counted.resize(output + 1, false);
                }
                imports.counted[output] = true;
            }
        }
        births.iter().for_each(|location| imports.count(*location, peers));
        // Of one that has no node but importers the list is empty, too.
        imports.counted.push(false);
        imports
    }

    /// Counts a change of the pointstamps at a location.
    #[inline]
    pub(crate) fn count(&mut self, location: Location, diff: i64) {
        if self.counted.get(location as usize) == Some(&true) {
            self.held += diff;
        }
    }

    /// Lets the sources know whether it dozes; calls `activate` for importers that have missed ticks.
    pub(crate) fn settle(&mut self, mut activate: impl FnMut(u32)) {
        let dozing = !self.counted.is_empty() && self.held == 0;
        if std::mem::replace(&mut self.dozing, dozing) == dozing {
            return;
        }
        for (node, source) in &self.sources {
            if source.set_dozing(dozing) {
                activate(*node);
            }
        }
    }
}

impl Drop for Imports {
    fn drop(&mut self) {
        self.sources.iter().for_each(|(_, source)| source.forget());
    }
}
