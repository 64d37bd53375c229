//! Summaries: what an edge, or a path of edges, does at least to a time that takes it.
//!
//! ```text
//! (e, c, d)   keep 2, add (0, 1)   append (7)   ──▶   (e, c + 1, 7)
//!  └─┬─┘ dropped
//! ```
//! Identity, enter, leave and feedback are of this form, and so is whatever they compose to. A summary is monotone:
//! a ≤ b implies s(a) ≤ s(b), or s(b) is nothing. Next stop: `graph`.

use crate::order::{Coords, MAX_COORDINATES, PartialOrder};

/// Coordinates kept, steps added to them, constants appended.
///
/// Summaries are compared as such: `a.less_equal(b)` iff both have one shape and each number of `a` is at most that
/// of `b`; then `a` yields at most what `b` yields, for every time.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Summary {
    // Coordinates taken, kept, and given: keep ≤ from, keep ≤ to.
    from: u8,
    keep: u8,
    to: u8,
    // Below `keep`: steps; from `keep` to `to`: constants; then 0.
    values: [u64; MAX_COORDINATES],
}

impl Summary {
    /// Leaves times of `len` coordinates as they are.
    pub fn identity(len: usize) -> Self {
        Self::new(len, len, &[])
    }

    /// Into a nested scope: appends a 0 to `len` coordinates.
    ///
    /// # Panics
    /// If that makes more than [`MAX_COORDINATES`].
    pub fn enter(len: usize) -> Self {
        Self::new(len, len, &[0])
    }

    /// Out of a nested scope: drops the last of `len` coordinates.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn leave(len: usize) -> Self {
        assert!(len > 0, "a time without coordinates is in no nested scope");
        Self::new(len, len - 1, &[])
    }

    /// Once round a loop: adds `by` to the last of `len` coordinates.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn step(len: usize, by: u64) -> Self {
        assert!(len > 0, "a time without coordinates has nothing to step");
        let mut summary = Self::identity(len);
        summary.values[len - 1] = by;
        summary
    }

    fn new(from: usize, keep: usize, append: &[u64]) -> Self {
        let to = keep + append.len();
        assert!(from <= MAX_COORDINATES && to <= MAX_COORDINATES, "a time has at most {MAX_COORDINATES} coordinates");
        let mut values = [0; MAX_COORDINATES];
        values[keep..to].copy_from_slice(append);
        Summary { from: from as u8, keep: keep as u8, to: to as u8, values }
    }

    /// How many coordinates the times have that it takes.
    pub fn from_len(&self) -> usize {
        self.from as usize
    }

    /// How many coordinates the times have that it yields.
    pub fn to_len(&self) -> usize {
        self.to as usize
    }

    /// How many coordinates are kept.
    pub fn keep(&self) -> usize {
        self.keep as usize
    }

    /// What is added to each kept coordinate.
    pub fn add(&self) -> &[u64] {
        &self.values[..self.keep as usize]
    }

    /// The constants appended to the kept coordinates.
    pub fn append(&self) -> &[u64] {
        &self.values[self.keep as usize..self.to as usize]
    }

    /// Whether it leaves every time as it is.
    pub fn is_identity(&self) -> bool {
        self.from == self.keep && self.keep == self.to && self.values == [0; MAX_COORDINATES]
    }

    /// Whether some kept coordinate grows: then each time grows lexicographically.
    pub fn advances(&self) -> bool {
        self.add().iter().any(|&by| by > 0)
    }

    /// This, then `next`; nothing if no time can take both, for a step would pass `u64::MAX`.
    ///
    /// A path may pass a smaller maximum on the way; that shows only when it is applied, edge by edge.
    pub fn then(&self, next: &Summary) -> Option<Summary> {
        debug_assert_eq!(self.to, next.from, "summaries of different scopes do not compose");
        let mut out = Summary { from: self.from, keep: self.keep.min(next.keep), to: next.to, values: next.values };
        for index in 0..next.keep as usize {
            // A kept value of `next` is a step or a constant of ours: either way the numbers add up.
            out.values[index] = next.values[index].checked_add(self.values[index])?;
        }
        Some(out)
    }

    /// The time that `time` becomes, or nothing if a coordinate would pass its maximum.
    #[inline]
    pub fn apply(&self, time: &Coords, maxima: &[u64; MAX_COORDINATES]) -> Option<Coords> {
        debug_assert_eq!(time.len(), self.from as usize, "a time of another scope");
        let keep = self.keep as usize;
        let mut out = Coords::new(&self.values[..self.to as usize]);
        for (index, value) in out.as_mut_slice().iter_mut().enumerate() {
            if index < keep {
                *value = value.checked_add(time.as_slice()[index])?;
            }
            if *value > maxima[index] {
                return None;
            }
        }
        Some(out)
    }
}

