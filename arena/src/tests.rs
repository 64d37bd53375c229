//! Tests of the package as its users see it.

use crate::check::{Op, check, check_bytes};
use crate::{Arena, ArenaConfig, Buffer, Cause, OutOfMemory, Tag};
use quickcheck::{Arbitrary, Gen, quickcheck};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, Ordering};

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Op {
        Op::decode(std::array::from_fn(|_| u8::arbitrary(g)))
    }
}

quickcheck! {
    fn operations_agree_with_the_model(ops: Vec<Op>) -> bool {
        check(&ops, false);
        true
    }

    fn operations_agree_with_the_model_block_by_block(ops: Vec<Op>) -> bool {
        check(&ops, true);
        true
    }
}

/// The fuzz target's canary, without the fuzzer.
#[test]
#[should_panic(expected = "assertion")]
fn a_block_lost_elsewhere_is_noticed() {
    // A tag; a block of 4 MiB; freed on another thread.
    check_bytes(&[0, 12, 0, 0, 0, 0, 0, 0, 3, 0, 0, 16, 0, 9, 3, 0, 0, 0, 0], true);
}

fn small(name: &str) -> ArenaConfig {
    ArenaConfig { name: name.into(), region_bytes: 1, huge_pages: false, ..ArenaConfig::default() }
}

#[test]
fn a_long_run_of_operations() {
    let mut g = Gen::new(64);
    let count = if cfg!(debug_assertions) { 2_000 } else { 10_000 };
    let ops: Vec<Op> = (0..count).map(|_| Op::arbitrary(&mut g)).collect();
    check(&ops, false);
}

#[test]
fn a_buffer_is_four_words_and_new_is_free() {
    assert_eq!(size_of::<Buffer<u8>>(), 32);
    assert_eq!(size_of::<Option<Buffer<u8>>>(), 32);
    let arena = Arena::new(small("unused"));
    let _entered = arena.enter();
    const EMPTY: Buffer<u64> = Buffer::new();
    let buffer = EMPTY;
    assert_eq!((buffer.len(), buffer.capacity(), buffer.block_bytes()), (0, 0, 0));
    assert_eq!(arena.stats().reserved_bytes, 0);
}

#[test]
fn the_whole_class_is_used() {
    let mut buffer = Buffer::<u64>::new();
    buffer.push(1);
    assert_eq!((buffer.capacity(), buffer.block_bytes()), (8, 64));
    buffer.extend_from_slice(&[2; 8]);
    assert_eq!(buffer.capacity(), 16);
    let odd = Buffer::<[u8; 600]>::with_capacity(1);
    assert_eq!((odd.capacity(), odd.block_bytes()), (1, 640));
    assert_eq!(odd.as_ptr().addr() % 64, 0);
}

#[test]
fn values_that_are_made_where_they_stay() {
    let mut buffer = Buffer::<u64>::new();
    buffer.extend_with(100, |index| index as u64);
    assert!(buffer.iter().copied().eq(0..100));
    let failing = |index: usize| if index == 5 { std::panic::resume_unwind(Box::new(())) } else { 7 };
    let fails = std::panic::AssertUnwindSafe(|| buffer.extend_with(200, failing));
    assert!(std::panic::catch_unwind(fails).is_err());
    assert!(buffer.iter().copied().eq(0..100));
    buffer.extend_with(1, |_| 100);
    assert!(buffer.iter().copied().eq(0..101));
}

#[test]
fn the_methods_of_a_buffer() {
    let mut buffer = Buffer::default();
    buffer.extend_from_slice(&[1u16, 2, 3]);
    buffer.resize(5, 9);
    assert_eq!(&buffer[..], [1, 2, 3, 9, 9]);
    buffer.copy_within(1..3, 0);
    buffer.resize(2, 0);
    assert_eq!(format!("{buffer:?}"), "[2, 3]");
    let copy = buffer.clone();
    buffer.reserve(10_000);
    assert!(buffer.capacity() >= 10_002);
    buffer.shrink_to_fit();
    assert_eq!((buffer.capacity(), &buffer[..]), (32, &copy[..]));
    buffer.spare_capacity_mut()[0].write(7);
    // SAFETY: the third value has just been written.
    unsafe { buffer.set_len(3) };
    buffer.truncate(10);
    assert_eq!(&buffer[..], [2, 3, 7]);
    buffer.clear();
    buffer.shrink_to_fit();
    assert_eq!(buffer.capacity(), 0);
}

