//! One cursor over the cursors of many batches. A step costs a pass over the batches that are at the current key or
//! val; a seek one seek in each batch.
#![forbid(unsafe_code)]

use super::compare::compare;
use super::{Cursor, Ref};
use std::marker::PhantomData;
use std::ops::Range;

/// A merged cursor: shows each key of any of its cursors once, with the vals of all.
pub struct CursorList<'a, C: Cursor<'a>> {
    cursors: Vec<C>,
    // The cursors at the least key.
    at_key: Vec<usize>,
    // Of these, the ones at the least val.
    at_val: Vec<usize>,
    batches: PhantomData<&'a ()>,
}

impl<'a, C: Cursor<'a>> CursorList<'a, C> {
    /// A cursor over all of `cursors`.
    pub fn new(cursors: Vec<C>) -> Self {
        let mut list = CursorList { at_key: Vec::new(), at_val: Vec::new(), cursors, batches: PhantomData };
        list.find_keys();
        list
    }
    fn find_keys(&mut self) {
        self.at_key.clear();
        for (index, cursor) in self.cursors.iter().enumerate() {
            let Some(key) = cursor.key() else { continue };
            match self.at_key.first().and_then(|least| self.cursors[*least].key()) {
                Some(least) if key > least => {}
                Some(least) if key == least => self.at_key.push(index),
                _ => {
                    self.at_key.clear();
                    self.at_key.push(index);
                }
            }
        }
        self.find_vals();
    }
    fn find_vals(&mut self) {
        self.at_val.clear();
        for &index in &self.at_key {
            let Some(val) = self.cursors[index].val() else { continue };
            match self.at_val.first().and_then(|least| self.cursors[*least].val()) {
                Some(least) if val > least => {}
                Some(least) if val == least => self.at_val.push(index),
                _ => {
                    self.at_val.clear();
                    self.at_val.push(index);
                }
            }
        }
    }
    /// The position each cursor would have at the first key at or after `key`, added up.
    fn rank(&mut self, key: Ref<'_, C::Key>) -> usize {
        let mut rank = 0;
        for cursor in &mut self.cursors {
            cursor.set_position(0);
            cursor.seek_key(key);
            rank += cursor.position();
        }
        rank
    }
}

impl<'a, C: Cursor<'a>> Cursor<'a> for CursorList<'a, C> {
    type Key = C::Key;
    type Val = C::Val;
    type Time = C::Time;
    type Diff = C::Diff;

    #[inline]
    fn key(&self) -> Option<Ref<'a, C::Key>> {
        self.cursors[*self.at_key.first()?].key()
    }
    #[inline]
    fn val(&self) -> Option<Ref<'a, C::Val>> {
        self.cursors[*self.at_val.first()?].val()
    }
    fn step_key(&mut self) {
        for &index in &self.at_key {
            self.cursors[index].step_key();
        }
        self.find_keys();
    }
    fn seek_key(&mut self, key: Ref<'_, C::Key>) {
        for cursor in &mut self.cursors {
            if cursor.key().is_some_and(|k| compare::<C::Key>(k, key).is_lt()) {
                cursor.seek_key(key);
            } else {
                cursor.rewind_vals();
            }
        }
        self.find_keys();
    }
    fn step_val(&mut self) {
        for &index in &self.at_val {
            self.cursors[index].step_val();
        }
        self.find_vals();
    }
    fn seek_val(&mut self, val: Ref<'_, C::Val>) {
        for &index in &self.at_key {
            self.cursors[index].seek_val(val);
        }
        self.find_vals();
    }
    fn rewind_vals(&mut self) {
        for &index in &self.at_key {
            self.cursors[index].rewind_vals();
        }
        self.find_vals();
    }
    fn time_count(&self) -> usize {
        self.at_val.iter().map(|&index| self.cursors[index].time_count()).sum()
    }
    fn for_each_time_in(&mut self, range: Range<usize>, mut f: impl FnMut(C::Time, C::Diff)) {
        let mut before = 0;
        for &index in &self.at_val {
            let from = |bound: usize| bound.saturating_sub(before);
            self.cursors[index].for_each_time_in(from(range.start)..from(range.end), &mut f);
            before += self.cursors[index].time_count();
        }
    }
    fn position(&self) -> usize {
        self.cursors.iter().map(C::position).sum()
    }
    fn val_position(&self) -> usize {
        self.at_key.iter().map(|&index| self.cursors[index].val_position()).sum()
    }
    /// Cost: the number of batches squared, times a search in each.
    fn resume(&mut self, position: usize, val_position: usize) {
        self.find_position(position);
        if val_position > 0 {
            self.find_val_position(val_position);
        }
    }
}

/// Positions of a list are the sums of its cursors' positions, which grow from key to key and from val to val.
impl<'a, C: Cursor<'a>> CursorList<'a, C> {
    /// The val position each cursor would have at the first val of this key at or after `val`, added up.
    fn val_rank(&mut self, val: Ref<'_, C::Val>) -> usize {
        let mut rank = 0;
        for &index in &self.at_key {
            self.cursors[index].rewind_vals();
            self.cursors[index].seek_val(val);
            rank += self.cursors[index].val_position();
        }
        rank
    }
    /// To the first val of this key whose rank is at least `position`.
    fn find_val_position(&mut self, position: usize) {
        let mut best: Option<Ref<'a, C::Val>> = None;
        for index in self.at_key.clone() {
            let key = self.cursors[index].position();
            self.cursors[index].resume(key, usize::MAX);
            let (mut low, mut high) = (0, self.cursors[index].val_position());
            while low < high {
                let middle = low + (high - low) / 2;
                self.cursors[index].resume(key, middle);
                let before = match self.cursors[index].val() {
                    Some(val) => self.val_rank(val) < position,
                    None => false,
                };
                if before { low = middle + 1 } else { high = middle }
            }
            self.cursors[index].resume(key, low);
            if let Some(val) = self.cursors[index].val()
                && best.is_none_or(|best| val < best)
            {
                best = Some(val);
            }
        }
        for &index in &self.at_key {
            let key = self.cursors[index].position();
            match best {
                Some(best) => {
                    self.cursors[index].rewind_vals();
                    self.cursors[index].seek_val(best);
                }
                None => self.cursors[index].resume(key, usize::MAX),
            }
        }
        self.find_vals();
    }
    /// To the first key whose rank is at least `position`.
    fn find_position(&mut self, position: usize) {
        // The key looked for is the least one whose rank is at least `position`, and stands in some cursor.
        let mut best: Option<Ref<'a, C::Key>> = None;
        for index in 0..self.cursors.len() {
            let (mut low, mut high) = (0, usize::MAX);
            self.cursors[index].set_position(usize::MAX);
            high = high.min(self.cursors[index].position());
            while low < high {
                let middle = low + (high - low) / 2;
                self.cursors[index].set_position(middle);
                let before = match self.cursors[index].key() {
                    Some(key) => self.rank(key) < position,
                    None => false,
                };
                if before { low = middle + 1 } else { high = middle }
            }
            self.cursors[index].set_position(low);
            if let Some(key) = self.cursors[index].key()
                && best.is_none_or(|best| key < best)
            {
                best = Some(key);
            }
        }
        for cursor in &mut self.cursors {
            cursor.set_position(if best.is_some() { 0 } else { usize::MAX });
            if let Some(best) = best {
                cursor.seek_key(best);
            }
        }
        self.find_keys();
    }
}
