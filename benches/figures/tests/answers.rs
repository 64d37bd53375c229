//! Every workload in small, at one and two workers, against plain code that knows no engine.
#![forbid(unsafe_code)]

use figures::{datalog, measure, plain};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use workloads::generate::{Keys, below, random_edge, rmat_edge, rnd};
use workloads::{Answer, OpenLoop, Spec, files};

/// What kpg says. Few rounds: where others use the processor, two workers wait for each other.
fn answer(words: &str) -> String {
    let spec = Spec::parse(words.split(' ').map(String::from)).expect("a spec");
    let report = measure(&spec);
    assert!(!report.metrics.is_empty() && report.metrics.iter().all(|metric| metric.value.is_finite()), "{words}");
    report.answer
}

/// Checks `words smoke` at one and two workers against what `plain` says for so many.
fn check(words: &str, plain: impl Fn(&Spec) -> String) {
    for workers in 1..=2 {
        let (name, rest) = words.split_once(' ').unwrap_or((words, ""));
        let words = format!("{name} smoke workers={workers} {rest}");
        let spec = Spec::parse(words.trim().split(' ').map(String::from)).expect("a spec");
        assert_eq!(answer(words.trim()), plain(&spec), "{words}");
    }
}

type Counts = BTreeMap<u64, i64>;

fn add(counts: &mut Counts, (key, diff): (u64, i64)) {
    let count = counts.entry(key).or_default();
    *count += diff;
    if *count == 0 {
        counts.remove(&key);
    }
}

/// What there is once so many updates have come after the loading.
fn content(keys: Keys, updates: u64) -> Counts {
    let mut counts = Counts::new();
    (0..keys.keys).for_each(|number| add(&mut counts, (keys.key(number), 1)));
    (0..updates).for_each(|number| add(&mut counts, keys.update(number)));
    counts
}

fn hash<'a>(data: impl Iterator<Item = (&'a u64, &'a i64)>) -> String {
    let mut answer = Answer::default();
    data.for_each(|(key, count)| answer.add(&[*key, *count as u64], 1));
    answer.hex()
}

/// The answer of an operator after so many updates.
fn operator_answer(operator: &str, keys: Keys, updates: u64) -> String {
    let before = content(keys, updates);
    if operator == "arrange" {
        return hash(before.iter());
    }
    let (after, mut answer) = (content(keys, updates + 1000), Answer::default());
    let changed = |counts: &Counts, others: &Counts| {
        let differ = counts.iter().filter(|(key, count)| others.get(key) != Some(count));
        differ.map(|(key, count)| (*key, *count)).collect::<Vec<_>>()
    };
    changed(&before, &after).into_iter().for_each(|(key, count)| answer.add(&[key, count as u64], -1));
    changed(&after, &before).into_iter().for_each(|(key, count)| answer.add(&[key, count as u64], 1));
    answer.hex()
}

#[test]
fn throughput() {
    let all = |spec: &Spec| {
        let keys = Keys { keys: spec.get("keys") };
        (keys, spec.get::<u64>("rounds"), spec.get::<u64>("batch") * spec.workers() as u64)
    };
    check("throughput operator=form rounds=5", |spec| {
        let (keys, rounds, batch) = all(spec);
        let formed = |round: u64| {
            let mut net = Counts::new();
            (round * batch..(round + 1) * batch).for_each(|number| add(&mut net, keys.update(number)));
            net.len()
        };
        (0..rounds).map(formed).sum::<usize>().to_string()
    });
    for operator in ["arrange", "count-total", "count"] {
        check(&format!("throughput operator={operator} rounds=5"), |spec| {
            let (keys, rounds, batch) = all(spec);
            operator_answer(operator, keys, rounds * batch)
        });
    }
}

#[test]
fn latency() {
    for (operator, effort) in [("arrange", "default"), ("arrange", "1000"), ("count-total", "default")] {
        check(&format!("latency operator={operator} effort={effort}"), |spec| {
            let seconds = |name| Duration::from_secs_f64(spec.get(name));
            let schedule = OpenLoop { rate: spec.get("rate"), warm: seconds("warm"), end: seconds("seconds") };
            operator_answer(operator, Keys { keys: spec.get("keys") }, schedule.due_by(u64::MAX))
        });
    }
}