impl PartialOrder for Summary {
    fn less_equal(&self, other: &Self) -> bool {
        (self.from, self.keep, self.to) == (other.from, other.keep, other.to)
            && self.values.iter().zip(&other.values).all(|(a, b)| a <= b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    const MAXIMA: [u64; MAX_COORDINATES] = [u64::MAX; MAX_COORDINATES];

    /// A walk over scopes: each byte enters, leaves or steps. Returns the summaries of its edges.
    fn walk(start: usize, moves: &[u8]) -> Vec<Summary> {
        let mut len = start;
        let mut out = Vec::new();
        for &m in moves {
            let summary = match m % 3 {
                0 if len < MAX_COORDINATES => Summary::enter(len),
                1 if len > 1 => Summary::leave(len),
                _ => Summary::step(len, u64::from(m / 3)),
            };
            len = summary.to_len();
            out.push(summary);
        }
        out
    }

    quickcheck! {
        fn composed_is_applied_in_turn(moves: Vec<u8>, a: u64, b: u64) -> bool {
            let edges = walk(2, &moves);
            let time = Coords::new(&[a, b]);
            let whole = edges.iter().try_fold(Summary::identity(2), |path, edge| path.then(edge));
            let turns = edges.iter().try_fold(time, |t, edge| edge.apply(&t, &MAXIMA));
            // With a coordinate that overflows and is then dropped, the two may differ, towards the lesser time.
            match (whole.and_then(|s| s.apply(&time, &MAXIMA)), turns) {
                (Some(x), Some(y)) => x == y,
                (_, turns) => turns.is_none(),
            }
        }

        fn composition_is_associative(x: Vec<u8>, y: Vec<u8>, z: Vec<u8>) -> bool {
            let path = |start: usize, moves: &[u8]| {
                walk(start, moves).iter().fold(Summary::identity(start), |p, e| p.then(e).expect("small steps"))
            };
            let a = path(2, &x);
            let b = path(a.to_len(), &y);
            let c = path(b.to_len(), &z);
            a.then(&b).and_then(|ab| ab.then(&c)) == b.then(&c).and_then(|bc| a.then(&bc))
        }

        fn monotone(moves: Vec<u8>, a: (u8, u8), b: (u8, u8)) -> bool {
            let path = walk(2, &moves).iter().fold(Summary::identity(2), |p, e| p.then(e).expect("small steps"));
            let maxima = [200; MAX_COORDINATES];
            let [a, b] = [a, b].map(|(x, y)| Coords::new(&[u64::from(x), u64::from(y)]));
            if !a.less_equal(&b) {
                return true;
            }
            match (path.apply(&a, &maxima), path.apply(&b, &maxima)) {
                (Some(x), Some(y)) => x.less_equal(&y),
                (None, y) => y.is_none(),
                (Some(_), None) => true,
            }
        }
    }

    #[test]
    fn forms() {
        let round = Summary::enter(1).then(&Summary::step(2, 3)).expect("small");
        assert_eq!(round.apply(&Coords::new(&[5]), &MAXIMA), Some(Coords::new(&[5, 3])));
        assert_eq!(round.append(), [3]);
        assert!(!round.advances() && Summary::step(2, 3).advances() && !Summary::step(2, 0).advances());
        assert_eq!(round.then(&Summary::leave(2)), Some(Summary::identity(1)));
        let reset = Summary::leave(2).then(&Summary::enter(1)).expect("small");
        assert_eq!(reset.apply(&Coords::new(&[4, 9]), &MAXIMA), Some(Coords::new(&[4, 0])));
        assert!(!reset.less_equal(&Summary::identity(2)), "compared as such: another shape");
        assert!(Summary::identity(2).less_equal(&Summary::step(2, 1)));
    }

    #[test]
    fn nothing_beyond_a_maximum() {
        let mut maxima = MAXIMA;
        maxima[1] = 255;
        assert_eq!(Summary::step(2, 1).apply(&Coords::new(&[0, 255]), &maxima), None);
        assert_eq!(Summary::step(1, 1).apply(&Coords::new(&[u64::MAX]), &MAXIMA), None);
        assert_eq!(Summary::step(1, u64::MAX).then(&Summary::step(1, 1)), None);
    }
}
