//! Several queries over one graph that keeps changing, all reading the same index.
//!
//! ```text
//! args ──► load ──► names, edges ─┬─► changes  what happens to the edges, round by round
//!                                 │      └─► live ──► queries, watch  the dataflows, and a thread for each
//!                                 │            ├────► plain   the answers computed again from all edges
//!                                 ├────────────────► report  what is shown
//!                                 └─► soak                   instead of live: all of that at random, and memory must stay flat
//! ```
//!
//! Run it with `cargo run --release --example live_graph`; `-- --help` lists the options.
#![forbid(unsafe_code)]

mod args;
mod changes;
mod live;
mod load;
mod plain;
mod queries;
mod report;
mod soak;
mod watch;

use args::{Args, Command};
use live::{Outcome, Plan};
use load::Graph;
use plain::Plain;
use queries::Kind;
use report::Progress;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// Rounds in which the file's edges arrive.
const LOAD_ROUNDS: u64 = 40;

fn main() -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let result = match args::parse(std::env::args_os().skip(1), cores) {
        Ok(Command::Help) => {
            print!("{}", args::HELP);
            Ok(())
        }
        Ok(Command::Run(args)) => run(&args),
        Ok(Command::Soak(args, soak)) => soak_for(&args, &soak),
        Err(sentence) => Err(sentence),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("live_graph: {sentence}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the graph, and says so.
fn graph(args: &Args) -> Result<Graph, String> {
    let path = args.file.clone().unwrap_or_else(load::built_in);
    let started = Instant::now();
    let graph = load::load(&path, args.form).map_err(|error| error.to_string())?;
    println!(
        "{} edges between {} names, {} repeated lines, read in {}",
        report::count(graph.edges.len() as u64),
        report::count(graph.names.len() as u64),
        report::count(graph.repeated as u64),
        report::duration(started.elapsed()),
    );
    Ok(graph)
}

fn run(args: &Args) -> Result<(), String> {
    let graph = graph(args)?;
    let (roots, hub) = (roots(&graph), hub(&graph));
    let names: Vec<_> = roots.iter().map(|&root| graph.names.name(root)).collect();
    println!("asked about: {}; {} goes and comes back", names.join(", "), graph.names.name(hub));
    print!("\n{}\n", plain_answers(&graph, &roots));
    let plan = Plan {
        workers: args.workers,
        pinned: true,
        edges: &graph.edges,
        nodes: graph.names.len(),
        roots: &roots,
        hub,
        load_rounds: LOAD_ROUNDS.min(graph.edges.len() as u64),
        rounds: args.rounds,
        seed: args.seed,
    };
    let started = Instant::now();
    let outcome = live::run(&plan, &mut Progress::start(plan.load_rounds + plan.rounds))?;
    println!(
        "{} rounds, {} updates, {} workers: {}; {} results compared with plain Rust, all the same",
        report::count(plan.load_rounds + plan.rounds),
        report::count(outcome.updates),
        plan.workers,
        report::duration(started.elapsed()),
        report::count(outcome.checks),
    );
    print!("\n{}\n{}", report::table(&outcome.rows), answers(&outcome, &graph, hub));
    Ok(())
}

/// Soaks, says what came of it, and fails if memory is not flat.
fn soak_for(args: &Args, soak: &args::Soak) -> Result<(), String> {
    let fault = match std::env::var(soak::Fault::VARIABLE) {
        Ok(name) => Some(soak::Fault::named(&name)?),
        Err(_) => None,
    };
    let graph = graph(args)?;
    let plan = soak::Plan {
        workers: args.workers,
        pinned: true,
        edges: &graph.edges,
        nodes: graph.names.len(),
        seconds: soak.seconds,
        seed: args.seed,
        fault,
    };
    let mut file = match &soak.curve {
        Some(path) => Some(File::create(path).map_err(|error| {
            format!("{} cannot be written: {error}: give --curve a file in a directory that is there.", path.display())
        })?),
        None => None,
    };
    let curve = file.as_mut().map(|file| file as &mut dyn Write);
    let outcome = soak::run(&plan, curve, &mut Progress::start(0))?;
    println!(
        "{} seconds, {} rounds, {} updates, {} snapshots, {} workers: all results are those of plain Rust",
        report::count(plan.seconds),
        report::count(outcome.rounds),
        report::count(outcome.updates),
        report::count(outcome.snapshots),
        plan.workers,
    );
    print!("\n{}\n", soak::table(&outcome));
    let (first, last) = outcome.graph_alone;
    println!("the graph alone: {} live at the start, {} at the end", report::bytes(first), report::bytes(last));
    soak::curve::verdict(&outcome.samples)?;
    let allowed = soak::curve::allowed(plan.seconds as f64) * 100.0;
    println!("memory is flat: no growth above the {allowed:.1} % that so short or long a soak may differ by");
    Ok(())
}

/// The nodes that queries start with: packages that everyone knows, or else the three nodes with most targets, the
/// smaller id first where they tie; and the hub.
fn roots(graph: &Graph) -> Vec<u32> {
    let known: Option<Vec<u32>> = ["firefox-esr", "git", "openssl"].iter().map(|name| graph.names.id(name)).collect();
    let mut roots =
        known.unwrap_or_else(|| most_first(graph.edges.iter().map(|edge| edge.0)).into_iter().take(3).collect());
    let hub = hub(graph);
    if !roots.contains(&hub) {
        roots.push(hub);
    }
    roots
}

/// The node whose edges all go and come back: libc6, or else the node with most sources.
fn hub(graph: &Graph) -> u32 {
    graph.names.id("libc6").unwrap_or_else(|| most_first(graph.edges.iter().map(|edge| edge.1))[0])
}

/// The nodes by how often they come, most first, the smaller first where they tie.
fn most_first(nodes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut counts = BTreeMap::new();
    nodes.for_each(|node| *counts.entry(node).or_insert(0u64) += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(node, count)| (Reverse(count), node));
    counts.into_iter().map(|(node, _)| node).collect()
}

/// A few results as sentences.
fn answers(outcome: &Outcome, graph: &Graph, hub: u32) -> String {
    let mut text = String::new();
    let hub = graph.names.name(hub);
    if let [before, without, back] = outcome.hub_needed_by[..] {
        let [before, without, back] = [before, without, back].map(|count| report::count(count as u64 - 1));
        text += &format!("{before} need {hub}; {without} when all its edges are gone; {back} when they are back\n");
    }
    for &(kind, argument, count) in &outcome.answers {
        let name = argument.map_or("", |node| graph.names.name(node));
        let others = report::count((count as u64).saturating_sub(1));
        let count = report::count(count as u64);
        text += &match kind {
            Kind::OutDegrees => format!("{count} have a target\n"),
            Kind::Components => format!("{count} components\n"),
            Kind::Needs => format!("{name} needs {others} others\n"),
            Kind::NeededBy => format!("{others} others need {name}\n"),
            Kind::TwoHop => format!("{count} are two edges on from {name}\n"),
            Kind::TwoHopUsers => format!("{count} are two edges back from {name}\n"),
        };
    }
    text
}

/// A line a question: how many results, and how long it takes to compute them from nothing but the index.
fn plain_answers(graph: &Graph, roots: &[u32]) -> String {
    let started = Instant::now();
    let plain = Plain::new(graph.names.len(), &graph.edges);
    let mut lines = vec![["plain Rust", "results", "time"].map(String::from)];
    lines.push(["index, both directions".into(), String::new(), report::duration(started.elapsed())]);
    let mut ask = |name: &str, results: &dyn Fn() -> usize| {
        let started = Instant::now();
        let results = report::count(results() as u64);
        lines.push([name.into(), results, report::duration(started.elapsed())]);
    };
    ask("out-degrees", &|| plain.out_degrees().len());
    ask("two-hop", &|| plain.two_hop(roots).len());
    ask("two-hop users", &|| plain.two_hop_users(roots).len());
    ask("needs, all together", &|| plain.needs(roots).len());
    ask("needs, each", &|| plain.needs_of_each(roots).len());
    ask("needed by, all together", &|| plain.needed_by(roots).len());
    ask("needed by, each", &|| plain.needed_by_each(roots).len());
    ask("components", &|| plain.components().len());
    report::align(&lines)
}