#[test]
fn large_arrangements() {
    check("join", |spec| {
        let (keys, asked) = (spec.get::<u64>("keys"), spec.get::<u64>("queries") * spec.get::<u64>("repeat"));
        (0..asked).filter(|number| below(rnd(7, *number), keys) < keys).count().to_string()
    });
    check("attached rounds=5", |spec| {
        let keys = Keys { keys: spec.get("keys") };
        let counts = content(keys, spec.get::<u64>("rounds") * spec.get::<u64>("batch"));
        let asked = (0..spec.get("queries")).map(|query| below(rnd(7, query), keys.keys));
        asked.map(|key| counts.get(&key).copied().unwrap_or(0)).sum::<i64>().to_string()
    });
    check("memory kind=keys", |spec| {
        let mut answer = Answer::default();
        (0..spec.get("updates")).for_each(|number| answer.add(&[rnd(3, number)], 1));
        answer.hex()
    });
    check("memory kind=edges", |spec| {
        let (updates, mut answer) = (spec.get::<u64>("updates"), Answer::default());
        let edge = |number| [below(rnd(4, number), updates / 10), rnd(5, number) >> 32];
        (0..updates).for_each(|number| answer.add(&edge(number), 1));
        answer.hex()
    });
}

/// The smallest node connected with each one that has an edge.
fn labels(nodes: usize, edges: &[(u32, u32)]) -> BTreeMap<u32, u32> {
    let all = plain::components(nodes, edges.iter().copied());
    edges.iter().flat_map(|(a, b)| [*a, *b]).map(|node| (node, all[node as usize])).collect()
}

#[test]
fn graphs() {
    check("graph", |spec| {
        let scale = spec.get::<u32>("scale");
        let edges: Vec<_> = (0..16 << scale).map(|number| rmat_edge(scale, number)).collect();
        let distances = plain::Csr::new(1 << scale, edges.iter().copied()).distances(0);
        let (reached, sum) = plain::reached(distances.into_iter());
        let components: BTreeSet<u32> = labels(1 << scale, &edges).into_values().collect();
        format!("{reached} {sum} {}", components.len())
    });
    for query in ["bfs", "wcc"] {
        // Few edges, so that not all is connected.
        check(&format!("incremental query={query} edges=1100 rounds=8 change=3"), |spec| {
            let (nodes, changed) = (spec.get::<u64>("nodes"), spec.get::<u64>("rounds") * spec.get::<u64>("change"));
            let numbers = changed..changed + spec.get::<u64>("edges");
            let edges: Vec<_> = numbers.map(|number| random_edge(nodes, 12, number)).collect();
            let (count, sum) = if query == "bfs" {
                plain::reached(plain::Csr::new(nodes as usize, edges.iter().copied()).distances(0).into_iter())
            } else {
                let labels = labels(nodes as usize, &edges);
                (labels.len() as i64, labels.values().map(|label| i64::from(*label)).sum())
            };
            format!("{count} {sum}")
        });
    }
}

#[test]
fn rounds_of_next_to_nothing() {
    let rounds = |spec: &Spec| spec.text("rounds").to_string();
    check("barrier rounds=50", rounds);
    for operator in ["map", "arrange", "count-total", "count"] {
        check(&format!("single rounds=20 operator={operator}"), rounds);
    }
    check("chain rounds=20 length=10", rounds);
    check("chain rounds=20 length=10 records=0", |_| "0".to_string());
    check("idle rounds=5", rounds);
}

#[test]
fn closures() {
    for graph in ["grid-10", "tree-5", "gnp-300"] {
        check(&format!("closure graph={graph}"), |_| {
            let edges = datalog::edges(graph);
            let nodes = edges.iter().flat_map(|(a, b)| [*a, *b]).max().expect("edges") + 1;
            let mut targets = vec![Vec::new(); nodes as usize];
            edges.iter().for_each(|(source, target)| targets[*source as usize].push(*target));
            let (mut count, mut sum) = (0, 0);
            for from in 0..nodes {
                let (mut seen, mut todo) = (BTreeSet::new(), targets[from as usize].clone());
                while let Some(node) = todo.pop() {
                    if seen.insert(node) {
                        todo.extend(&targets[node as usize]);
                    }
                }
                count += seen.len();
                sum += seen.iter().map(|to| 3 * u64::from(from) + u64::from(*to)).sum::<u64>();
            }
            format!("{count} {sum}")
        });
    }
}

