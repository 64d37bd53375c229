//! Operations on an arena, and a model that says what they must do: for quickcheck here, for a fuzz target, and for the
//! replay of saved inputs. Built with the feature `check` only, which tests and fuzz targets ask for.
//!
//! [`check`] runs a list of operations on a fresh arena and on a model: plain vectors, sums of block sizes. After each
//! one the accounts must agree, and at the end the contents and the arena's invariants too. It panics where they don't.
//! [`check_bytes`] reads the list from bytes, whatever they are.
#![forbid(unsafe_code)]

use crate::{Arena, ArenaConfig, Buffer, Cause, OutOfMemory, Tag};

/// Buffers that exist at once.
const SLOTS: usize = 16;
/// Tags to choose from; the number after the last means none.
const TAGS: usize = 2;
/// What arena and tags are capped to when they are.
const CAP: usize = 3 << 20;

/// One step. Numbers are taken modulo what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A new buffer of this capacity in a slot; what was there is dropped.
    Allocate(u8, u32),
    /// Appends as many values to a slot.
    Grow(u8, u32),
    /// Appends one value to a slot.
    Push(u8),
    /// Cuts a slot to this length and gives back what it doesn't need.
    Shrink(u8, u32),
    /// A copy of the first slot into the second.
    Clone(u8, u8),
    /// Drops a slot.
    Free(u8),
    /// Drops a slot on another thread.
    FreeElsewhere(u8),
    /// Moves the arena to no thread and back: what others freed is collected.
    Reenter,
    /// Changes the current tag.
    Tag(u8),
    /// Caps a tag, or takes its cap away.
    TagCap(u8, bool),
    /// Caps the arena, or takes its cap away.
    Cap(bool),
    /// Makes the n-th allocation from here fail.
    Fail(u8),
    /// Gives back what is idle.
    Trim,
}

impl Op {
    /// An operation from 6 bytes, whatever they are: for a fuzzer.
    pub fn decode(bytes: [u8; 6]) -> Op {
        let [kind, slot, a, b, c, magnitude] = bytes;
        // The magnitude is uniform, so that small blocks, spans of all kinds and large blocks are all met.
        let size = u32::from_le_bytes([a, b, c, 0]) >> (magnitude % 24);
        match kind % 16 {
            0 | 1 => Op::Allocate(slot, size),
            // What is appended is written, so at most 4 MiB, which is past the caps.
            2 | 3 => Op::Grow(slot, size >> 4),
            4 => Op::Push(slot),
            5 => Op::Shrink(slot, size),
            6 => Op::Clone(slot, a),
            7 | 8 => Op::Free(slot),
            9 | 10 => Op::FreeElsewhere(slot),
            11 => Op::Reenter,
            12 => Op::Tag(slot),
            13 => Op::TagCap(slot, a % 2 == 0),
            14 if a % 2 == 0 => Op::Cap(b % 2 == 0),
            14 => Op::Fail(b % 8 + 1),
            _ => Op::Trim,
        }
    }
}

/// A buffer and what the model knows of it: its values are `seed`, `seed + 1`, ….
#[derive(Default)]
struct Slot {
    buffer: Buffer<u32>,
    seed: u32,
    len: usize,
    tag: Option<usize>,
}

struct Model {
    slots: [Slot; SLOTS],
    tags: [Tag; TAGS],
    tag: Option<usize>,
    peak: usize,
    serial: u32,
    fail_in: u64,
    // Loses what a canary says.
    planted: bool,
}

/// Reads operations from bytes and runs them: the first byte says whether each block has a mapping of its own, then
/// six bytes are one operation. A planted fault is for canaries: a large block freed elsewhere is lost.
///
/// # Panics
/// If the arena and the model differ.
pub fn check_bytes(bytes: &[u8], planted: bool) {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let (ops, _) = rest.as_chunks::<6>();
    let ops: Vec<Op> = ops.iter().copied().map(Op::decode).collect();
    run(&ops, first % 2 == 1, planted);
}

/// Runs `ops` against the model, on an arena with blocks in regions or each on its own.
///
/// # Panics
/// If the arena and the model differ.
pub fn check(ops: &[Op], per_block: bool) {
    run(ops, per_block, false);
}

fn run(ops: &[Op], per_block: bool, planted: bool) {
    // Small regions and little slack, so that giving back happens often.
    let arena = Arena::new(ArenaConfig {
        region_bytes: 2 << 20,
        slack_bytes: 4 << 20,
        huge_pages: false,
        per_block,
        ..ArenaConfig::default()
    });
    let mut model = Model {
        slots: Default::default(),
        tags: std::array::from_fn(|index| Tag::new(format!("tag {index}"))),
        tag: None,
        peak: 0,
        serial: 0,
        fail_in: 0,
        planted,
    };
    let mut entered = arena.enter();
    for (at, &op) in ops.iter().enumerate() {
        if op == Op::Reenter {
            drop(entered);
            entered = arena.enter();
        }
        let guard = model.tag.map(|tag| model.tags[tag].enter());
        model.step(&arena, op);
        drop(guard);
        model.compare(&arena);
        if at % 16 == 0 {
            arena.check_invariants();
        }
    }
    for slot in &model.slots {
        slot.compare();
    }
    arena.check_invariants();
    drop(entered);
    if ops.len() % 2 == 1 {
        // The blocks outlive the arena.
        drop(arena);
        drop(model.slots);
    } else {
        // The blocks are freed from a thread that doesn't own it now.
        drop(model.slots);
        assert_eq!(arena.stats().live_bytes, 0);
        arena.check_invariants();
        arena.trim().expect("no other thread has it");
        assert_eq!(arena.stats().reserved_bytes, 0);
    }
    assert!(model.tags.iter().all(|tag| tag.live_bytes() == 0));
}

