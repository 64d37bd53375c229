//! A workload's name and parameters, as a command line gives them.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::str::FromStr;

/// One of the workloads: its name, what it does, and its parameters with their defaults.
#[derive(Copy, Clone, Debug)]
pub struct Workload {
    /// As it is asked for.
    pub name: &'static str,
    /// In one line.
    pub about: &'static str,
    /// Names and defaults.
    pub parameters: &'static [(&'static str, &'static str)],
    /// Other defaults, for a run of a second or less that checks that all works.
    pub smoke: &'static [(&'static str, &'static str)],
}

/// All there are. `workers` is a parameter of each.
pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "throughput",
        about: "closed loop: rounds of `batch` updates a worker, over `keys` live keys; form (arranged, no trace), arrange, \
                count (by reduce), count-total",
        parameters: &[("operator", "arrange"), ("keys", "10000000"), ("batch", "10000"), ("rounds", "500")],
        smoke: &[("keys", "20000"), ("batch", "1000"), ("rounds", "20")],
    },
    Workload {
        name: "latency",
        about: "open loop: `rate` updates a second over `keys` live keys; arrange, or count-total",
        parameters: &[
            ("operator", "arrange"),
            ("keys", "10000000"),
            ("rate", "1000000"),
            ("warm", "3"),
            ("seconds", "13"),
            // Of merging: a number, or the engine's default.
            ("effort", "default"),
        ],
        smoke: &[("keys", "20000"), ("rate", "10000"), ("warm", "0.05"), ("seconds", "0.2")],
    },
    Workload {
        name: "join",
        about: "a new dataflow joins `queries` keys with an arrangement of `keys`: install, result known, retire; `repeat` times",
        parameters: &[("keys", "10000000"), ("queries", "1000"), ("repeat", "100")],
        smoke: &[("keys", "20000"), ("queries", "100"), ("repeat", "5")],
    },
    Workload {
        name: "attached",
        about: "`queries` queries on one arrangement of `keys`, each with one key of its own; rounds of `batch` updates in all",
        parameters: &[("keys", "1000000"), ("queries", "100"), ("batch", "1000"), ("rounds", "1000")],
        smoke: &[("keys", "20000"), ("queries", "10"), ("rounds", "20")],
    },
    Workload {
        name: "graph",
        about: "R-MAT of `scale`: index from unsorted edges, then reach, distances (sssp), components (wcc)",
        parameters: &[("scale", "20")],
        smoke: &[("scale", "10")],
    },
    Workload {
        name: "incremental",
        about: "bfs or wcc of a random graph; `change` edges out and in, `rounds` times",
        parameters: &[
            ("query", "bfs"),
            ("nodes", "1000000"),
            ("edges", "10000000"),
            ("change", "1"),
            ("rounds", "1000"),
        ],
        smoke: &[("nodes", "1000"), ("edges", "10000"), ("rounds", "20")],
    },
    Workload {
        name: "memory",
        about: "bytes an update of an arrangement: `updates` keys (u64), or edges (u32, u32) on a tenth as many keys",
        parameters: &[("kind", "keys"), ("updates", "10000000"), ("batch", "100000")],
        smoke: &[("updates", "20000"), ("batch", "1000")],
    },
    Workload {
        name: "barrier",
        about: "rounds in which every worker's input moves and is waited for",
        parameters: &[("rounds", "1000000")],
        smoke: &[("rounds", "1000")],
    },
    Workload {
        name: "single",
        about: "one record a round through map, and arrange, count-total or count (by reduce)",
        parameters: &[("operator", "arrange"), ("rounds", "100000")],
        smoke: &[("rounds", "1000")],
    },
    Workload {
        name: "chain",
        about: "one record a round (or none) through `length` maps",
        parameters: &[("length", "100"), ("records", "1"), ("rounds", "100000")],
        smoke: &[("rounds", "1000")],
    },
    Workload {
        name: "idle",
        about: "`dataflows` of `length` stateless operators each, arranged; one gets an update, all advance",
        parameters: &[("dataflows", "1000"), ("length", "10"), ("rounds", "100")],
        smoke: &[("dataflows", "20"), ("rounds", "10")],
    },
    Workload {
        name: "closure",
        about: "transitive closure with retractable results: tree-N, grid-N, gnp-N, or a file of edges",
        parameters: &[("graph", "tree-11")],
        smoke: &[("graph", "grid-10")],
    },
    Workload {
        name: "pointers",
        about: "context-sensitive points-to analysis (mutual recursion) of the facts in a file; one Assign out and in, `rounds` times",
        parameters: &[("facts", "cspa10k"), ("rounds", "200")],
        smoke: &[("facts", "made"), ("rounds", "5")],
    },
    Workload {
        name: "interactive",
        about: "look-ups, one-hop, two-hop and 4-path queries on a graph held both ways; `queries` of each change a round",
        parameters: &[
            ("nodes", "1000000"),
            ("edges", "6400000"),
            ("queries", "10"),
            ("rounds", "100"),
            ("shared", "1"),
        ],
        smoke: &[("nodes", "1000"), ("edges", "6400"), ("rounds", "10")],
    },
];

