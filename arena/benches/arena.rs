//! Small measurements of the hot paths: `cargo bench -p kpg-arena`. Each prints nanoseconds per operation, the least
//! of several rounds, and a hash of what it computed. As a test (`cargo test --benches`) it runs once, small.

use kpg_arena::{Arena, ArenaConfig, Buffer, Tag};
use std::hint::black_box;
use std::time::Instant;

fn measure(name: &str, count: u64, rounds: u32, mut run: impl FnMut(u64) -> u64) {
    let mut best = f64::INFINITY;
    let mut hash = 0;
    for _ in 0..rounds {
        let start = Instant::now();
        hash = run(count);
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    println!("{name:<44} {best:>8.2} ns   hash {hash:016x}");
}

fn cycle(size: usize, held: usize, count: u64) -> u64 {
    let mut ring: Vec<Buffer<u8>> = (0..held).map(|_| Buffer::new()).collect();
    let mut sum = 0u64;
    for at in 0..count {
        let mut buffer = Buffer::with_capacity(size);
        buffer.push(at as u8);
        sum = sum.wrapping_mul(31).wrapping_add(u64::from(buffer[0]));
        ring[at as usize % held] = black_box(buffer);
    }
    sum
}

fn main() {
    let bench = std::env::args().any(|arg| arg == "--bench");
    let (count, rounds) = if bench { (1_000_000, 7) } else { (1_000, 1) };
    let arena = Arena::new(ArenaConfig::default());
    measure("process-wide: allocate, free 64 B", count, rounds, |count| cycle(64, 1, count));
    let entered = arena.enter();
    for (size, held) in [(64, 1), (64, 1000), (1024, 1), (1024, 1000), (4096, 100), (65536, 10), (500_000, 4)] {
        let name = format!("arena: allocate, free {size} B, {held} held");
        measure(&name, count, rounds, |count| cycle(size, held, count));
    }
    measure("arena: allocate, free 1 MB, 4 held", count / 10, rounds, |count| cycle(1_000_000, 4, count));
    let tag = Tag::new("bench");
    let tagged = tag.enter();
    measure("arena, tagged: allocate, free 64 B, 1000 held", count, rounds, |count| cycle(64, 1000, count));
    drop(tagged);
    measure("push u64 into a grown buffer", count, rounds, |count| {
        let mut buffer = Buffer::with_capacity(count as usize);
        (0..count).for_each(|value| buffer.push(black_box(value)));
        buffer.iter().fold(0, |sum, value| sum ^ value.wrapping_mul(31))
    });
    measure("push u64 from empty", count, rounds, |count| {
        let mut buffer = Buffer::new();
        (0..count).for_each(|value| buffer.push(black_box(value)));
        buffer.iter().fold(0, |sum, value| sum ^ value.wrapping_mul(31))
    });
    measure("the same, Vec", count, rounds, |count| {
        let mut buffer = Vec::new();
        (0..count).for_each(|value| buffer.push(black_box(value)));
        buffer.iter().fold(0, |sum, value| sum ^ value.wrapping_mul(31))
    });
    measure("Vec::with_capacity, drop, 64 B, 1000 held", count, rounds, |count| {
        let mut ring: Vec<Vec<u8>> = (0..1000).map(|_| Vec::new()).collect();
        for at in 0..count {
            ring[at as usize % 1000] = black_box(Vec::with_capacity(64));
        }
        ring.iter().map(|vec| vec.capacity() as u64).sum()
    });
    drop(entered);
    let buffers = |count: u64| -> Vec<Buffer<u8>> {
        let _entered = arena.enter();
        (0..count).map(|_| Buffer::with_capacity(64)).collect()
    };
    let held = buffers(count);
    let start = Instant::now();
    drop(held);
    let each = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{:<44} {each:>8.2} ns", "free on a thread that doesn't own it");
    let start = Instant::now();
    drop(arena.enter());
    let each = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{:<44} {each:>8.2} ns   live {}", "collect it", arena.stats().live_bytes);
}
