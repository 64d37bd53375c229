//! How a timestamp is written: coordinates.
#![forbid(unsafe_code)]

use super::Lattice;
use kpg_columnar::Columnar;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The most coordinates that a timestamp may have: the progress tracker keeps them in place.
pub const MAX_COORDINATES: usize = 6;

/// A timestamp without its type: its coordinates, outermost first.
///
/// `Ord` is lexicographic and extends the partial order, which is that of the coordinates. Only coordinates of the
/// same count are comparable.
#[derive(Copy, Clone, Eq)]
pub struct Coords {
    // Those at or past `len` are 0.
    values: [u64; MAX_COORDINATES],
    len: u8,
}

impl Coords {
    /// The coordinates `values`.
    ///
    /// # Panics
    /// If there are more than [`MAX_COORDINATES`].
    pub fn new(values: &[u64]) -> Self {
        let mut coords = Coords { values: [0; MAX_COORDINATES], len: values.len() as u8 };
        coords.values[..values.len()].copy_from_slice(values);
        coords
    }

    /// All-zero coordinates, `len` of them: the minimum of every timestamp type with that many.
    pub fn zero(len: usize) -> Self {
        assert!(len <= MAX_COORDINATES, "a timestamp has at most {MAX_COORDINATES} coordinates, not {len}");
        Coords { values: [0; MAX_COORDINATES], len: len as u8 }
    }

    /// The coordinates, outermost first.
    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        &self.values[..self.len as usize]
    }

    /// The coordinates, to be changed in place.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.values[..self.len as usize]
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True for the coordinates of `()`.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl super::PartialOrder for Coords {
    #[inline]
    fn less_equal(&self, other: &Self) -> bool {
        debug_assert_eq!(self.len, other.len, "times of different scopes are not comparable");
        if self.len <= 1 {
            // Those of most dataflows: and there is no wide comparison of these words on all machines.
            return self.values[0] <= other.values[0];
        }
        // All six, without a branch: cheaper than to stop early.
        self.values.iter().zip(&other.values).fold(true, |all, (a, b)| all & (a <= b))
    }
    #[inline]
    fn closes(&self, time: &Self) -> bool {
        // They differ in the first coordinate at most, in which what comes later is not less.
        self.len <= 1 || self.values[1..] == time.values[1..]
    }
}

impl PartialEq for Coords {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if self.len <= 1 {
            return self.values[0] == other.values[0] && self.len == other.len;
        }
        // As derived, but in place: a call of memcmp costs more than it compares.
        self.values.iter().zip(&other.values).fold(u64::from(self.len ^ other.len), |all, (a, b)| all | (a ^ b)) == 0
    }
}

impl PartialOrd for Coords {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Coords {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let first = self.values[0].cmp(&other.values[0]);
        if first.is_ne() || (self.len | other.len) <= 1 {
            return first.then(self.len.cmp(&other.len));
        }
        self.values[1..].cmp(&other.values[1..]).then(self.len.cmp(&other.len))
    }
}

impl Hash for Coords {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl Lattice for Coords {
    fn join(&self, other: &Self) -> Self {
        let mut out = *self;
        out.values.iter_mut().zip(&other.values).for_each(|(a, b)| *a = (*a).max(*b));
        out
    }
    fn meet(&self, other: &Self) -> Self {
        let mut out = *self;
        out.values.iter_mut().zip(&other.values).for_each(|(a, b)| *a = (*a).min(*b));
        out
    }
}

impl fmt::Debug for Coords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// A logical time: `Copy`, partially ordered, written as coordinates.
///
/// The partial order, join and meet must be those of the coordinates (a property in `tests/order.rs` checks each
/// type here); `Ord` must extend the partial order.
pub trait Timestamp:
    for<'a> Columnar<Ref<'a> = Self> + Copy + Hash + Lattice + Ord + fmt::Debug + Send + Sync + 'static
{
    /// How many coordinates.
    const COORDINATES: usize;
    /// Whether any two times are comparable.
    const TOTAL: bool;

    /// Writes the coordinates to the first `COORDINATES` places of `out`.
    fn write(&self, out: &mut [u64]);
    /// Reads what `write` wrote.
    fn read(coords: &[u64]) -> Self;
    /// Writes the greatest value of each coordinate.
    fn write_maxima(out: &mut [u64]);

    /// The least time.
    fn minimum() -> Self {
        Self::read(&[0; MAX_COORDINATES])
    }

    /// The time without its type.
    #[inline]
    fn to_coords(&self) -> Coords {
        let mut coords = Coords::zero(Self::COORDINATES);
        self.write(&mut coords.values);
        coords
    }

    /// The time with this type.
    #[inline]
    fn from_coords(coords: &Coords) -> Self {
        debug_assert_eq!(coords.len(), Self::COORDINATES);
        Self::read(&coords.values)
    }
}

macro_rules! counter {
    ($($t:ty),*) => { $(
        impl Timestamp for $t {
            const COORDINATES: usize = 1;
            const TOTAL: bool = true;
            #[inline]
            fn write(&self, out: &mut [u64]) { out[0] = u64::from(*self); }
            #[inline]
            fn read(coords: &[u64]) -> Self { coords[0] as $t }
            fn write_maxima(out: &mut [u64]) { out[0] = u64::from(<$t>::MAX); }
        }
    )* }
}
counter!(u8, u16, u32, u64);

impl Timestamp for () {
    const COORDINATES: usize = 0;
    const TOTAL: bool = true;
    fn write(&self, _: &mut [u64]) {}
    fn read(_: &[u64]) -> Self {}
    fn write_maxima(_: &mut [u64]) {}
}
