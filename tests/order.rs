//! Laws of orders: partial orders, lattices, timestamps, `rep`; antichains against naive models.
//!
//! Lattice and `rep` laws are checked on lattices that are no timestamps too: sets under inclusion, and the pentagon,
//! which is not distributive; on those for all elements and all antichains there are.
#![forbid(unsafe_code)]

use kpg::order::{
    Antichain, Coords, Lattice, MAX_COORDINATES, MutableAntichain, Pair, PartialOrder, Product, Timestamp, rep,
};
use quickcheck::quickcheck;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// The pentagon N5: 0 < a < b < 1 and 0 < c < 1, with c incomparable to a and b.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Pentagon {
    Bottom,
    A,
    B,
    C,
    Top,
}
use Pentagon::*;
const PENTAGON: [Pentagon; 5] = [Bottom, A, B, C, Top];

impl PartialOrder for Pentagon {
    fn less_equal(&self, other: &Self) -> bool {
        self == other || *self == Bottom || *other == Top || (*self, *other) == (A, B)
    }
}
impl Lattice for Pentagon {
    fn join(&self, other: &Self) -> Self {
        let above = |x: &&Pentagon| self.less_equal(x) && other.less_equal(x);
        *PENTAGON.iter().find(|x| above(x) && PENTAGON.iter().filter(above).all(|y| x.less_equal(y))).unwrap()
    }
    fn meet(&self, other: &Self) -> Self {
        let below = |x: &&Pentagon| x.less_equal(self) && x.less_equal(other);
        *PENTAGON.iter().find(|x| below(x) && PENTAGON.iter().filter(below).all(|y| y.less_equal(x))).unwrap()
    }
}

/// Subsets of three things, under inclusion.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Set(u8);

impl PartialOrder for Set {
    fn less_equal(&self, other: &Self) -> bool {
        self.0 & !other.0 == 0
    }
}
impl Lattice for Set {
    fn join(&self, other: &Self) -> Self {
        Set(self.0 | other.0)
    }
    fn meet(&self, other: &Self) -> Self {
        Set(self.0 & other.0)
    }
}

fn sets() -> Vec<Set> {
    (0..8).map(Set).collect()
}

fn grid() -> Vec<Pair<u8, u8>> {
    (0..3).flat_map(|a| (0..3).map(move |b| Pair::new(a, b))).collect()
}

fn order_laws<L: PartialOrder + Ord>(a: &L, b: &L, c: &L) {
    assert!(a.less_equal(a) && !a.less_than(a));
    assert!(!(a.less_equal(b) && b.less_equal(a)) || a == b);
    assert!(!(a.less_equal(b) && b.less_equal(c)) || a.less_equal(c));
    assert_eq!(a.less_than(b), a.less_equal(b) && a != b);
    assert!(!a.less_equal(b) || a <= b, "the total order extends the partial one");
    assert!(!(a.less_equal(b) && b.closes(a) && a.less_equal(c) && b <= c) || b.less_equal(c));
}

fn lattice_laws<L: Lattice + Debug>(a: &L, b: &L, c: &L) {
    let (join, meet) = (a.join(b), a.meet(b));
    assert!(a.less_equal(&join) && b.less_equal(&join), "an upper bound");
    assert!(!(a.less_equal(c) && b.less_equal(c)) || join.less_equal(c), "the least one");
    assert!(meet.less_equal(a) && meet.less_equal(b), "a lower bound");
    assert!(!(c.less_equal(a) && c.less_equal(b)) || c.less_equal(&meet), "the greatest one");
    assert_eq!(a.join(a), *a);
    assert_eq!(a.meet(a), *a);
    assert_eq!(join, b.join(a));
    assert_eq!(meet, b.meet(a));
    assert_eq!(join.join(c), a.join(&b.join(c)));
    assert_eq!(meet.meet(c), a.meet(&b.meet(c)));
    assert_eq!(a.join(&meet), *a);
    assert_eq!(a.meet(&join), *a);
    assert_eq!(a.less_equal(b), join == *b);
}

