//! Messages: from one thread to another, and to several, each of which reads all.
#![forbid(unsafe_code)]

use crate::data::{fold, short};
use crossbeam_queue::SegQueue;
use kpg::sync::{log, spsc};
use kpg_bench::{Clock, Compared, Lab};
use std::sync::Arc;
use std::thread;

/// As long as a message of the fabric.
type Message = [u64; 8];
/// Sent at a time, where one thread does both.
const BURST: u64 = 16;

fn message(number: u64) -> Message {
    [number; 8]
}

pub fn benches(lab: &mut Lab) {
    let count = lab.size(100_000, 1_000) / BURST * BURST;
    let size = format!("{} × 64 bytes", short(count));
    lab.compare(Clock::Thread, "ring, one thread", &size, count, |c| {
        let (mut sender, mut receiver) = spsc::channel();
        alone(c, "kpg", count, |message| sender.send(message), || receiver.receive());
        let (mut producer, mut consumer) = rtrb::RingBuffer::new(1024);
        alone(c, "rtrb", count, |m| producer.push(m).expect("there is room"), || consumer.pop().ok());
        let queue = SegQueue::new();
        alone(c, "crossbeam SegQueue", count, |message| queue.push(message), || queue.pop());
    });
    let count = lab.size(200_000, 1_000);
    let size = format!("{} × 64 bytes", short(count));
    lab.compare(Clock::Wall, "ring, two threads", &size, count, |c| {
        across(c, "kpg", count, || {
            let (mut sender, mut receiver) = spsc::channel();
            (move |message| sender.send(message), move || receiver.receive())
        });
        across(c, "rtrb", count, || {
            let (mut producer, mut consumer) = rtrb::RingBuffer::new(1024);
            let push = move |message| {
                let mut left = Err(rtrb::PushError::Full(message));
                while let Err(rtrb::PushError::Full(message)) = left {
                    left = producer.push(message);
                    if left.is_err() {
                        thread::yield_now();
                    }
                }
            };
            (push, move || consumer.pop().ok())
        });
        across(c, "crossbeam SegQueue", count, || {
            let queue = Arc::new(SegQueue::new());
            let other = queue.clone();
            (move |message| queue.push(message), move || other.pop())
        });
    });
    broadcasts(lab);
}

/// Sends bursts and receives them.
fn alone(
    c: &mut Compared<'_>,
    who: &str,
    count: u64,
    mut send: impl FnMut(Message),
    mut receive: impl FnMut() -> Option<Message>,
) {
    let all = |()| {
        let mut sum = 0;
        for burst in 0..count / BURST {
            (0..BURST).for_each(|number| send(message(burst * BURST + number)));
            while let Some(message) = receive() {
                sum = fold(sum, message[7]);
            }
        }
        sum
    };
    c.run(who, || (), all, |sum| *sum);
}

/// Receives what another thread sends as fast as it can; the thread starts before the clock does, but not by much.
fn across<S: FnMut(Message) + Send + 'static, R: FnMut() -> Option<Message> + Send>(
    c: &mut Compared<'_>,
    who: &str,
    count: u64,
    make: impl Fn() -> (S, R),
) {
    c.run(
        who,
        || {
            let (mut send, receive) = make();
            let sender = thread::spawn(move || {
                workloads::machine::pin(1);
                thread::park();
                (0..count).for_each(|number| send(message(number)));
            });
            (sender, receive)
        },
        |(sender, mut receive)| {
            sender.thread().unpark();
            let (mut sum, mut received) = (0, 0);
            while received < count {
                match receive() {
                    Some(message) => {
                        sum = fold(sum, message[7]);
                        received += 1;
                    }
                    // The other one may have no core of its own just now.
                    None => thread::yield_now(),
                }
            }
            sender.join().expect("it has sent all");
            sum
        },
        |sum| *sum,
    );
}

/// An entry of the fabric's log is one pointer.
fn broadcasts(lab: &mut Lab) {
    for readers in [1, 3] {
        let count = lab.size(100_000, 1_000) / BURST * BURST;
        let size = format!("{} × 8 bytes, {readers} readers", short(count));
        lab.compare(Clock::Thread, "log, one thread", &size, count, |c| {
            let (mut writer, mut all) = log::broadcast(readers);
            c.run(
                "kpg",
                || (),
                |()| {
                    let mut sum = 0;
                    for burst in 0..count / BURST {
                        (0..BURST).for_each(|number| writer.append(burst * BURST + number));
                        for reader in &mut all {
                            while let Some(number) = reader.next(|number| *number) {
                                sum = fold(sum, number);
                            }
                        }
                    }
                    sum
                },
                |sum| *sum,
            );
            let mut rings: Vec<_> = (0..readers).map(|_| rtrb::RingBuffer::new(64)).collect();
            c.run(
                "an rtrb each",
                || (),
                |()| {
                    let mut sum = 0;
                    for burst in 0..count / BURST {
                        for number in 0..BURST {
                            for (producer, _) in &mut rings {
                                producer.push(burst * BURST + number).expect("there is room");
                            }
                        }
                        for (_, consumer) in &mut rings {
                            while let Ok(number) = consumer.pop() {
                                sum = fold(sum, number);
                            }
                        }
                    }
                    sum
                },
                |sum| *sum,
            );
        });
    }
    let count = lab.size(200_000, 1_000);
    lab.compare(Clock::Wall, "log, two threads", format!("{} × 8 bytes", short(count)), count, |c| {
        across(c, "kpg", count, || {
            let (mut writer, mut readers) = log::broadcast(1);
            let mut reader = readers.remove(0);
            (move |m: Message| writer.append(m[7]), move || reader.next(|number| message(*number)))
        });
        across(c, "an rtrb", count, || {
            let (mut producer, mut consumer) = rtrb::RingBuffer::new(1024);
            let push = move |m: Message| {
                while producer.push(m[7]).is_err() {
                    thread::yield_now();
                }
            };
            (push, move || consumer.pop().ok().map(message))
        });
    });
}
