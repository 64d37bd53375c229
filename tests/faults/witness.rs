//! What all cases share: an engine, and a query that stays exact whatever befalls others.

use kpg::prelude::*;
use kpg::simulation::{Simulated, Simulation};
use std::sync::Once;
use std::time::Duration;

/// No wait takes longer, unless something is broken. By the simulation's clock, mostly.
pub const SOON: Duration = Duration::from_secs(20);

/// Whether nothing is left out, however long it takes.
pub fn heavy() -> bool {
    std::env::var_os("KPG_HEAVY").is_some_and(|value| value == "1")
}

/// Two workers on this thread.
pub fn simulated(seed: u64) -> Simulated {
    quiet();
    Simulation::new(seed).workers(2).start().unwrap()
}

/// Panics that are meant are not printed.
pub fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload_as_str().is_some_and(|text| text.starts_with("the fuse")) {
                loud(info);
            }
        }));
    });
}

/// Bytes live in the workers' arenas that are on no query's account.
pub fn unaccounted(engine: &Engine) -> i64 {
    let metrics = engine.metrics();
    let live: usize = metrics.arenas.iter().map(|stats| stats.live_bytes).sum();
    let known: usize = metrics.queries.iter().map(|query| query.bytes.private + query.bytes.shared).sum();
    live as i64 - known as i64
}

/// A query with an arrangement, a join and a subscription, whose answers are known.
pub struct Witness {
    pub query: Query,
    input: Input<u64, (u64, u64)>,
    pairs: Subscription<u64, (u64, u64)>,
    /// The arrangement.
    pub published: Published<u64, u64>,
    next: u64,
    heard: u64,
}

impl Witness {
    pub fn install(engine: &Engine) -> Witness {
        let (query, (input, pairs, published)) = engine
            .install("witness", |scope| {
                let (input, numbers) = scope.input::<(u64, u64)>();
                let arranged = numbers.arrange_by_key();
                let pairs = arranged.join_core(&arranged, |_, a, b| Some((a, b))).subscribe();
                (input, pairs, arranged.publish())
            })
            .unwrap();
        Witness { query, input, pairs, published, next: 0, heard: 0 }
    }

    /// One more number; all that comes of it, exactly.
    pub fn check(&mut self) {
        self.try_check().unwrap();
    }

    /// As `check`; but it may have ended.
    ///
    /// # Errors
    /// How it ended.
    pub fn try_check(&mut self) -> Result<(), Error> {
        self.try_put_in()?;
        self.try_catch_up()
    }

    /// One more number, whose results are for later.
    pub fn put_in(&mut self) {
        self.try_put_in().unwrap();
    }

    /// All that comes of the numbers that were put in, exactly.
    pub fn catch_up(&mut self) {
        self.try_catch_up().unwrap();
    }

    fn try_put_in(&mut self) -> Result<(), Error> {
        let t = self.next;
        self.next += 1;
        self.input.insert((t % 3, t))?;
        self.input.advance_to(t + 1)
    }

    fn try_catch_up(&mut self) -> Result<(), Error> {
        let Some(last) = self.next.checked_sub(1) else { return Ok(()) };
        let mut got: Vec<_> = self.pairs.wait_past(&last, SOON)?.into_iter().collect();
        let mut want = Vec::new();
        for t in self.heard..self.next {
            want.push(((t, t), t, 1));
            for u in (t % 3..t).step_by(3) {
                want.extend([((t, u), t, 1), ((u, t), t, 1)]);
            }
        }
        self.heard = self.next;
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want);
        let snapshot = self.published.wait_snapshot(&last, SOON)?;
        assert_eq!(snapshot.get(&(last % 3)).last(), Some((last, 1)));
        Ok(())
    }
}