fn timestamp_laws<T: Timestamp>(a: T, b: T, c: T) {
    order_laws(&a, &b, &c);
    lattice_laws(&a, &b, &c);
    let (x, y) = (a.to_coords(), b.to_coords());
    order_laws(&x, &y, &c.to_coords());
    lattice_laws(&x, &y, &c.to_coords());
    assert!(x.len() == T::COORDINATES && T::COORDINATES <= MAX_COORDINATES);
    assert_eq!(T::from_coords(&x), a);
    assert_eq!(a.less_equal(&b), x.less_equal(&y));
    assert_eq!(a.cmp(&b), x.cmp(&y));
    assert_eq!(a.join(&b).to_coords(), x.join(&y));
    assert_eq!(a.meet(&b).to_coords(), x.meet(&y));
    assert!(T::minimum().less_equal(&a) && T::minimum().to_coords() == Coords::zero(T::COORDINATES));
    assert!(!T::TOTAL || a.less_equal(&b) || b.less_equal(&a));
    let mut maxima = [0; MAX_COORDINATES];
    T::write_maxima(&mut maxima);
    let maximum = T::read(&maxima);
    assert!(a.less_equal(&maximum) && maximum.to_coords().as_slice() == &maxima[..T::COORDINATES]);
    assert!(maxima[T::COORDINATES..].iter().all(|&value| value == 0));
}

quickcheck! {
    fn times_of_one_coordinate(a: (u64, u32, u16, u8), b: (u64, u32, u16, u8), c: (u64, u32, u16, u8)) -> bool {
        timestamp_laws(a.0, b.0, c.0);
        timestamp_laws(a.1, b.1, c.1);
        timestamp_laws(a.2, b.2, c.2);
        timestamp_laws(a.3, b.3, c.3);
        timestamp_laws((), (), ());
        true
    }

    fn times_put_together(a: (u8, u8, u8, u64), b: (u8, u8, u8, u64), c: (u8, u8, u8, u64)) -> bool {
        let times = [a, b, c].map(|(x, y, z, w)| (x % 4, y % 4, u32::from(z % 4), w));
        let [a, b, c] = times.map(|(x, y, _, _)| Product::new(x, y));
        timestamp_laws(a, b, c);
        let [a, b, c] = times.map(|(x, _, z, w)| Product::new(Pair::new(w, x), z));
        timestamp_laws(a, b, c);
        let [a, b, c] = times.map(|(x, y, z, w)| Pair::new(Product::new(w, z), Pair::new(x, Product::new(y, z))));
        timestamp_laws(a, b, c);
        let [a, b, c] = times.map(|(_, y, _, w)| Product::new(Pair::new((), w), Pair::new((), y)));
        timestamp_laws(a, b, c);
        let [a, b, c] = times.map(|(_, _, _, w)| Pair::new((), Product::new(w, ())));
        timestamp_laws(a, b, c);
        true
    }
}

#[test]
fn whether_times_are_total() {
    let totals = [u64::TOTAL, <()>::TOTAL, Pair::<(), u64>::TOTAL, Product::<u32, ()>::TOTAL, Pair::<(), ()>::TOTAL];
    assert_eq!(totals, [true; 5]);
    let partial = [Pair::<u64, u64>::TOTAL, Product::<u64, u32>::TOTAL, Pair::<(), Product<u64, u32>>::TOTAL];
    assert_eq!(partial, [false; 3]);
}

/// All antichains of a small lattice's elements, the empty one included.
fn antichains<L: Lattice + Copy>(all: &[L]) -> Vec<Antichain<L>> {
    let mut out = vec![Vec::new()];
    for x in all {
        for index in 0..out.len() {
            if out[index].iter().all(|y: &L| !x.less_equal(y) && !y.less_equal(x)) {
                out.push([&out[index][..], &[*x]].concat());
            }
        }
    }
    out.into_iter().map(|elements| elements.into_iter().collect()).collect()
}

