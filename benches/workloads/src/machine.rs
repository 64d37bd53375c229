//! The machine: pinning, memory, and what others took of the processors meanwhile.
#![forbid(unsafe_code)]

use core_affinity::CoreId;
use std::fs;
use std::sync::OnceLock;

/// Pins this thread to the core of worker `index`; false if the system refuses, or there are fewer cores.
pub fn pin(index: usize) -> bool {
    // Those of the first who asks: a thread that a pinned one starts inherits its one core.
    static CORES: OnceLock<Vec<CoreId>> = OnceLock::new();
    let cores = CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default());
    // The last core first: the first one serves interrupts.
    index < cores.len() && core_affinity::set_for_current(cores[cores.len() - 1 - index])
}

fn status(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    1024 * line.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap_or(0)
}

/// Bytes of this process that are in memory now.
pub fn resident() -> u64 {
    status("VmRSS:")
}

/// The most bytes of this process that were ever in memory.
pub fn peak_resident() -> u64 {
    status("VmHWM:")
}

/// The processor's name.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    line.trim_start_matches([' ', '\t', ':']).to_string()
}

/// The numbers of a line, words left out. A process without a terminal has a negative one among its own.
fn numbers(line: &str) -> Vec<i64> {
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Ticks of a process, of which this is the state; user and system together.
fn process_ticks(stat: &str) -> i64 {
    numbers(stat.rsplit(')').next().unwrap_or_default()).iter().skip(10).take(2).sum()
}

/// Ticks of all processors that were busy, and those of this process.
fn ticks() -> (i64, i64) {
    let all = fs::read_to_string("/proc/stat").unwrap_or_default();
    // user nice system idle iowait irq softirq steal
    let all = numbers(all.lines().next().unwrap_or_default());
    let busy = all.iter().take(8).sum::<i64>() - all.iter().skip(3).take(2).sum::<i64>();
    (busy, process_ticks(&fs::read_to_string("/proc/self/stat").unwrap_or_default()))
}

/// Tells whether anyone else ran.
pub struct Meter {
    from: (i64, i64),
}

impl Meter {
    /// From now on.
    pub fn start() -> Self {
        Meter { from: ticks() }
    }
    /// Seconds of processor time that others took since, all processors together.
    pub fn others(&self) -> f64 {
        let (busy, own) = ticks();
        (busy - self.from.0 - (own - self.from.1)).max(0) as f64 / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that a pinned one starts gets a core of its own.
    #[test]
    fn each_worker_has_its_core() {
        let several = core_affinity::get_core_ids().is_some_and(|cores| cores.len() > 1);
        let both = std::thread::spawn(|| {
            let first = pin(0);
            let second = std::thread::spawn(|| (pin(1), core_affinity::get_core_ids())).join().expect("no panic");
            (first, core_affinity::get_core_ids(), second)
        });
        let (first, of_first, (second, of_second)) = both.join().expect("no panic");
        assert!(first);
        assert!(!second || of_first != of_second, "{of_first:?}");
        assert_eq!(second, several);
    }

    #[test]
    fn a_process_without_a_terminal_counts_its_own_time() {
        let stat = |terminal: i32| {
            format!("7 (a) b) S 1 7 7 0 {terminal} 4194560 90 0 3 0 61 17 5 4 20 0 1 0 8 999 12 18446744073709551615")
        };
        assert_eq!(process_ticks(&stat(7)), 61 + 17);
        assert_eq!(process_ticks(&stat(-1)), 61 + 17);
    }
}