#[test]
fn values_without_a_size() {
    let mut buffer = Buffer::new();
    assert_eq!(buffer.capacity(), usize::MAX);
    for _ in 0..1000 {
        buffer.push(());
    }
    buffer.extend_from_slice(&[(); 24]);
    buffer.resize(2000, ());
    buffer.shrink_to_fit();
    assert_eq!((buffer.len(), buffer.clone().len(), buffer.block_bytes()), (2000, 2000, 0));
    assert_eq!(buffer.try_reserve(usize::MAX).unwrap_err().cause, Cause::TooLarge);
}

#[test]
fn what_cannot_be_had_is_an_error() {
    assert_eq!(Buffer::<u64>::try_with_capacity(usize::MAX).unwrap_err().cause, Cause::TooLarge);
    let mut buffer = Buffer::<u8>::new();
    buffer.push(1);
    assert_eq!(buffer.try_reserve(usize::MAX).unwrap_err().cause, Cause::TooLarge);
    let refused = Buffer::<u8>::try_with_capacity(1 << 46).unwrap_err();
    assert!(matches!(refused.cause, Cause::System(_)), "{refused}");
    assert_eq!(buffer[..], [1]);
}

#[test]
fn the_cap_unwinds_with_a_typed_payload_and_the_buffer_stays_whole() {
    let arena = Arena::new(ArenaConfig { cap_bytes: Some(4096), ..small("worker 3") });
    let _entered = arena.enter();
    let mut buffer = Buffer::<u64>::new();
    let payload = catch_unwind(AssertUnwindSafe(|| {
        for value in 0.. {
            buffer.push(value);
        }
    }))
    .unwrap_err();
    let refused = payload.downcast_ref::<OutOfMemory>().expect("that is the payload");
    assert_eq!((refused.who.as_str(), refused.cap, refused.cause), ("worker 3", Some(4096), Cause::ArenaCap));
    assert!(refused.to_string().contains("raise the arena's cap"));
    assert!(buffer.iter().copied().eq(0..buffer.len() as u64));
    assert!(buffer.len() * 8 <= 4096 && buffer.len() >= 128);
    arena.check_invariants();
    arena.set_cap(None);
    buffer.push(0);
}

#[test]
fn the_nth_allocation_fails_when_asked_to() {
    let arena = Arena::new(small("tested"));
    let _entered = arena.enter();
    arena.fail_after(3);
    let held = [Buffer::<u8>::with_capacity(1), Buffer::<u8>::with_capacity(1)];
    assert_eq!(Buffer::<u8>::try_with_capacity(1).unwrap_err().cause, Cause::Injected);
    drop(Buffer::<u8>::with_capacity(1));
    arena.fail_after(1);
    arena.fail_after(0);
    drop(Buffer::<u8>::with_capacity(1));
    drop(held);
}

#[test]
fn a_second_thread_is_refused_and_may_enter_later() {
    let arena = Arena::new(small("moved"));
    let entered = arena.enter();
    let (mut buffer, again) = (Buffer::<u32>::with_capacity(4), arena.enter());
    buffer.push(5);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(arena.try_enter().unwrap_err().who, "moved");
            assert!(arena.trim().is_err());
        });
    });
    drop((again, entered));
    let moved = arena.clone();
    let buffer = std::thread::spawn(move || {
        let _entered = moved.enter();
        buffer.resize(1000, 6);
        buffer
    });
    let buffer = buffer.join().expect("the thread ends well");
    assert_eq!((buffer[0], buffer[999]), (5, 6));
    drop(buffer);
    arena.check_invariants();
}

#[test]
fn arenas_nest_and_guards_may_be_dropped_in_any_order() {
    let (a, b) = (Arena::new(small("a")), Arena::new(small("b")));
    let live = |arena: &Arena| arena.stats().live_bytes;
    let outer = a.enter();
    let inner = b.enter();
    let in_b = Buffer::<u8>::with_capacity(1);
    assert_eq!((live(&a), live(&b)), (0, 64));
    drop(inner);
    let in_a = Buffer::<u8>::with_capacity(1);
    assert_eq!((live(&a), live(&b)), (64, 64));
    let inner = b.enter();
    drop(outer);
    std::thread::scope(|scope| scope.spawn(|| drop(a.enter())).join().expect("the thread ends well"));
    drop(inner);
    let shared = Buffer::<u8>::with_capacity(1);
    assert_eq!((live(&a), live(&b)), (64, 64));
    let wide = Arena::process_wide();
    let outer = a.enter();
    let inner = wide.enter();
    let also_shared = Buffer::<u8>::with_capacity(1);
    drop(inner);
    drop((a, b));
    drop(outer);
    drop((in_a, in_b, shared, also_shared));
}

