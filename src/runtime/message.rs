//! What crosses between workers.
#![forbid(unsafe_code)]

use crate::order::Coords;
use crate::progress::Location;
use std::any::Any;
use std::sync::Arc;

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

/// Words that an entry keeps in place: with the log's count before them, and a line's length in mind, two lines.
const IN_PLACE: usize = 13;

/// What stands in a change's first word for a diff that has a word of its own.
const WIDE: i16 = i16::MIN;

/// One broadcast: the change batches of all dataflows stepped in a round.
///
/// ```text
/// part:   dataflow | number of changes              change:   location | coordinates | diff of 16 bits
///         its changes                                         the coordinates, a word each    the diff, if it is wider
/// ```
/// A change of a root scope's time is two words, so that a round of a few of them lies in the log's slot, and the reader
/// fetches that and nothing else. A clone is cheap, and so is dropping one on another thread: there is no block, or a shared one.
#[derive(Clone, PartialEq, Eq)]
pub struct ProgressEntry {
    words: Words,
}

#[derive(Clone, PartialEq, Eq)]
enum Words {
    Few(u8, [u64; IN_PLACE]),
    Many(Arc<[u64]>),
}

impl ProgressEntry {
    /// An entry of what was gathered.
    pub(super) fn new(parts: &Parts) -> Self {
        let mut few = [0; IN_PLACE];
        let words = match few.get_mut(..parts.words.len()) {
            Some(place) => {
                place.copy_from_slice(&parts.words);
                Words::Few(parts.words.len() as u8, few)
            }
            None => Words::Many(parts.words.as_slice().into()),
        };
        ProgressEntry { words }
    }

    fn words(&self) -> &[u64] {
        match &self.words {
            Words::Few(len, words) => &words[..usize::from(*len)],
            Words::Many(words) => words,
        }
    }

    /// Calls `f` with each dataflow and its change batch, which are decoded into `changes`, one after another.
    pub fn for_each(&self, changes: &mut Changes, mut f: impl FnMut(DataflowId, &Changes)) {
        let mut words = self.words().iter().copied();
        let mut next = || words.next().expect("an entry is whole");
        // The number of parts comes first.
        for _ in 0..next() {
            let part = next();
            changes.clear();
            for _ in 0..part >> 32 {
                let head = next();
                let mut time = Coords::zero((head >> 32) as usize & 0xff);
                time.as_mut_slice().iter_mut().for_each(|coordinate| *coordinate = next());
                let diff = match (head >> 48) as i16 {
                    WIDE => next() as i64,
                    narrow => i64::from(narrow),
                };
                changes.push((head as Location, time, diff));
            }
            f(part as DataflowId, changes);
        }
    }

    /// How many dataflows it is of.
    pub fn parts(&self) -> usize {
        self.words()[0] as usize
    }
}

/// The parts of an entry that is being made.
#[derive(Default)]
pub(super) struct Parts {
    words: Vec<u64>,
}

impl Parts {
    pub(super) fn clear(&mut self) {
        self.words.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds what a dataflow has changed.
    pub(super) fn push(&mut self, dataflow: DataflowId, changes: &Changes) {
        if self.words.is_empty() {
            self.words.push(0);
        }
        self.words[0] += 1;
        self.words.push(u64::from(dataflow) | (changes.len() as u64) << 32);
        for (location, time, diff) in changes {
            let narrow = i16::try_from(*diff).unwrap_or(WIDE);
            let head = u64::from(*location) | (time.len() as u64) << 32 | u64::from(narrow.cast_unsigned()) << 48;
            self.words.push(head);
            self.words.extend_from_slice(time.as_slice());
            if narrow == WIDE {
                self.words.push(diff.cast_unsigned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    /// Entries of any size and diff say what was put into them.
    fn says(parts: &[(DataflowId, Changes)]) -> bool {
        let mut gathered = Parts::default();
        parts.iter().for_each(|(id, changes)| gathered.push(*id, changes));
        if parts.is_empty() {
            return gathered.is_empty();
        }
        let entry = ProgressEntry::new(&gathered);
        let mut read = Vec::new();
        entry.clone().for_each(&mut Vec::new(), |id, changes| read.push((id, changes.clone())));
        entry.parts() == parts.len() && read == parts
    }

    quickcheck! {
        fn an_entry_says_what_was_put_in(parts: Vec<(u32, Vec<(u32, Vec<u64>, i64)>)>) -> bool {
            let change = |(location, time, diff): &(u32, Vec<u64>, i64)| {
                (*location, Coords::new(&time[..time.len().min(crate::order::MAX_COORDINATES)]), *diff)
            };
            let parts: Vec<_> = parts.iter().map(|(id, changes)| (*id, changes.iter().map(change).collect())).collect();
            says(&parts)
        }
    }

    #[test]
    fn diffs_at_the_edge_of_a_word() {
        let edges = [
            i64::from(WIDE) - 1,
            i64::from(WIDE),
            i64::from(WIDE) + 1,
            i64::from(i16::MAX),
            1 << 15,
            i64::MIN,
            i64::MAX,
        ];
        for diff in edges {
            assert!(says(&[(u32::MAX, vec![(u32::MAX, Coords::new(&[u64::MAX]), diff)])]), "{diff}");
        }
    }

    #[test]
    fn a_small_round_lies_in_place() {
        let time = |round| Coords::new(&[round]);
        let mut parts = Parts::default();
        parts.push(7, &vec![(0, time(1), -1), (0, time(2), 1), (1, time(1), -1), (1, time(2), 1)]);
        assert!(matches!(ProgressEntry::new(&parts).words, Words::Few(..)));
        assert!(size_of::<ProgressEntry>() + size_of::<usize>() <= 128, "two lines with the log's count");
    }
}
