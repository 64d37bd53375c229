//! What cases of misuse and of faults share: a query that must stay exact whatever befalls others, one that comes and
//! goes, and silence about panics that are meant.
#![forbid(unsafe_code)]

use kpg::prelude::*;
use std::panic::PanicHookInfo;
use std::sync::Once;
use std::time::Duration;

/// No wait takes longer, unless something is broken. In simulation by its clock.
pub const SOON: Duration = Duration::from_secs(20);

/// Panics that are `meant` are not printed from now on.
pub fn silence(meant: impl Fn(&PanicHookInfo<'_>) -> bool + Send + Sync + 'static) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !meant(info) {
                loud(info);
            }
        }));
    });
}

/// Bytes live in the workers' arenas.
pub fn live(engine: &Engine) -> usize {
    engine.metrics().arenas.iter().map(|stats| stats.live_bytes).sum()
}

/// A query with an arrangement, a join and a subscription, whose answers are known.
pub struct Witness {
    query: Query,
    input: Input<u64, (u64, u64)>,
    pairs: Subscription<u64, (u64, u64)>,
    /// The arrangement: of `(t % 3, t)` for each `t` so far.
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
        self.put_in()?;
        self.catch_up()
    }

    /// One more number, whose results are for later.
    ///
    /// # Errors
    /// As `try_check`.
    pub fn put_in(&mut self) -> Result<(), Error> {
        let t = self.next;
        self.next += 1;
        self.input.insert((t % 3, t))?;
        self.input.advance_to(t + 1)
    }

    /// All that comes of the numbers that were put in, exactly.
    ///
    /// # Errors
    /// As `try_check`.
    pub fn catch_up(&mut self) -> Result<(), Error> {
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

    /// Takes it down.
    pub fn retire(self) {
        self.query.retire().unwrap();
    }

    /// A query over the witness's first ten numbers is installed, asked, answers right, and is retired.
    pub fn passing_query(&self, engine: &Engine) {
        let (query, (mut input, mut results)) = engine
            .install("passing", |scope| {
                let (input, keys) = scope.input::<u64>();
                let numbers = self.published.import(scope);
                let joined = numbers.join_core(&keys.distinct().arrange_by_self(), |k, v, ()| Some((k, v)));
                let looped = joined.iterate(|_, inner| inner.map(|(k, v)| (k, v / 2)).concat(inner).distinct());
                (input, looped.subscribe())
            })
            .unwrap();
        (1..100).for_each(|key| input.insert(key).unwrap());
        input.advance_to(100).unwrap();
        let results = results.wait_past(&9, SOON).unwrap().into_iter().map(|(data, _, diff)| (data, diff));
        // 1, 4, 7 have key 1; 2, 5, 8 key 2; and halves of all.
        let want = [0, 1, 2, 3, 4, 7].map(|v| (1, v)).into_iter().chain([0, 1, 2, 4, 5, 8].map(|v| (2, v)));
        // Where times came one by one, so did what they hold.
        let mut got: Vec<_> = results.collect();
        got.sort_unstable();
        assert_eq!(got, want.map(|pair| (pair, 1)).collect::<Vec<_>>());
        query.retire().unwrap();
    }
}
