//! A key of a reduce that is not done in one go: its vals and times are loaded, and its times visited, in slices.
//!
//! ```text
//! seeds ─▶ input ─▶ stored output ─▶ run (reduce_key)      each stops where the fuel ends, and goes on after the
//!          vals in a column, named by their places         last val it has seen
//! ```
//! What it holds is its own, so that it outlives a step; the memory serves the next key. Cost: linear in the history,
//! and what `key` costs.
#![forbid(unsafe_code)]

use super::history::Edits;
use super::key::KeyWork;
use super::walk::{Group, Walk, recycled};
use crate::dataflow::Fuel;
use crate::order::{Abelian, Antichain, Semigroup, Timestamp};
use crate::trace::{Cursor, Ref};
use kpg_columnar::{Column, Columnar};

/// What comes next for the key.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Part {
    /// There is no key.
    Closed,
    Due,
    Seeds,
    Input,
    Stored,
    Run,
}

/// A key that is worked on, if any.
pub(crate) struct Slices<V: Columnar, T, R, V2: Columnar, R2> {
    part: Part,
    limit: Antichain<T>,
    /// Due times that are seen.
    due: usize,
    /// The last val that was seen, if the part was left.
    after: Option<V>,
    after_stored: Option<V2>,
    /// The input's vals, ascending.
    vals: V::Column,
    work: KeyWork<usize, T, R, V2, R2>,
    walk: Walk,
    spare: Vec<(Ref<'static, V>, R)>,
}

/// Where a key's updates are.
pub(crate) struct Sources<'c, N, C, D, I> {
    /// The batches that came.
    pub(crate) new: &'c mut [N],
    /// All input.
    pub(crate) old: &'c mut [C],
    /// All output.
    pub(crate) had: &'c mut [D],
    /// The times at which the key is due.
    pub(crate) due: I,
}

impl<V: Columnar, T: Timestamp, R: Semigroup, V2: Columnar, R2: Abelian> Slices<V, T, R, V2, R2> {
    pub(crate) fn new() -> Self {
        Slices {
            part: Part::Closed,
            limit: Antichain::new(),
            due: 0,
            after: None,
            after_stored: None,
            vals: Default::default(),
            work: KeyWork::new(),
            walk: Walk::default(),
            spare: Vec::new(),
        }
    }

    /// Whether there is a key, which is to be resumed.
    pub(crate) fn is_open(&self) -> bool {
        self.part != Part::Closed
    }

    /// Begins a key, whose times not beyond `limit` are to be visited.
    pub(crate) fn open(&mut self, limit: &Antichain<T>) {
        self.limit.clone_from(limit);
        self.part = Part::Due;
        self.due = 0;
        self.after = None;
        self.after_stored = None;
        self.vals.clear();
        self.work.clear();
    }

    /// Goes on with the key, which is `key` each time until it is done; true iff it is. `f` gives the output for an
    /// input, `emit` takes changes of the output, `pend` the times at which the key is to be looked at again.
    pub(crate) fn resume<'n, 'a, 'b, N, C, D>(
        &mut self,
        mut sources: Sources<'_, N, C, D, impl Iterator<Item = T>>,
        key: Ref<'_, C::Key>,
        fuel: &mut Fuel,
        f: impl for<'v> Fn(Ref<'v, C::Key>, &[(Ref<'v, V>, R)], &mut Vec<(V2, R2)>),
        mut emit: impl FnMut(Ref<'_, V2>, T, R2),
        mut pend: impl FnMut(T),
    ) -> bool
    where
        N: Cursor<'n, Key = C::Key, Val = V, Time = T>,
        C: Cursor<'a, Val = V, Time = T, Diff = R>,
        D: Cursor<'b, Key = C::Key, Val = V2, Time = T, Diff = R2>,
    {
        loop {
            let (work, walk, after) = (&mut self.work, &mut self.walk, &mut self.after);
            let (done, next) = match self.part {
                Part::Closed => return true,
                Part::Due => {
                    let start = self.due;
                    let mut rest = sources.due.by_ref().skip(start);
                    let done = loop {
                        let Some(time) = rest.next() else { break true };
                        work.seed(time);
                        self.due += 1;
                        if !fuel.spend(1) {
                            break false;
                        }
                    };
                    (done, Part::Seeds)
                }
                Part::Seeds => {
                    let see = |_, group: &mut Group<'_, N>| count_seeds(group, |time| work.seed(time));
                    (slice(walk, sources.new, key, after, fuel, see), Part::Input)
                }
                Part::Input => {
                    let vals = &mut self.vals;
                    let load = |val, group: &mut Group<'_, C>| {
                        let name = || {
                            vals.push(val);
                            vals.len() - 1
                        };
                        work.load_input(name, group)
                    };
                    (slice(walk, sources.old, key, after, fuel, load), Part::Stored)
                }
                Part::Stored => {
                    let load = |val, group: &mut Group<'_, D>| work.load_stored(|| V2::to_owned(val), group);
                    (slice(walk, sources.had, key, &mut self.after_stored, fuel, load), Part::Run)
                }
                Part::Run => {
                    let (vals, spare) = (&self.vals, &mut self.spare);
                    let f = |sums: &[(usize, R)], should: &mut Vec<(V2, R2)>| {
                        let mut list = recycled(std::mem::take(spare));
                        list.extend(sums.iter().map(|(index, diff)| (vals.get(*index), *diff)));
                        f(C::Key::reborrow(key), &list, should);
                        *spare = recycled(list);
                    };
                    (
                        work.run(&self.limit, fuel, f, |val, time, diff| emit(val.borrow(), time, diff), &mut pend),
                        Part::Closed,
                    )
                }
            };
            if !done {
                return false;
            }
            self.part = next;
            if next == Part::Closed {
                return true;
            }
        }
    }
}

fn count_seeds<T, R>(edits: &mut impl Edits<T, R>, mut seed: impl FnMut(T)) -> usize {
    let mut count = 0;
    edits.for_each(|time, _| {
        seed(time);
        count += 1;
    });
    count
}

/// Shows vals of `key` beyond `after`, which see how many updates they have, while there is fuel; true iff all are shown.
fn slice<'a, C: Cursor<'a>>(
    walk: &mut Walk,
    cursors: &mut [C],
    key: Ref<'_, C::Key>,
    after: &mut Option<C::Val>,
    fuel: &mut Fuel,
    mut each: impl FnMut(Ref<'a, C::Val>, &mut Group<'_, C>) -> usize,
) -> bool {
    walk.start(cursors, key, after.as_ref().map(Columnar::borrow));
    let mut last = None;
    let done = walk.go(cursors, |val, group| {
        let count = each(val, group);
        let go_on = fuel.spend(1 + count);
        if !go_on {
            last = Some(<C::Val as Columnar>::to_owned(val));
        }
        go_on
    });
    *after = last;
    done
}
