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
fn works() {
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
