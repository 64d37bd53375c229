//! Several queries over one graph that keeps changing, all reading the same index.
//!
//! ```text
//! args ──► load ──► names, edges ──► plain   the answers computed again from all edges
//!                                └─► report  what is shown
//! ```
//!
//! Run it with `cargo run --release --example live_graph`; `-- --help` lists the options.
#![forbid(unsafe_code)]

mod args;
mod load;
mod plain;
#[expect(dead_code, reason = "the rounds and their table come with the engine")]
mod report;

use args::{Args, Command};
use load::Graph;
use plain::Plain;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let result = match args::parse(std::env::args_os().skip(1), cores) {
        Ok(Command::Help) => {
            print!("{}", args::HELP);
            Ok(())
        }
        Ok(Command::Run(args)) => run(&args),
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

fn run(args: &Args) -> Result<(), String> {
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
    let roots = roots(&graph);
    let names: Vec<_> = roots.iter().map(|&root| graph.names.name(root)).collect();
    println!("asked about: {}\n", names.join(", "));
    print!("{}", plain_answers(&graph, &roots));
    Ok(())
}

/// The nodes that queries start with: packages that everyone knows, or else the three nodes with most targets, the
/// smaller id first where they tie.
fn roots(graph: &Graph) -> Vec<u32> {
    let known: Option<Vec<u32>> = ["firefox-esr", "git", "openssl"].iter().map(|name| graph.names.id(name)).collect();
    known.unwrap_or_else(|| {
        let mut degrees = Plain::new(graph.names.len(), &graph.edges).out_degrees();
        degrees.sort_by_key(|&(node, degree)| (-degree, node));
        degrees.iter().take(3).map(|&(node, _)| node).collect()
    })
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
    ask("needs, all together", &|| plain.needs(roots).len());
    ask("needs, each", &|| plain.needs_of_each(roots).len());
    ask("needed by, all together", &|| plain.needed_by(roots).len());
    ask("needed by, each", &|| plain.needed_by_each(roots).len());
    ask("components", &|| plain.components().len());
    report::align(&lines)
}