impl Model {
    fn step(&mut self, arena: &Arena, op: Op) {
        let index = |slot: u8| usize::from(slot) % SLOTS;
        match op {
            Op::Allocate(slot, capacity) => {
                self.slots[index(slot)] = Slot::default();
                match Buffer::try_with_capacity(capacity as usize) {
                    Ok(buffer) => {
                        assert!(buffer.capacity() >= capacity as usize);
                        self.serial = self.serial.wrapping_add(0x1001);
                        self.slots[index(slot)] = Slot { buffer, seed: self.serial, len: 0, tag: self.tag };
                    }
                    Err(refused) => self.refused(arena, &refused),
                }
            }
            Op::Grow(slot, more) => self.extend(arena, index(slot), more as usize),
            Op::Push(slot) => self.extend(arena, index(slot), 1),
            Op::Shrink(slot, len) => {
                let slot = &mut self.slots[index(slot)];
                let before = slot.block();
                slot.len = slot.len.min(len as usize);
                slot.buffer.truncate(len as usize);
                slot.buffer.shrink_to_fit();
                let after = slot.block();
                if after != before {
                    slot.tag = self.tag;
                }
                if after != before && after.1 > 0 {
                    self.peak = self.peak.max(self.live() + before.1);
                }
            }
            Op::Clone(from, to) => {
                let Slot { seed, len, .. } = self.slots[index(from)];
                let mut buffer = Buffer::new();
                match buffer.try_extend_from_slice(&self.slots[index(from)].buffer) {
                    Ok(()) => {
                        let before = self.slots[index(to)].block().1;
                        self.peak = self.peak.max(self.live() + buffer.block_bytes());
                        assert!(before <= self.live());
                        self.slots[index(to)] = Slot { buffer, seed, len, tag: self.tag };
                    }
                    Err(refused) => self.refused(arena, &refused),
                }
            }
            Op::Free(slot) => self.slots[index(slot)] = Slot::default(),
            Op::FreeElsewhere(slot) => {
                let slot = std::mem::take(&mut self.slots[index(slot)]);
                if self.planted && slot.buffer.block_bytes() > 1 << 20 && self.tag.is_some() {
                    std::mem::forget(slot.buffer);
                    return;
                }
                std::thread::spawn(move || slot.compare()).join().expect("the other thread only compares and drops");
            }
            Op::Reenter => {}
            Op::Tag(tag) => self.tag = Some(usize::from(tag) % (TAGS + 1)).filter(|&tag| tag < TAGS),
            Op::TagCap(tag, capped) => self.tags[usize::from(tag) % TAGS].set_cap(capped.then_some(CAP)),
            Op::Cap(capped) => arena.set_cap(capped.then_some(CAP)),
            Op::Fail(n) => {
                self.fail_in = u64::from(n);
                arena.fail_after(self.fail_in);
            }
            Op::Trim => drop(arena.trim().expect("no other thread has it")),
        }
    }

    fn extend(&mut self, arena: &Arena, index: usize, more: usize) {
        let slot = &mut self.slots[index];
        let before = slot.block();
        match slot.buffer.try_reserve(more) {
            Ok(()) => {
                for at in slot.len..slot.len + more {
                    slot.buffer.push(slot.seed.wrapping_add(at as u32));
                }
                slot.len += more;
                if slot.block() != before {
                    slot.tag = self.tag;
                    // While it moves both blocks are live.
                    self.peak = self.peak.max(self.live() + before.1);
                }
            }
            Err(refused) => {
                assert_eq!(slot.block(), before, "a refusal changed the buffer");
                self.refused(arena, &refused);
            }
        }
    }

    /// A refusal must have a reason.
    fn refused(&self, arena: &Arena, refused: &OutOfMemory) {
        let OutOfMemory { requested, live, cap, cause, .. } = refused;
        match cause {
            Cause::ArenaCap => {
                assert_eq!(*live, arena.stats().live_bytes);
                assert!(live + requested > CAP && *cap == Some(CAP));
            }
            Cause::TagCap => {
                assert_eq!(*live, self.tags[self.tag.expect("a tag refused")].live_bytes());
                assert!(live + requested > CAP && *cap == Some(CAP));
            }
            Cause::Injected => assert!(self.fail_in > 0),
            Cause::System(_) | Cause::TooLarge => panic!("{refused}"),
        }
    }

    fn live(&self) -> usize {
        self.slots.iter().map(|slot| slot.block().1).sum()
    }

    fn compare(&mut self, arena: &Arena) {
        let live = self.live();
        self.peak = self.peak.max(live);
        let stats = arena.stats();
        assert_eq!(stats.live_bytes, live);
        assert_eq!(stats.peak_bytes, self.peak);
        assert!(stats.reserved_bytes >= live);
        for (index, tag) in self.tags.iter().enumerate() {
            let tagged = self.slots.iter().filter(|slot| slot.tag == Some(index));
            assert_eq!(tag.live_bytes(), tagged.map(|slot| slot.block().1).sum::<usize>());
        }
    }
}

impl Slot {
    /// Where its block is, and how large.
    fn block(&self) -> (usize, usize) {
        (self.buffer.as_ptr().addr(), self.buffer.block_bytes())
    }

    fn compare(&self) {
        assert_eq!(self.buffer.len(), self.len);
        assert_eq!(self.buffer.as_ptr().addr() % if self.buffer.capacity() == 0 { 4 } else { 64 }, 0);
        let mut values = self.buffer.iter().zip(0u32..);
        assert!(values.all(|(&value, at)| value == self.seed.wrapping_add(at)), "a block was overwritten");
    }
}