#[test]
fn many_threads_free_what_one_allocates() {
    let arena = Arena::new(ArenaConfig { slack_bytes: 0, ..small("busy") });
    let tag = Tag::new("queue");
    let (rounds, sizes) = (if cfg!(debug_assertions) { 2_000u64 } else { 20_000 }, [1usize, 20, 300, 9_000, 200_000]);
    std::thread::scope(|scope| {
        let mut queues = Vec::new();
        for _ in 0..3 {
            let (sender, receiver) = std::sync::mpsc::sync_channel::<(Buffer<u64>, u64)>(16);
            queues.push(sender);
            scope.spawn(move || {
                for (buffer, round) in receiver {
                    assert!(buffer.iter().all(|&value| value == round));
                }
            });
        }
        let _entered = arena.enter();
        let _tagged = tag.enter();
        for round in 0..rounds {
            let mut buffer = Buffer::new();
            buffer.resize(sizes[round as usize % 7 % sizes.len()] / (1 + round as usize % 3), round);
            queues[round as usize % 3].send((buffer, round)).expect("someone receives");
        }
    });
    assert_eq!((arena.stats().live_bytes, tag.live_bytes()), (0, 0));
    arena.check_invariants();
    arena.trim().expect("no other thread has it");
    assert_eq!(arena.stats().reserved_bytes, 0);
}

#[test]
fn blocks_outlive_their_arena() {
    for per_block in [false, true] {
        for _ in 0..50 {
            let arena = Arena::new(ArenaConfig { per_block, ..small("gone") });
            let buffers: Vec<Buffer<u64>> = {
                let _entered = arena.enter();
                [1, 100, 20_000, 100_000].map(|len| {
                    let mut buffer = Buffer::new();
                    buffer.resize(len, len as u64);
                    buffer
                })
            }
            .into();
            let droppers = buffers.into_iter().map(|buffer| {
                std::thread::spawn(move || assert!(buffer.iter().all(|&value| value == buffer.len() as u64)))
            });
            let droppers: Vec<_> = droppers.collect();
            drop(arena);
            droppers.into_iter().for_each(|dropper| dropper.join().expect("the thread ends well"));
        }
    }
}

#[test]
fn idle_memory_goes_back_by_itself_beyond_the_slack() {
    let arena = Arena::new(ArenaConfig { slack_bytes: 4 << 20, ..small("breathing") });
    let _entered = arena.enter();
    for size in [10usize, 1000, 70_000, 400_000, 3_000_000] {
        let held: Vec<Buffer<u8>> = (0..(64 << 20) / size.max(4096)).map(|_| Buffer::with_capacity(size)).collect();
        arena.check_invariants();
        drop(held);
        let stats = arena.stats();
        assert_eq!(stats.live_bytes, 0);
        assert!(stats.reserved_bytes <= 4 << 20, "{size}: {stats:?}");
    }
    assert!(arena.stats().peak_bytes > 60 << 20);
    arena.check_invariants();
    assert!(arena.trim().expect("no other thread has it") > 0);
    assert_eq!(arena.stats().reserved_bytes, 0);
}

