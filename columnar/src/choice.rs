//! Which encoding is the smallest, and taking it: in slices, since a column may be long.
//!
//! One pass looks at the values: as long as they lie on a straight line that is all there is to know; from where they
//! leave it on, the least and the greatest. A second pass writes them anew, if that makes them smaller.
use crate::encoding::{Encoding, extend_with};
use crate::int::Int;
use crate::seal::Sealer;
use kpg_arena::Buffer;
use std::any::Any;

/// How far the choice of an encoding, and then the encoding, has come.
pub(crate) struct Choice<T: Int> {
    looked: usize,
    /// While the values so far neither descend nor leave one straight line: its step.
    line: Option<u64>,
    /// The least and the greatest key of those looked at; on a line, the first and the last.
    least: u64,
    greatest: u64,
    /// What is written, once all are looked at.
    encoded: Option<Encoding<T>>,
}

impl<T: Int> Choice<T> {
    pub(crate) fn of(values: &[T]) -> Self {
        let first = values.first().map_or(0, |value| value.key());
        let line = match values.get(1) {
            Some(second) => second.key().checked_sub(first),
            None => Some(0),
        };
        Choice { looked: 0, line, least: first, greatest: first, encoded: None }
    }

    /// Works on for at most `fuel` values. True once the choice is made and written.
    pub(crate) fn work(&mut self, values: &Buffer<T>, fuel: &mut usize) -> bool {
        while self.looked < values.len() {
            if *fuel == 0 {
                return false;
            }
            let next = &values[self.looked..values.len().min(self.looked.saturating_add(*fuel))];
            let seen = match self.line {
                Some(step) => self.follow(step, next),
                None => self.widen(next),
            };
            self.looked += seen;
            *fuel -= seen;
        }
        let least = self.least;
        if self.encoded.is_none() {
            self.encoded = self.smallest(values);
        }
        match &mut self.encoded {
            Some(Encoding::Narrow8 { deltas, .. }) => write(deltas, values, fuel, |v| (v.key() - least) as u8),
            Some(Encoding::Narrow16 { deltas, .. }) => write(deltas, values, fuel, |v| (v.key() - least) as u16),
            Some(Encoding::Narrow32 { deltas, .. }) => write(deltas, values, fuel, |v| (v.key() - least) as u32),
            Some(Encoding::Plain(exact)) => write(exact, values, fuel, |v| v),
            Some(Encoding::Stride { .. }) | None => true,
        }
    }

    /// The encoding; none if the values stay as they are.
    pub(crate) fn into_encoding(self) -> Option<Encoding<T>> {
        self.encoded
    }

    /// Passes values on the line; if one leaves it, there is no line from there on. How many were passed.
    fn follow(&mut self, step: u64, next: &[T]) -> usize {
        for (index, value) in next.iter().enumerate() {
            let expected = if self.looked + index == 0 { Some(self.least) } else { self.greatest.checked_add(step) };
            if expected != Some(value.key()) {
                self.line = None;
                return index;
            }
            self.greatest = value.key();
        }
        next.len()
    }

    fn widen(&mut self, next: &[T]) -> usize {
        // Of values, not of keys: short ones are compared by the vector.
        if let Some(first) = next.first() {
            let bounds = |bounds: (T, T), value: &T| (bounds.0.min(*value), bounds.1.max(*value));
            let (least, greatest) = next.iter().fold((*first, *first), bounds);
            (self.least, self.greatest) = (self.least.min(least.key()), self.greatest.max(greatest.key()));
        }
        next.len()
    }

    /// The smallest encoding, with room for the values and none of them yet; none if they stay as they are.
    fn smallest(&self, values: &Buffer<T>) -> Option<Encoding<T>> {
        let (base, len) = (self.least, values.len());
        if let Some(step) = self.line {
            return Some(Encoding::Stride { base, step, len });
        }
        Encoding::narrow(base, self.greatest, len)
            .or_else(|| is_loose(values).then(|| Encoding::Plain(Buffer::with_capacity(len))))
    }
}

/// Chooses an encoding for values, and encodes them, for at most `fuel`: none if there is more to do, and within that none if they
/// stay as they are.
pub(crate) fn choose<T: Int>(
    values: &Buffer<T>,
    fuel: &mut usize,
    state: &mut Option<Box<dyn Any + Send>>,
) -> Option<Option<Encoding<T>>> {
    let mut choice = match state.take() {
        Some(begun) => *begun.downcast::<Choice<T>>().expect("this part's state"),
        None => Choice::of(values),
    };
    if choice.work(values, fuel) {
        return Some(choice.into_encoding());
    }
    *state = Some(Box::new(choice));
    None
}

impl<D: Int> Encoding<D> {
    /// What these come to, if they are differences of other values from `base`; `again` makes a column of differences that are kept.
    pub(crate) fn above<T: Int>(self, base: u64, again: impl FnOnce(Buffer<D>) -> Encoding<T>) -> Encoding<T> {
        match self {
            Encoding::Stride { base: least, step, len } => Encoding::Stride { base: base + least, step, len },
            Encoding::Narrow8 { base: least, span, deltas } => Encoding::Narrow8 { base: base + least, span, deltas },
            Encoding::Narrow16 { base: least, span, deltas } => Encoding::Narrow16 { base: base + least, span, deltas },
            Encoding::Narrow32 { base: least, span, deltas } => Encoding::Narrow32 { base: base + least, span, deltas },
            Encoding::Plain(deltas) => again(deltas),
        }
    }
}

/// Whether an exact copy of the values would be smaller by more than what size classes (1/8) and the least block (64
/// bytes) may cost anyway.
fn is_loose<V: Copy>(values: &Buffer<V>) -> bool {
    let slack = (values.capacity() - values.len()) * size_of::<V>();
    slack > 64 + size_of::<V>() * values.len() / 8
}

/// Writes on to `out`, which has room for all, for at most `fuel` values. True once all are written.
fn write<V: Copy, D: Copy + 'static>(out: &mut Buffer<D>, values: &[V], fuel: &mut usize, f: impl Fn(V) -> D) -> bool {
    let written = out.len();
    let count = (values.len() - written).min(*fuel);
    let next = &values[written..written + count];
    extend_with(out, count, |index| f(next[index]));
    *fuel -= count;
    out.len() == values.len()
}

/// Part of a column that is a buffer and stays one: moves it to a smaller block if it is not nearly full.
pub(crate) fn shrink_in<V: Copy + Send + 'static>(values: &mut Buffer<V>, sealer: &mut Sealer) -> bool {
    sealer.part(|fuel, state| {
        if state.is_none() && !is_loose(values) {
            return true;
        }
        if values.is_empty() {
            *values = Buffer::new();
            return true;
        }
        let mut exact = match state.take() {
            Some(begun) => *begun.downcast::<Buffer<V>>().expect("this part's state"),
            None => Buffer::with_capacity(values.len()),
        };
        let done = write(&mut exact, values, fuel, |value| value);
        if done {
            *values = exact;
        } else {
            *state = Some(Box::new(exact));
        }
        done
    })
}
