//! Which keys are updated how often.
#![forbid(unsafe_code)]

use crate::generate::{below, mix, rnd};
use std::fmt;
use std::str::FromStr;

/// How keys are drawn, by number, so that any part of a sequence can be had without what precedes it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Each as often as any other.
    Uniform,
    /// The `r`-th most frequent key about `1 / r^exponent` as often as the first.
    Zipf(f64),
    /// In order, no key twice.
    Sequential,
    /// This share of all draws falls on this part of the keys.
    Hot {
        /// Of the keys.
        part: f64,
        /// Of the draws.
        share: f64,
    },
}

impl Distribution {
    /// Key number `i` of `keys` different ones; in order there is no end to them.
    pub fn key(self, keys: u64, i: u64) -> u64 {
        let random = rnd(1, i);
        match self {
            Distribution::Uniform => below(random, keys),
            Distribution::Zipf(exponent) => scattered(rank(unit(random), keys, exponent), keys),
            Distribution::Sequential => i,
            Distribution::Hot { part, share } => {
                let hot = ((keys as f64 * part) as u64).clamp(1, keys);
                // Another draw says which key: this one says whether it is hot.
                let within = if unit(random) < share { hot } else { keys };
                scattered(below(rnd(2, i), within), keys)
            }
        }
    }
    /// Update number `u` of a sequence that adds key after key and removes the oldest, of which `keys` are loaded before: as
    /// (key, diff).
    pub fn update(self, keys: u64, u: u64) -> (u64, i64) {
        if u.is_multiple_of(2) { (self.key(keys, keys + u / 2), 1) } else { (self.key(keys, u / 2), -1) }
    }
}

/// From 0 up to 1.
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

/// The rank, from 0, at this quantile: by the inverse of the integral of `x^-exponent` from 1 to `keys + 1`, which is close
/// to the sum.
fn rank(quantile: f64, keys: u64, exponent: f64) -> u64 {
    let (end, power) = ((keys + 1) as f64, 1.0 - exponent);
    let x = if power.abs() < 1e-9 {
        end.powf(quantile)
    } else {
        ((end.powf(power) - 1.0) * quantile + 1.0).powf(1.0 / power)
    };
    (x as u64).clamp(1, keys) - 1
}

/// So that frequent keys are no neighbours.
fn scattered(rank: u64, keys: u64) -> u64 {
    below(mix(rank ^ 0x5EED), keys)
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Distribution::Sequential => f.write_str("sequential"),
            Distribution::Hot { part, share } => write!(f, "hot:{part}:{share}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let complaint = || {
            format!("{text}: expected uniform, zipf[:EXPONENT], sequential, or hot[:PART:SHARE] with parts from 0 to 1")
        };
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let numbers: Option<Vec<f64>> =
            rest.into_iter().flat_map(|rest| rest.split(':')).map(|n| n.parse().ok()).collect();
        let numbers = numbers.ok_or_else(complaint)?;
        match (name, &numbers[..]) {
            ("uniform", []) => Ok(Distribution::Uniform),
            ("sequential", []) => Ok(Distribution::Sequential),
            ("zipf", []) => Ok(Distribution::Zipf(1.0)),
            ("zipf", [exponent]) if *exponent >= 0.0 && exponent.is_finite() => Ok(Distribution::Zipf(*exponent)),
            ("hot", []) => Ok(Distribution::Hot { part: 0.01, share: 0.9 }),
            ("hot", [part, share]) if [part, share].iter().all(|p| (0.0..=1.0).contains(*p)) => {
                Ok(Distribution::Hot { part: *part, share: *share })
            }
            _ => Err(complaint()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn counts(distribution: Distribution, keys: u64, draws: u64) -> Vec<u64> {
        let mut counts = HashMap::<u64, u64>::new();
        (0..draws).for_each(|i| *counts.entry(distribution.key(keys, i)).or_default() += 1);
        assert!(distribution == Distribution::Sequential || counts.keys().all(|key| *key < keys));
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn keys_are_drawn_as_often_as_they_say() {
        let (keys, draws) = (1000, 100_000);
        assert!(counts(Distribution::Uniform, keys, draws)[0] < 200, "100 each");
        assert_eq!(counts(Distribution::Sequential, keys, draws), vec![1; draws as usize]);
        // The harmonic number of 1000 is 7.5; the integral, from 1 to 2 of ln 1001, is a tenth.
        let zipf = counts(Distribution::Zipf(1.0), keys, draws);
        assert!((9_000..11_500).contains(&zipf[0]), "{}", zipf[0]);
        assert!((2.0..15.0).contains(&(zipf[0] as f64 / zipf[9] as f64)), "{:?}", &zipf[..10]);
        assert!(counts(Distribution::Zipf(0.0), keys, draws)[0] < 1_000, "near uniform, but for keys that coincide");
        let hot: u64 = counts(Distribution::Hot { part: 0.01, share: 0.9 }, keys, draws).iter().take(10).sum();
        assert!((88_000..94_000).contains(&hot), "{hot}");
    }

    #[test]
    fn what_is_removed_was_added() {
        for text in ["uniform", "zipf:1.2", "sequential", "hot:0.1:0.5"] {
            let distribution: Distribution = text.parse().expect(text);
            assert_eq!(distribution.to_string(), text);
            let (keys, mut live) = (50, HashMap::<u64, i64>::new());
            (0..keys).for_each(|i| *live.entry(distribution.key(keys, i)).or_default() += 1);
            for u in 0..1000 {
                let (key, diff) = distribution.update(keys, u);
                *live.entry(key).or_default() += diff;
            }
            assert!(live.values().all(|count| *count >= 0) && live.values().sum::<i64>() == keys as i64);
        }
        for text in ["zipfian", "zipf:x", "hot:0.5", "hot:2:0.5", "uniform:1", "zipf:-1"] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
        assert_eq!("hot".parse(), Ok(Distribution::Hot { part: 0.01, share: 0.9 }));
    }
}