/// A workload with all its parameters.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Which.
    pub workload: Workload,
    /// Each parameter's value.
    pub parameters: BTreeMap<String, String>,
}

impl Spec {
    /// From a name and `name=value` words. `smoke` is a word too: small defaults.
    ///
    /// # Errors
    /// A workload or parameter that is not known, in words that say what is.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Spec, String> {
        let mut words = words.into_iter();
        let known = || WORKLOADS.iter().map(|workload| workload.name).collect::<Vec<_>>().join(", ");
        let name = words.next().ok_or_else(|| format!("which workload? {}", known()))?;
        let workload = WORKLOADS.iter().find(|workload| workload.name == name);
        let workload = *workload.ok_or_else(|| format!("there is no workload {name}; there are {}", known()))?;
        let mut parameters = BTreeMap::from([("workers".to_string(), "1".to_string())]);
        let owned =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect::<Vec<_>>();
        parameters.extend(owned(workload.parameters));
        for word in words {
            if word == "smoke" {
                parameters.extend(owned(workload.smoke));
                continue;
            }
            let (key, value) = word.split_once('=').ok_or_else(|| format!("{word}: expected name=value"))?;
            match parameters.get_mut(key) {
                Some(old) => *old = value.to_string(),
                None => {
                    let known = parameters.keys().cloned().collect::<Vec<_>>().join(", ");
                    return Err(format!("{name} has no parameter {key}; it has {known}"));
                }
            }
        }
        Ok(Spec { workload, parameters })
    }
    /// The parameter's text.
    ///
    /// # Panics
    /// If the workload has none of this name.
    pub fn text(&self, name: &str) -> &str {
        &self.parameters[name]
    }
    /// The parameter as a number, or whatever else it is.
    ///
    /// # Panics
    /// If it cannot be read as such: said to who wrote the command.
    pub fn get<T: FromStr>(&self, name: &str) -> T {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number of the kind that is needed"))
    }
    /// How many workers.
    pub fn workers(&self) -> usize {
        self.get("workers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_parameters_or_say_why_not() {
        let words = |text: &str| Spec::parse(text.split(' ').map(String::from));
        let spec = words("throughput smoke batch=7 workers=2").expect("a spec");
        assert_eq!((spec.get::<u64>("keys"), spec.get::<usize>("batch"), spec.workers()), (20_000, 7, 2));
        assert!(words("thoroughput").expect_err("a typo").contains("latency"));
        assert!(words("latency pace=3").expect_err("no such").contains("rate"));
        for workload in WORKLOADS {
            let known = |(name, _): &(&str, &str)| workload.parameters.iter().any(|(known, _)| known == name);
            assert!(workload.smoke.iter().all(known), "{}", workload.name);
        }
    }
}