fn all_laws<L: Lattice + Ord + Copy + Debug>(all: &[L]) {
    for a in all {
        for b in all {
            for c in all {
                order_laws(a, b, c);
                lattice_laws(a, b, c);
            }
        }
    }
    for since in antichains(all) {
        let readers: Vec<_> = all.iter().filter(|s| since.less_equal(s)).collect();
        for t in all {
            let r = rep(t, &since);
            if since.is_empty() {
                assert_eq!(r, *t, "no reader: left as it is");
                continue;
            }
            assert!(t.less_equal(&r));
            assert_eq!(rep(&r, &since), r);
            for s in &readers {
                assert_eq!(t.less_equal(s), r.less_equal(s), "{t:?} and {r:?}, as of {since:?}, at {s:?}");
            }
            for u in all {
                let alike = readers.iter().all(|s| t.less_equal(s) == u.less_equal(s));
                assert_eq!(alike, r == rep(u, &since), "{t:?}, {u:?} as of {since:?}");
            }
        }
    }
}

#[test]
fn laws_on_small_lattices() {
    all_laws(&PENTAGON);
    all_laws(&sets());
    all_laws(&grid());
    all_laws(&[0u8, 1, 2]);
    assert_ne!(A.join(&C.meet(&B)), A.join(&C).meet(&A.join(&B)), "the pentagon is not distributive");
    assert_eq!((antichains(&PENTAGON).len(), antichains(&sets()).len()), (8, 20));
}

quickcheck! {
    fn rep_of_nested_times(since: Vec<(u8, u8, u8)>, t: (u8, u8, u8), u: (u8, u8, u8), s: (u8, u8, u8)) -> bool {
        let time = |(a, b, c): (u8, u8, u8)| Product::new(Pair::new(u64::from(a % 6), b % 6), u32::from(c % 6));
        let since: Antichain<_> = since.into_iter().map(time).collect();
        let [t, u, s] = [t, u, s].map(time);
        let (x, y) = (rep(&t, &since), rep(&u, &since));
        // Alike to all readers iff alike to the least of them: t join f, for each f.
        let readers = |t: Product<_, _>| since.elements().iter().map(move |f| t.join(f));
        let alike = readers(t).chain(readers(u)).all(|s| t.less_equal(&s) == u.less_equal(&s));
        (!since.less_equal(&s) || t.less_equal(&s) == x.less_equal(&s))
            && (since.is_empty() || alike == (x == y))
    }
}

