//! Types that derive `Columnar`: generated references and columns against the owned values.
#![forbid(unsafe_code)]
use kpg_columnar::{Column, Columnar};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Columnar)]
#[columnar(crate = kpg_columnar)]
struct Person {
    name: String,
    age: u8,
    tags: Vec<Option<u32>>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Columnar)]
#[columnar(crate = ::kpg_columnar)]
struct Point(i32, i32);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Columnar)]
#[columnar(crate = kpg_columnar)]
struct Nothing;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Columnar)]
#[columnar(crate = kpg_columnar)]
enum Colour {
    Red,
    Green,
    Blue,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Columnar)]
#[columnar(crate = kpg_columnar)]
enum Event<K: Columnar, V>
where
    V: Clone,
{
    Stop,
    Move(Point, i64),
    Set { key: K, value: V },
    Paint(Colour),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Columnar)]
#[columnar(crate = kpg_columnar)]
struct Many {
    a: u8,
    b: u16,
    c: u32,
    d: u64,
    e: i8,
    f: i16,
    g: i32,
    h: i64,
    i: String,
    j: bool,
    k: char,
    l: (),
    m: (u8, u8),
    n: Colour,
    o: Nothing,
    p: Option<Colour>,
    q: u8,
}

#[test]
fn a_stored_value_reads_like_an_owned_one() {
    let mut column = PersonColumn::default();
    let person = Person { name: "Ada".into(), age: 36, tags: vec![None, Some(3)] };
    column.push(person.borrow());
    let stored: PersonRef<'_> = column.get(0);
    assert_eq!((stored.name, stored.age, stored.tags.get(1)), ("Ada", 36, Some(3)));
    assert_eq!(format!("{stored:?}"), format!("{person:?}"));
    assert_eq!(<Person as Columnar>::to_owned(stored), person);
    let event: Event<String, u8> = Event::Set { key: "k".into(), value: 1 };
    assert_eq!(format!("{:?}", event.borrow()), format!("{event:?}"));
    assert_eq!(ColourRef::Blue, Colour::Blue.borrow());
    let _ = (Colour::Red, Colour::Green);
}

mod samples {
    use super::*;
    use kpg_columnar::check::{Sample, Values};

    impl Sample for Person {
        fn sample(values: &mut Values) -> Self {
            Person { name: Sample::sample(values), age: Sample::sample(values), tags: Sample::sample(values) }
        }
    }
    impl Sample for Point {
        fn sample(values: &mut Values) -> Self {
            Point(Sample::sample(values), Sample::sample(values))
        }
    }
    impl Sample for Nothing {
        fn sample(_: &mut Values) -> Self {
            Nothing
        }
    }
    impl Sample for Colour {
        fn sample(values: &mut Values) -> Self {
            [Colour::Red, Colour::Green, Colour::Blue][values.word() as usize % 3]
        }
    }
    impl<K: Sample, V: Sample> Sample for Event<K, V> {
        fn sample(values: &mut Values) -> Self {
            match values.word() % 4 {
                0 => Event::Stop,
                1 => Event::Move(Sample::sample(values), Sample::sample(values)),
                2 => Event::Set { key: K::sample(values), value: V::sample(values) },
                _ => Event::Paint(Sample::sample(values)),
            }
        }
    }
    impl Sample for Many {
        fn sample(values: &mut Values) -> Self {
            Many {
                a: Sample::sample(values),
                b: Sample::sample(values),
                c: Sample::sample(values),
                d: Sample::sample(values),
                e: Sample::sample(values),
                f: Sample::sample(values),
                g: Sample::sample(values),
                h: Sample::sample(values),
                i: Sample::sample(values),
                j: Sample::sample(values),
                k: Sample::sample(values),
                l: (),
                m: Sample::sample(values),
                n: Sample::sample(values),
                o: Nothing,
                p: Sample::sample(values),
                q: Sample::sample(values),
            }
        }
    }
    impl Sample for Product<u64, u32> {
        fn sample(values: &mut Values) -> Self {
            Product { outer: Sample::sample(values), inner: Sample::sample(values) }
        }
    }
}

/// A plain struct by macro: its reference is itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Product<A, B> {
    outer: A,
    inner: B,
}

kpg_columnar::plain_struct_column! {
    struct ProductColumn for Product<A, B> { outer: A, inner: B }
    where A: std::hash::Hash
}

quickcheck::quickcheck! {
    fn people(bytes: Vec<u8>) -> () { kpg_columnar::check::check::<Person>(&bytes) }
    fn points(bytes: Vec<u8>) -> () { kpg_columnar::check::check::<Point>(&bytes) }
    fn nothings(bytes: Vec<u8>) -> () { kpg_columnar::check::check::<Nothing>(&bytes) }
    fn colours(bytes: Vec<u8>) -> () { kpg_columnar::check::check::<Colour>(&bytes) }
    fn events(bytes: Vec<u8>) -> () { kpg_columnar::check::check::<Event<String, u8>>(&bytes) }
    fn many(bytes: Vec<u8>) -> () { kpg_columnar::check::check::<Many>(&bytes) }
    fn products(bytes: Vec<u8>) -> () { kpg_columnar::check::check::<Product<u64, u32>>(&bytes) }
}

#[test]
fn plain_structs_are_plain() {
    fn plain<T: kpg_columnar::Plain>() {}
    plain::<Product<u64, Product<(), u32>>>();
    plain::<(i64, (i64, u8))>();
}

#[test]
fn prefixes_of_fields_are_packed() {
    fn bits<T: Columnar>() -> (u32, bool) {
        (T::Column::PREFIX_BITS, T::Column::PREFIX_EXACT)
    }
    assert_eq!(bits::<Point>(), (64, true));
    assert_eq!(bits::<Nothing>(), (0, true));
    assert_eq!(bits::<Colour>(), (8, true));
    assert_eq!(bits::<Event<u8, u8>>(), (64, false));
    assert_eq!(bits::<Product<u32, u32>>(), (64, true));
}
