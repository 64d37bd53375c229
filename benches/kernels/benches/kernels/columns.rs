//! Values in and out of a column, in each encoding, against copying eight bytes each.
#![forbid(unsafe_code)]

use crate::data::{Numbers, hash, short};
use kpg::arena::Buffer;
use kpg::columnar::{Column, Columnar, EncodingKind, Ints, Strings};
use kpg_bench::{Clock, Compared, Lab};
use std::cell::{LazyCell, RefCell};

pub fn benches(lab: &mut Lab) {
    let count = lab.size(100_000, 500);
    let stride = |i| 3 + 5 * i;
    ints(lab, "plain", count, EncodingKind::Plain, |i| Numbers::Wide.at(1, i));
    ints(lab, "32 bits", count, EncodingKind::Narrow32, |i| Numbers::Keys.at(1, i));
    ints(lab, "8 bits", count, EncodingKind::Narrow8, |i| Numbers::Wide.at(1, i) % 200);
    ints(lab, "stride", count, EncodingKind::Stride, stride);
    ints(lab, "constant", count, EncodingKind::Constant, |_| 1);
    strings(lab, count);
}

/// Copying `bytes` to where there were others.
fn copy(c: &mut Compared<'_>, bytes: usize) {
    let (from, to) = (LazyCell::new(|| vec![1u8; bytes]), RefCell::new(Vec::<u8>::new()));
    let setup = || {
        to.borrow_mut().resize(bytes, 0);
        &*from
    };
    c.run_blind("copying its bytes", setup, |from| to.borrow_mut().copy_from_slice(from));
}

fn ints(lab: &mut Lab, what: &str, count: u64, kind: EncodingKind, value: impl Fn(u64) -> u64) {
    let values = LazyCell::new(|| (0..count).map(&value).collect::<Vec<u64>>());
    let built = || {
        let mut column = Ints::<u64>::default();
        column.push_values(&values);
        column
    };
    let sealed = LazyCell::new(|| {
        let mut column = built();
        column.seal();
        assert_eq!(column.kind(), kind);
        column
    });
    let read = |column: &Ints<u64>| hash((0..column.count()).map(|index| column.at(index)));
    let (bytes, size) = (8 * count as usize, format!("{}, u64: {what}", short(count)));
    if kind == EncodingKind::Plain {
        lab.compare(Clock::Thread, "push", &size, count, |c| {
            let push = |values: &Vec<u64>| {
                let mut column = Ints::<u64>::default();
                column.reserve(values.len());
                values.iter().for_each(|value| column.push(*value));
                column
            };
            c.run("kpg", || &*values, push, read);
            copy(c, bytes);
        });
    }
    lab.compare(Clock::Thread, "seal", &size, count, |c| {
        let seal = |mut column: Ints<u64>| {
            column.seal();
            column
        };
        c.run("kpg", built, seal, read);
        copy(c, bytes);
    });
    let sum = |sum: &u64| *sum;
    lab.compare(Clock::Thread, "iterate", &size, count, |c| {
        let all = |column: &Ints<u64>| (0..column.count()).fold(0u64, |sum, index| sum.wrapping_add(column.at(index)));
        c.run("kpg", || &*sealed, all, sum);
        let of_slice = |values: &Vec<u64>| values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
        c.run("adding up a slice", || &*values, of_slice, sum);
        copy(c, bytes);
    });
    let order = LazyCell::new(|| (0..count).map(|i| (Numbers::Wide.at(2, i) % count) as u32).collect::<Vec<u32>>());
    lab.compare(Clock::Thread, "get", &size, count, |c| {
        let get =
            |column: &Ints<u64>| order.iter().fold(0u64, |sum, index| sum.wrapping_add(column.at(*index as usize)));
        // The order is made before the clock runs, too.
        let ordered = || LazyCell::force(&order);
        c.run("kpg", || (ordered(), &*sealed).1, get, sum);
        let of_slice =
            |values: &Vec<u64>| order.iter().fold(0u64, |sum, index| sum.wrapping_add(values[*index as usize]));
        c.run("from a slice", || (ordered(), &*values).1, of_slice, sum);
    });
    let decoded = RefCell::new(Buffer::<u64>::with_capacity(count as usize));
    lab.compare(Clock::Thread, "decode", &size, count, |c| {
        c.run(
            "kpg",
            || {
                decoded.borrow_mut().clear();
                &*sealed
            },
            |column| column.decode_into(0, column.count(), &mut decoded.borrow_mut()),
            |()| hash(decoded.borrow().iter().copied()),
        );
        copy(c, bytes);
    });
}

fn strings(lab: &mut Lab, count: u64) {
    let values =
        LazyCell::new(|| (0..count).map(|i| format!("name {}", Numbers::Keys.at(3, i))).collect::<Vec<String>>());
    let built = || {
        let mut column = Strings::default();
        values.iter().for_each(|value| column.push(value));
        column
    };
    let read = |column: &Strings| hash((0..column.len()).map(|index| <String as Columnar>::hash(column.get(index))));
    let size = format!("{}, String of 12", short(count));
    let bytes = LazyCell::new(|| values.iter().map(String::len).sum::<usize>());
    lab.compare(Clock::Thread, "push", &size, count, |c| {
        c.run("kpg", || (), |()| built(), read);
        copy(c, *bytes);
    });
    lab.compare(Clock::Thread, "seal", &size, count, |c| {
        let seal = |mut column: Strings| {
            column.seal();
            column
        };
        c.run("kpg", built, seal, read);
        copy(c, *bytes);
    });
    let sealed = LazyCell::new(|| {
        let mut column = built();
        column.seal();
        column
    });
    lab.compare(Clock::Thread, "iterate", &size, count, |c| {
        let all = |column: &Strings| (0..column.len()).fold(0usize, |sum, index| sum + column.get(index).len() % 7);
        c.run("kpg", || &*sealed, all, |sum| *sum as u64);
        c.run(
            "over Vec<String>",
            || &*values,
            |values| values.iter().fold(0usize, |sum, value| sum + value.len() % 7),
            |sum| *sum as u64,
        );
    });
}