/// One block that is out keeps its region, but not the pages of the others.
#[test]
fn trimming_gives_back_the_free_pages_of_a_region_in_use() {
    let arena = Arena::new(ArenaConfig { region_bytes: 8 << 20, ..small("thin") });
    let _entered = arena.enter();
    let mut blocks: Vec<Buffer<u8>> = (0..60).map(|_| Buffer::with_capacity(100_000)).collect();
    blocks.iter_mut().for_each(|block| block.resize(100_000, 7));
    let pages: Vec<usize> = blocks.iter().map(|block| block.as_ptr().addr().next_multiple_of(64 << 10)).collect();
    let in_core = |page: &usize| {
        let mut state = 0;
        // SAFETY: a system call that looks at no memory but the byte it writes.
        let rc = unsafe { libc::mincore(*page as *mut libc::c_void, 1, &mut state) };
        rc == 0 && state & 1 == 1
    };
    let resident = || pages.iter().filter(|page| in_core(page)).count();
    let before = resident();
    // The only one of its size, whose place is kept at hand.
    let mut other = Buffer::<u8>::with_capacity(300_000);
    other.resize(300_000, 7);
    let alone = other.as_ptr().addr().next_multiple_of(64 << 10);
    drop(other);
    let kept = blocks.swap_remove(30);
    drop(blocks);
    assert_eq!((before, resident(), in_core(&alone)), (60, 60, true));
    arena.trim().expect("no other thread has it");
    assert!(resident() < 5 && !in_core(&alone), "{} of 60 stay", resident());
    arena.check_invariants();
    assert!(kept.iter().all(|byte| *byte == 7));
    let mut again: Vec<Buffer<u8>> = (0..60).map(|_| Buffer::with_capacity(100_000)).collect();
    again.iter_mut().for_each(|block| block.resize(100_000, 9));
    assert!(kept.iter().all(|byte| *byte == 7) && again.iter().all(|block| block.iter().all(|byte| *byte == 9)));
    arena.check_invariants();
}

#[test]
fn freed_blocks_are_reused() {
    let arena = Arena::new(small("steady"));
    let _entered = arena.enter();
    for size in [1usize, 5_000, 600_000] {
        drop(Buffer::<u8>::with_capacity(size));
        let reserved = arena.stats().reserved_bytes;
        for _ in 0..1000 {
            let mut buffer = Buffer::<u8>::with_capacity(size);
            buffer.push(1);
        }
        assert_eq!(arena.stats().reserved_bytes, reserved);
    }
}

/// A block that is too long serves too: the rest of it stays for others, and is one with it again afterwards. From a file
/// nothing can be cut; there a block that is much too long stays as it is.
#[test]
fn longer_freed_blocks_are_cut_and_joined() {
    for in_files in [false, true] {
        let directory = in_files.then(std::env::temp_dir);
        let arena = Arena::new(ArenaConfig { slack_bytes: 64 << 20, backing_directory: directory, ..small("cut") });
        let _entered = arena.enter();
        let filled = |size: usize| {
            let mut buffer = Buffer::<u8>::with_capacity(size);
            buffer.resize(buffer.capacity(), 7);
            arena.check_invariants();
            buffer
        };
        drop(filled(16 << 20));
        let whole = arena.stats().reserved_bytes;
        for _ in 0..3 {
            let parts = [3 << 20, 6 << 20, 1_500_000].map(filled);
            assert_eq!(arena.stats().reserved_bytes == whole, !in_files);
            let [a, b, c] = parts;
            for part in [b, a, c] {
                drop(part);
                arena.check_invariants();
            }
            drop(filled(16 << 20));
            assert_eq!(arena.stats().reserved_bytes == whole, !in_files);
        }
        assert_eq!(arena.stats().live_bytes, 0);
        let held = filled(3 << 20);
        arena.check_invariants();
        assert!(arena.trim().expect("no other thread has it") >= 10 << 20);
        assert!(held.iter().all(|byte| *byte == 7));
    }
}

/// Of a long cached block goes back what is too much, and no more.
#[test]
fn only_what_is_beyond_the_slack_goes_back() {
    let arena = Arena::new(ArenaConfig { slack_bytes: 10 << 20, ..small("shed") });
    let _entered = arena.enter();
    drop(Buffer::<u8>::with_capacity(50 << 20));
    let kept = arena.stats().reserved_bytes;
    assert!((8 << 20..=10 << 20).contains(&kept), "{kept} bytes");
    arena.check_invariants();
}

#[test]
fn regions_may_lie_in_files() {
    let config = ArenaConfig { backing_directory: Some(std::env::temp_dir()), ..small("filed") };
    let arena = Arena::new(config.clone());
    let _entered = arena.enter();
    let mut buffer = Buffer::<u64>::new();
    for value in 0..200_000 {
        buffer.push(value);
    }
    assert!(buffer.iter().copied().eq(0..200_000));
    arena.check_invariants();
    drop(buffer);
    let nowhere = Arena::new(ArenaConfig { backing_directory: Some("/nonexistent".into()), ..config });
    let _entered = nowhere.enter();
    assert!(matches!(Buffer::<u8>::try_with_capacity(1).unwrap_err().cause, Cause::System(_)));
}

