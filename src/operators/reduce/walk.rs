//! A walk through the vals of one key in several batches, and what it finds at one time.
#![forbid(unsafe_code)]

use super::history::Edits;
use crate::trace::{Cursor, Ref};
use kpg_columnar::Columnar;

/// The cursors that are at one val.
pub(crate) struct Group<'g, C> {
    cursors: &'g mut [C],
    at: &'g [usize],
}

impl<'a, C: Cursor<'a>> Edits<C::Time, C::Diff> for Group<'_, C> {
    #[inline]
    fn for_each(&mut self, mut f: impl FnMut(C::Time, C::Diff)) {
        for index in self.at {
            self.cursors[*index].for_each_time(&mut f);
        }
    }
}

/// Which of the cursors have vals left, and which are at the least; kept for its memory.
#[derive(Default)]
pub(crate) struct Walk {
    active: Vec<usize>,
    least: Vec<usize>,
}

impl Walk {
    /// Takes the cursors to `key`, and past `after` if given.
    pub(crate) fn start<'a, C: Cursor<'a>>(
        &mut self,
        cursors: &mut [C],
        key: Ref<'_, C::Key>,
        after: Option<Ref<'_, C::Val>>,
    ) {
        self.active.clear();
        for (index, cursor) in cursors.iter_mut().enumerate() {
            if !cursor.seek_key_exact(C::Key::reborrow(key)) {
                continue;
            }
            if let Some(after) = after {
                cursor.seek_val(after);
                if cursor.val().is_some_and(|v| C::Val::reborrow(v) == C::Val::reborrow(after)) {
                    cursor.step_val();
                }
            }
            if cursor.val().is_some() {
                self.active.push(index);
            }
        }
    }

    /// Shows each val once, ascending, with its updates in all the cursors, until `each` returns false; true iff it
    /// never does. Cost: where one cursor has the next vals alone, a comparison for each; else one for each cursor.
    pub(crate) fn go<'a, C: Cursor<'a>>(
        &mut self,
        cursors: &mut [C],
        mut each: impl FnMut(Ref<'a, C::Val>, &mut Group<'_, C>) -> bool,
    ) -> bool {
        while let Some(first) = self.active.first() {
            let mut least = cursors[*first].val().expect("an active cursor has a val");
            let mut next = None;
            self.least.clear();
            self.least.push(*first);
            for index in &self.active[1..] {
                let val = cursors[*index].val().expect("an active cursor has a val");
                match val.cmp(&least) {
                    std::cmp::Ordering::Less => {
                        next = Some(least);
                        least = val;
                        self.least.clear();
                        self.least.push(*index);
                    }
                    std::cmp::Ordering::Equal => self.least.push(*index),
                    std::cmp::Ordering::Greater => next = Some(next.map_or(val, |n| val.min(n))),
                }
            }
            let mut ended = false;
            loop {
                let go_on = each(least, &mut Group { cursors, at: &self.least });
                for index in &self.least {
                    cursors[*index].step_val();
                    ended |= cursors[*index].val().is_none();
                }
                if !go_on {
                    return false;
                }
                // Alone, a cursor goes on up to the others' least.
                match cursors[self.least[0]].val() {
                    Some(val) if self.least.len() == 1 && next.is_none_or(|next| val < next) => least = val,
                    _ => break,
                }
            }
            if ended {
                self.active.retain(|index| cursors[*index].val().is_some());
            }
        }
        true
    }
}

/// An empty list in the memory of another, whose items have the same layout.
pub(crate) fn recycled<A, B>(mut list: Vec<A>) -> Vec<B> {
    list.clear();
    list.into_iter().map(|_| unreachable!("the list is empty")).collect()
}
