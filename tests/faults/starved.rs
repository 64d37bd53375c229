//! Workers that are not stepped for long: results come later, and are the same.

use super::common::{Witness, quiet};
use super::program::{Fuse, Importer, Program, ROUNDS};
use kpg::client::HostedWorker;
use kpg::prelude::*;

/// Splitmix64.
struct Random(u64);
impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
}

/// Steps all but one for a long stretch.
fn starve(workers: &[HostedWorker], random: &mut Random) {
    let starved = random.below(workers.len() as u64) as usize;
    for _ in 0..random.below(400) {
        let index = random.below(workers.len() as u64) as usize;
        if index != starved {
            workers[index].step();
        }
    }
}

/// Hosted workers, all on this thread, so that who is stepped is the seed's choice.
#[test]
fn a_worker_that_is_not_stepped_delays_and_changes_nothing() {
    quiet();
    for seed in 0..40 {
        let mut random = Random(seed);
        let config = Config::default().workers(2 + (seed % 3) as usize).pinned(false);
        let (engine, seeds) = Engine::start_hosted(config).unwrap();
        let workers: Vec<_> = seeds.into_iter().map(kpg::client::WorkerSeed::start).collect();
        let mut witness = Witness::install(&engine);
        let mut program = Program::install(&engine, &Fuse::new(0), &witness).unwrap();
        let at = random.below(ROUNDS);
        let mut importer = None;
        for t in 0..ROUNDS {
            program.feed(t).unwrap();
            starve(&workers, &mut random);
            witness.put_in().unwrap();
            starve(&workers, &mut random);
            if t == at {
                importer = Some(Importer::install(&engine, &program).unwrap());
            }
            starve(&workers, &mut random);
            if random.below(2) == 0 {
                witness.catch_up().unwrap();
                program.hear(t).unwrap();
            }
        }
        witness.catch_up().unwrap();
        program.hear(ROUNDS - 1).unwrap();
        importer.as_mut().unwrap().hear(ROUNDS - 1).unwrap();
        starve(&workers, &mut random);
        drop(importer);
        program.end(|| {
            workers.iter().for_each(|worker| {
                worker.step();
            })
        });
        witness.check();
    }
}
