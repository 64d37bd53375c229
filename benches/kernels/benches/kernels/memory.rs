//! Blocks: made and dropped, many at a time, by another thread; against the system's allocator.
#![forbid(unsafe_code)]

use crate::data::short;
use kpg::arena::Buffer;
use kpg_bench::{Clock, Lab};
use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

/// A block of so many bytes that is not written to.
trait Block: Send + 'static {
    fn of(bytes: usize) -> Self;
    fn capacity(&self) -> usize;
}

impl Block for Buffer<u8> {
    fn of(bytes: usize) -> Self {
        Buffer::with_capacity(bytes)
    }
    fn capacity(&self) -> usize {
        Buffer::capacity(self)
    }
}

impl Block for Vec<u8> {
    fn of(bytes: usize) -> Self {
        Vec::with_capacity(bytes)
    }
    fn capacity(&self) -> usize {
        Vec::capacity(self)
    }
}

pub fn benches(lab: &mut Lab) {
    for bytes in [64, 4 << 10, 64 << 10, 1 << 20] {
        let times = lab.size(10_000, 100);
        let size = format!("{bytes} bytes");
        lab.compare(Clock::Thread, "allocate, free", &size, times, |c| {
            c.run("kpg", || (times, bytes), one_by_one::<Buffer<u8>>, |fit| *fit);
            c.run("std::alloc", || (times, bytes), one_by_one::<Vec<u8>>, |fit| *fit);
        });
    }
    let many = lab.size(1_000, 50);
    for bytes in [64, 4 << 10] {
        let size = format!("{bytes} bytes, {} at a time", short(many));
        lab.compare(Clock::Thread, "allocate, free", &size, many, |c| {
            c.run("kpg", || (many, bytes), at_a_time::<Buffer<u8>>, |fit| *fit);
            c.run("std::alloc", || (many, bytes), at_a_time::<Vec<u8>>, |fit| *fit);
        });
        lab.compare(Clock::Wall, "allocate, free elsewhere", &size, ROUNDS * many, |c| {
            elsewhere::<Buffer<u8>>(c, "kpg", many, bytes);
            elsewhere::<Vec<u8>>(c, "std::alloc", many, bytes);
        });
    }
}

fn one_by_one<B: Block>((times, bytes): (u64, usize)) -> u64 {
    (0..times).map(|_| u64::from(black_box(B::of(black_box(bytes))).capacity() >= bytes)).sum()
}

fn at_a_time<B: Block>((count, bytes): (u64, usize)) -> u64 {
    let blocks: Vec<B> = (0..count).map(|_| B::of(black_box(bytes))).collect();
    black_box(&blocks).iter().map(|block| u64::from(block.capacity() >= bytes)).sum()
}

/// Loads of blocks that go to another thread before the measurement ends.
const ROUNDS: u64 = 20;

/// This thread allocates, another one frees, one load behind.
fn elsewhere<B: Block>(c: &mut kpg_bench::Compared<'_>, who: &str, count: u64, bytes: usize) {
    let (there, loads) = mpsc::sync_channel::<Vec<B>>(1);
    let (freed, back) = mpsc::channel::<u64>();
    let helper = thread::spawn(move || {
        workloads::machine::pin(1);
        for load in loads {
            let fit = load.iter().map(|block| u64::from(block.capacity() > 0)).sum();
            drop(load);
            if freed.send(fit).is_err() {
                break;
            }
        }
    });
    c.run(
        who,
        || (),
        |()| {
            let mut fit = 0;
            for round in 0..ROUNDS {
                let load = (0..count).map(|_| B::of(black_box(bytes))).collect();
                there.send(load).expect("the helper lives");
                if round > 0 {
                    fit += back.recv().expect("the helper lives");
                }
            }
            fit + back.recv().expect("the helper lives")
        },
        |fit| *fit,
    );
    drop(there);
    helper.join().expect("the helper ends");
}
