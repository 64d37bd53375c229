//! Topology: the cores that this process may use, and pinning to one.
//!
//! Cores are those of the process's affinity mask, so that a container or `taskset` is respected; a quota of processor
//! time lowers how many are worth using, never which. Next stop: `fabric`.
#![forbid(unsafe_code)]

pub use core_affinity::CoreId;

/// The cores that this process may run on, in the order of their numbers; empty where the system does not say.
pub fn cores() -> Vec<CoreId> {
    let mut cores = core_affinity::get_core_ids().unwrap_or_default();
    cores.sort();
    cores
}

/// Binds the calling thread to a core. Returns whether the system did so; without it all works, only less evenly.
pub fn pin(core: CoreId) -> bool {
    core_affinity::set_for_current(core)
}

/// The NUMA node that a core belongs to; nothing where the system does not say.
pub fn numa_node(core: CoreId) -> Option<u32> {
    let entries = std::fs::read_dir(format!("/sys/devices/system/cpu/cpu{}", core.id)).ok()?;
    entries.flatten().find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
}

/// How many threads run at the same time here: at least 1.
pub fn usable_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_threads_run() {
        assert!(usable_cores() >= 1);
        for core in cores() {
            let thread = std::thread::spawn(move || {
                let pinned = pin(core);
                !pinned || core_affinity::get_core_ids().is_none_or(|mine| mine == [core])
            });
            assert!(thread.join().expect("the thread ends well"));
        }
    }
}