#[test]
fn buffers_may_be_dropped_while_a_thread_ends() {
    thread_local!(static LATE: std::cell::RefCell<Buffer<u8>> = const { std::cell::RefCell::new(Buffer::new()) });
    let arena = Arena::new(small("late"));
    let moved = arena.clone();
    std::thread::spawn(move || {
        let _entered = moved.enter();
        LATE.with(|late| late.borrow_mut().push(1));
    })
    .join()
    .expect("there is as much memory");
    assert_eq!(arena.stats().live_bytes, 0);
    arena.check_invariants();
}

/// Runs `child` in a forked process; the signal that ended it.
fn signal_of(child: impl FnOnce()) -> Option<i32> {
    // SAFETY: the child only touches memory and leaves by `_exit`: it takes no lock that another thread may hold.
    unsafe {
        match libc::fork() {
            0 => {
                child();
                libc::_exit(0)
            }
            pid => {
                let mut status = 0;
                assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
                libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
            }
        }
    }
}

fn is_fault(signal: Option<i32>) -> bool {
    matches!(signal, Some(libc::SIGSEGV | libc::SIGBUS))
}

#[test]
fn the_test_mode_sees_overruns_and_uses_after_the_free() {
    for size in [1, 4096, 100_000, 3 << 20] {
        let arena = Arena::new(ArenaConfig { per_block: true, ..small("guarded") });
        let _entered = arena.enter();
        let mut buffer = Buffer::<u8>::with_capacity(size);
        let (start, capacity) = (buffer.as_mut_ptr(), buffer.capacity());
        // SAFETY: the last byte is in the block.
        let within = || unsafe { start.add(capacity - 1).write_volatile(1) };
        assert_eq!(signal_of(within), None);
        // SAFETY: none: the byte beyond must end the child.
        let beyond = || unsafe { start.wrapping_add(capacity).write_volatile(1) };
        assert!(is_fault(signal_of(beyond)), "{size}");
        let after = || {
            drop(buffer);
            // SAFETY: none: the block is gone, and reading it must end the child.
            let _gone = unsafe { start.read_volatile() };
        };
        assert!(is_fault(signal_of(after)), "{size}");
    }
}

/// Planted for `ci/sanitize.sh`, as the next one is: a write just beyond a block of an arena as all are, which is into
/// its neighbour, or with `KPG_ARENA_PER_BLOCK` a fault.
#[test]
#[ignore = "a fault, planted for ci/sanitize.sh"]
fn planted_overrun() {
    let arena = Arena::new(small("overrun"));
    let _entered = arena.enter();
    let [mut block, _neighbour] = [(); 2].map(|()| Buffer::<u64>::with_capacity(8));
    // SAFETY: none: what must be noticed. Without the test mode it lies in the same span.
    unsafe { block.as_mut_ptr().wrapping_add(block.capacity()).write_volatile(7) };
}

#[test]
#[ignore = "a fault, planted for ci/sanitize.sh"]
fn planted_use_after_the_free() {
    let arena = Arena::new(small("gone"));
    let _entered = arena.enter();
    let mut block = Buffer::<u64>::with_capacity(8);
    let start = block.as_mut_ptr();
    drop(block);
    // SAFETY: none: what must be noticed. Without the test mode the span is still mapped.
    let _gone = unsafe { start.read_volatile() };
}

/// For ThreadSanitizer: a value in a block, read by a thread that was told of it by nothing that orders the write.
#[test]
#[ignore = "a race, planted for ci/sanitize.sh"]
fn planted_race() {
    let arena = Arena::new(small("raced"));
    let _entered = arena.enter();
    let mut block = Buffer::<u64>::with_capacity(8);
    let handed = AtomicPtr::new(std::ptr::null_mut::<u64>());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = loop {
                let start = handed.load(Ordering::Relaxed);
                if !start.is_null() {
                    break start;
                }
                std::thread::yield_now();
            };
            // SAFETY: in the block, which outlives the scope; the race is what must be noticed.
            let _raced = unsafe { start.read_volatile() };
        });
        // SAFETY: the block has room for eight.
        unsafe { block.as_mut_ptr().write_volatile(7) };
        handed.store(block.as_mut_ptr(), Ordering::Relaxed);
    });
}
