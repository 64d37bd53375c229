use super::*;
use std::cell::Cell;
use std::collections::VecDeque;

thread_local! {
    static COPIES: Cell<usize> = const { Cell::new(0) };
}

/// Also for what is pushed, so that a list that is built anew counts.
pub(super) fn note_copy() {
    COPIES.set(COPIES.get() + 1);
}

/// How many trees this thread has copied so far, leaves among them, and how many items it has pushed.
pub(in super::super) fn copies() -> usize {
    COPIES.get()
}

/// As the derived one, and counts.
impl<T: Clone> Clone for Tree<T> {
    fn clone(&self) -> Self {
        note_copy();
        match self {
            Tree::Leaf(item) => Tree::Leaf(item.clone()),
            Tree::Pair(pair) => Tree::Pair(pair.clone()),
        }
    }
}

impl<T> Queue<T> {
    fn check_invariants(&self) {
        let mut falls = false;
        for pair in self.roots.windows(2) {
            assert!(!falls || pair[0].rank > pair[1].rank, "ranks fall strictly");
            falls |= pair[0].rank >= pair[1].rank;
        }
        let sum: usize = self.roots.iter().map(|root| height_checked(&root.tree, root.rank)).sum();
        assert_eq!(sum, self.len);
        assert!(self.len == 0 || self.roots.len() <= 2 * (1 + self.len.ilog2() as usize));
    }
}

fn height_checked<T>(tree: &Tree<T>, rank: u32) -> usize {
    match tree {
        Tree::Leaf(_) => assert_eq!(rank, 0),
        Tree::Pair(pair) => {
            assert!(rank > 0);
            height_checked(&pair.0, rank - 1);
            height_checked(&pair.1, rank - 1);
        }
    }
    1 << rank
}

fn assert_equal(queue: &Queue<u32>, model: &VecDeque<u32>) {
    queue.check_invariants();
    assert_eq!(queue.len(), model.len());
    assert!(queue.iter().eq(model.iter()));
    assert_eq!(queue.front(), model.front());
    for index in 0..=model.len() {
        assert_eq!(queue.get(index), model.get(index));
        assert!(queue.range(index..).eq(model.range(index..)));
    }
    assert!(queue.range(model.len() + 1..).next().is_none());
    for item in model.iter().chain([&0, &u32::MAX]) {
        assert_eq!(queue.partition_point(|x| x < item), model.partition_point(|x| x < item));
    }
}

#[test]
fn it_is_a_queue_and_its_copies_stay_as_they_were() {
    // Pushes or pops so many; a copy of each state is looked at when all is over.
    fn check(runs: Vec<(bool, u8)>) {
        let (mut queue, mut model, mut next) = (Queue::new(), VecDeque::new(), 1);
        let mut copies = Vec::new();
        for (push, count) in runs {
            for _ in 0..count % 40 {
                if push {
                    queue.push_back(next);
                    model.push_back(next);
                    next += 1;
                } else {
                    assert_eq!(queue.pop_front(), model.pop_front());
                }
                queue.check_invariants();
            }
            copies.push((queue.clone(), model.clone()));
        }
        drop((queue, model));
        copies.iter().for_each(|(queue, model)| assert_equal(queue, model));
    }
    quickcheck::quickcheck(check as fn(Vec<(bool, u8)>));
}

#[test]
fn a_change_and_a_copy_cost_a_logarithm() {
    let mut queue = Queue::new();
    let bound = |len: usize| 2 * (1 + (len + 1).ilog2() as usize);
    let mut worst = 0;
    for step in 0..200_000u32 {
        let before = copies();
        queue.push_back(step);
        if step % 3 == 0 {
            queue.pop_front();
        }
        // Roots of a copy, and what a pop split.
        drop(queue.clone());
        worst = worst.max(copies() - before);
        assert!(copies() - before <= 2 * bound(queue.len()) + 2, "{} copies at {}", copies() - before, queue.len());
    }
    assert!(worst > 0, "it counts");
}

#[test]
fn what_was_popped_is_freed() {
    let mut queue = Queue::new();
    let items: Vec<_> = (0..100).map(Arc::new).collect();
    items.iter().for_each(|item| queue.push_back(item.clone()));
    let copy = queue.clone();
    (0..70).for_each(|_| drop(queue.pop_front()));
    assert!(items.iter().all(|item| Arc::strong_count(item) == 2), "leaves below a root are shared");
    drop(copy);
    let kept: Vec<_> = items.iter().map(|item| Arc::strong_count(item) - 1).collect();
    assert!(kept[..70].iter().all(|count| *count == 0) && kept[70..].iter().all(|count| *count == 1), "{kept:?}");
}

#[test]
fn a_long_one_is_dropped_on_a_small_stack() {
    let run = || {
        let mut queue = Queue::new();
        (0..1_000_000u32).for_each(|item| queue.push_back(item));
        (0..300_000).for_each(|item| assert_eq!(queue.pop_front(), Some(item)));
        drop(queue.clone());
        assert_eq!(queue.iter().count(), 700_000);
        drop(queue);
    };
    let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(run).expect("a thread");
    thread.join().expect("no overflow");
}