/// The elements of `all` that none other is before.
fn minimal<T: PartialOrder + Ord + Copy>(all: &[T]) -> Vec<T> {
    let mut out: Vec<_> = all.iter().filter(|x| !all.iter().any(|y| y.less_than(x))).copied().collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn sorted<T: Ord + Copy>(frontier: &Antichain<T>) -> Vec<T> {
    let mut out = frontier.elements().to_vec();
    out.sort_unstable();
    out
}

fn pairs(times: &[(u8, u8)], most: u8) -> Vec<Pair<u8, u8>> {
    times.iter().map(|&(a, b)| Pair::new(a % most, b % most)).collect()
}

/// A queue of many times is filled and taken off in linear time, in a total order and along one coordinate of two.
#[test]
fn many_times_one_by_one() {
    let mut counted = MutableAntichain::new();
    for time in (0..200_000u64).map(|x| Coords::new(&[x, 7])) {
        counted.update(time, 1, |_, _| {});
    }
    for time in 0..200_000u64 {
        let mut told = Vec::new();
        counted.update(Coords::new(&[time, 7]), -1, |time, change| told.push((time.as_slice()[0], change)));
        let expected = [(time, -1), (time + 1, 1)];
        assert_eq!(told, &expected[..if time == 199_999 { 1 } else { 2 }]);
        // Goes back to the front for a moment.
        if time % 3 == 0 {
            counted.update(Coords::new(&[time, 7]), 1, |_, _| {});
            counted.update(Coords::new(&[time, 7]), -1, |_, _| {});
        }
    }
    assert!(counted.is_empty() && counted.frontier().is_empty());
}

quickcheck! {
    fn antichains_are_the_minimal_elements(times: Vec<(u8, u8)>) -> bool {
        let times = pairs(&times, 9);
        let mut frontier = Antichain::new();
        for (index, time) in times.iter().enumerate() {
            let beyond = times[..index].iter().any(|x| x.less_equal(time));
            assert_eq!(frontier.less_equal(time), beyond);
            assert_eq!(frontier.insert(*time), !beyond);
            assert_eq!(sorted(&frontier), minimal(&times[..=index]));
            assert_eq!(frontier.as_single().is_some(), frontier.len() == 1);
        }
        let built: Antichain<_> = times.iter().rev().copied().collect();
        assert_eq!((frontier.is_empty(), &frontier), (times.is_empty(), &built));
        frontier.clear();
        frontier.is_empty() && frontier == Antichain::default()
    }

    fn antichains_as_sets_of_times(x: Vec<(u8, u8)>, y: Vec<(u8, u8)>) -> bool {
        const MOST: u8 = 5;
        let [x, y] = [x, y].map(|times| pairs(&times, MOST).into_iter().collect::<Antichain<_>>());
        // One more than the times at hand, so that all joins are there.
        let all: Vec<_> = (0..=MOST).flat_map(|a| (0..=MOST).map(move |b| Pair::new(a, b))).collect();
        let beyond = |f: &Antichain<_>| all.iter().map(|t| f.less_equal(t)).collect::<Vec<_>>();
        let (in_x, in_y) = (beyond(&x), beyond(&y));
        let both = |f: fn(bool, bool) -> bool| in_x.iter().zip(&in_y).map(|(&a, &b)| f(a, b)).collect::<Vec<_>>();
        let mut meet = x.clone();
        meet.meet_with(&y);
        assert_eq!(beyond(&meet), both(|a, b| a || b));
        assert_eq!(beyond(&x.join(&y)), both(|a, b| a && b));
        assert_eq!(x.before_equal(&y), both(|a, b| a || !b).into_iter().all(|holds| holds));
        assert_eq!(x.before(&y), x.before_equal(&y) && x != y);
        assert!(all.iter().all(|t| x.less_than(t) == x.elements().iter().any(|f| f.less_equal(t) && f != t)));
        (x == y) == (in_x == in_y)
    }

    fn counted_antichains(updates: Vec<(u8, u8, i8)>) -> bool {
        let mut counted = MutableAntichain::new();
        let mut model = BTreeMap::new();
        for (a, b, diff) in updates {
            let (time, diff) = (Pair::new(a % 4, b % 4), i64::from(diff % 4));
            let before = sorted(counted.frontier());
            let mut told = Vec::new();
            counted.update(time, diff, |&time, change| told.push((time, change)));
            *model.entry(time).or_insert(0) += diff;
            model.retain(|_, count| *count != 0);
            let positive: Vec<_> = model.iter().filter(|x| *x.1 > 0).map(|x| *x.0).collect();
            let now = sorted(counted.frontier());
            assert_eq!(now, minimal(&positive));
            assert_eq!(counted.counts(), model.clone().into_iter().collect::<Vec<_>>());
            assert_eq!(counted.is_empty(), model.is_empty());
            let mut expected: Vec<_> = before.iter().filter(|t| !now.contains(t)).map(|&t| (t, -1)).collect();
            expected.extend(now.iter().filter(|t| !before.contains(t)).map(|&t| (t, 1)));
            told.sort_unstable();
            expected.sort_unstable();
            assert_eq!(told, expected);
        }
        true
    }
}