type Set = BTreeSet<(u32, u32)>;

fn by_first(pairs: &Set) -> BTreeMap<u32, Vec<u32>> {
    let mut by = BTreeMap::<u32, Vec<u32>>::new();
    pairs.iter().for_each(|(a, b)| by.entry(*a).or_default().push(*b));
    by
}

/// (a, b) for each (x, a) and (x, b).
fn meet(left: &Set, right: &Set) -> Set {
    let right = by_first(right);
    let of = |(x, a): &(u32, u32)| right.get(x).into_iter().flatten().map(|b| (*a, *b)).collect::<Vec<_>>();
    left.iter().flat_map(of).collect()
}

fn swapped(pairs: &Set) -> Set {
    pairs.iter().map(|(a, b)| (*b, *a)).collect()
}

/// (a, b) for each (a, x) and (x, b).
fn follow(left: &Set, right: &Set) -> Set {
    meet(&swapped(left), right)
}

/// How many of value flow, memory alias and value alias there are: the rules applied until nothing is new.
fn points_to(assign: &Set, dereference: &Set) -> [usize; 3] {
    let nodes = assign.iter().chain(dereference).flat_map(|(a, b)| [(*a, *a), (*b, *b)]);
    let (mut flow, mut memory): (Set, Set) = (nodes.collect(), Set::new());
    loop {
        let through = follow(&follow(assign, &memory), &flow);
        let value = &meet(&flow, &flow) | &meet(&meet(&memory, &flow), &flow);
        let next_flow = &(&flow | &follow(assign, &flow)) | &through;
        let next_memory = &memory | &meet(&meet(&value, dereference), dereference);
        if (next_flow.len(), next_memory.len()) == (flow.len(), memory.len()) {
            return [flow.len(), memory.len(), value.len()];
        }
        (flow, memory) = (next_flow, next_memory);
    }
}

#[test]
fn pointers() {
    check("pointers rounds=3", |spec| {
        let files::Facts { assign, dereference } = files::facts(spec.text("facts")).expect("made");
        let dereference: Set = dereference.into_iter().collect();
        let all = points_to(&assign.iter().copied().collect(), &dereference);
        let lost = (0..spec.get::<u64>("rounds")).map(|round| {
            let mut left = assign.clone();
            left.swap_remove(below(rnd(50, round), assign.len() as u64) as usize);
            all.iter().sum::<usize>() - points_to(&left.into_iter().collect(), &dereference).iter().sum::<usize>()
        });
        format!("{} {} {} {}", all[0], all[1], all[2], lost.sum::<usize>())
    });
}

#[test]
fn interactive() {
    let plain = |spec: &Spec| {
        let (nodes, queries) = (spec.get::<u64>("nodes"), spec.get::<u64>("queries"));
        let edges: Vec<_> = (0..spec.get("edges")).map(|number| random_edge(nodes, 13, number)).collect();
        let mut targets = vec![Vec::new(); nodes as usize];
        edges.iter().for_each(|(source, target)| targets[*source as usize].push(*target));
        let csr = plain::Csr::new(nodes as usize, edges.iter().copied());
        let last = spec.get::<u64>("rounds") - 1;
        let live = last * queries..(last + 1) * queries;
        let node = |class: u64, query| below(rnd(40 + class, query), nodes) as u32;
        let mut sums = [(0u64, 0u64); 4];
        let mut add = |class: usize, from: u32, to: u32, more: u32| {
            sums[class].0 += 1;
            sums[class].1 += 3 * u64::from(from) + u64::from(to) + u64::from(more);
        };
        for query in live {
            add(0, node(0, query), node(0, query), 0);
            let of = |node: u32| targets[node as usize].iter().copied();
            of(node(1, query)).for_each(|to| add(1, node(1, query), to, 0));
            of(node(2, query)).flat_map(of).for_each(|to| add(2, node(2, query), to, 0));
            let (from, to) = (node(3, query), node(4, query));
            let hops = csr.distances(from)[to as usize];
            if hops <= 4 {
                add(3, from, to, hops);
            }
        }
        sums.map(|(count, sum)| format!("{count} {sum}")).join(", ")
    };
    check("interactive rounds=3 edges=3000", plain);
    check("interactive rounds=3 edges=3000 shared=0", plain);
}
