//! Which workloads make which figure.
#![forbid(unsafe_code)]

use workloads::files;

/// How large, how fast, how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// At most so many workers: 1, 2, 4, … up to it.
    pub workers: usize,
    /// Offered loads, updates a second; the first one is that of figures that have one only.
    pub rates: Vec<u64>,
    /// Live keys.
    pub keys: u64,
    /// How long an open loop is measured.
    pub seconds: f64,
    /// All in small.
    pub smoke: bool,
}

/// How a figure is drawn.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Not at all.
    Table,
    /// For each series the part of all requests that took longer than so long.
    Curves {
        /// Which of the distributions that a report has.
        distribution: &'static str,
    },
    /// Metrics over x.
    Lines {
        /// What x is.
        x: &'static str,
        /// What the metrics are.
        y: &'static str,
        /// Their names.
        metrics: &'static [&'static str],
    },
}

/// One measurement of a figure.
#[derive(Clone, Debug)]
pub struct Point {
    /// Which line or curve it belongs to.
    pub series: String,
    /// Where on that.
    pub x: f64,
    /// The same in words.
    pub at: String,
    /// What is measured.
    pub words: Vec<String>,
}

/// A figure, or a table.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Also its files' names.
    pub name: String,
    /// In a line.
    pub title: String,
    /// How it is drawn.
    pub kind: Kind,
    /// The metrics of its table; if there are none, all.
    pub columns: &'static [&'static str],
    /// What is measured, in this order.
    pub points: Vec<Point>,
}

const LATENCY: &[&str] = &["p50", "p90", "p99", "p99.9", "max"];
const ROUNDS: &[&str] = &["updates", "round p50", "round p99", "round p99.9", "round max"];
const CCDF: Kind = Kind::Curves { distribution: "" };

/// Writes points down.
struct Plan<'a> {
    options: &'a Options,
    figures: Vec<Figure>,
}

impl Plan<'_> {
    fn figure(&mut self, name: &str, title: &str, kind: Kind, columns: &'static [&'static str]) {
        let (name, title) = (name.to_string(), title.to_string());
        self.figures.push(Figure { name, title, kind, columns, points: Vec::new() });
    }
    /// A point of the last figure.
    fn point(&mut self, series: impl ToString, (x, unit): (f64, &str), words: &str) {
        let mut words: Vec<String> = words.split(' ').map(String::from).collect();
        if self.options.smoke {
            words.insert(1, "smoke".to_string());
            // Where others use the processors, workers wait for each other for long.
            let more = match words[0].as_str() {
                "barrier" | "single" | "chain" => "rounds=50",
                "throughput" | "incremental" | "idle" => "rounds=5",
                _ => "workers=1",
            };
            words.insert(2, more.to_string());
        }
        let at = if unit.is_empty() { String::new() } else { format!("{x} {unit}") };
        let figure = self.figures.last_mut().expect("a figure was begun");
        figure.points.push(Point { series: series.to_string(), x, at, words });
    }
    /// 1, 2, 4, … workers.
    fn workers(&self) -> Vec<usize> {
        let mut all: Vec<usize> =
            std::iter::successors(Some(1), |w| Some(2 * w)).take_while(|w| *w < self.options.workers).collect();
        all.push(self.options.workers);
        all
    }
    /// `first`, ten times as much, … up to `last`; in small, the first two only, of little.
    fn tens(&self, first: u64, last: u64) -> Vec<u64> {
        let first = if self.options.smoke { first.min(1000) } else { first };
        let all = std::iter::successors(Some(first), |n| Some(10 * n)).take_while(|n| *n <= last);
        all.take(if self.options.smoke { 2 } else { 20 }).collect()
    }
}

/// All figures and tables.
pub fn figures(options: &Options) -> Vec<Figure> {
    let mut plan = Plan { options, figures: Vec::new() };
    paper(&mut plan);
    graphs(&mut plan);
    rules(&mut plan);
    small(&mut plan);
    scaling(&mut plan);
    plan.figures
}

/// The parameters of an open loop.
fn open_loop(options: &Options, workers: usize, rate: u64, keys: u64) -> String {
    let warm = options.seconds / 4.0;
    let end = warm + options.seconds;
    format!("workers={workers} rate={rate} keys={keys} warm={warm} seconds={end}")
}

/// Those of the paper on shared arrangements (McSherry and others, VLDB 2020), figure 5.
fn paper(plan: &mut Plan) {
    let options = plan.options;
    let (rate, keys) = (options.rates[0], options.keys);
    plan.figure("5a-load", "Latency by offered load (arrange, 1 worker)", CCDF, LATENCY);
    for rate in &options.rates {
        let words = format!("latency {}", open_loop(options, 1, *rate, keys));
        plan.point(format!("{rate} updates/s"), (*rate as f64, ""), &words);
    }
    plan.figure("5a-load-count", "Latency by offered load (count, 1 worker)", CCDF, LATENCY);
    for rate in &options.rates {
        let words = format!("latency operator=count-total {}", open_loop(options, 1, *rate, keys));
        plan.point(format!("{rate} updates/s"), (*rate as f64, ""), &words);
    }
    plan.figure("5b-strong", "Latency by workers, of the same load (arrange)", CCDF, LATENCY);
    for workers in plan.workers() {
        let words = format!("latency {}", open_loop(options, workers, rate, keys));
        plan.point(format!("{workers} workers"), (workers as f64, ""), &words);
    }
    plan.figure("5c-weak", "Latency by workers, load and keys in proportion (arrange)", CCDF, LATENCY);
    for workers in plan.workers() {
        let (all, most) = (workers as u64, options.workers as u64);
        let words = format!("latency {}", open_loop(options, workers, rate / most * all, keys / most * all));
        plan.point(format!("{workers} workers"), (workers as f64, ""), &words);
    }
    let kind = Kind::Lines { x: "workers", y: "updates/s", metrics: &["updates"] };
    plan.figure("5d-throughput", "Updates a second by operator, in rounds of 10,000 a worker", kind, ROUNDS);
    for operator in ["form", "arrange", "count-total", "count"] {
        for workers in plan.workers() {
            let words = format!("throughput operator={operator} workers={workers} keys={keys}");
            plan.point(operator, (workers as f64, "workers"), &words);
        }
    }
    plan.figure("5e-merging", "Latency by merge effort (arrange, 1 worker)", CCDF, LATENCY);
    for effort in ["5", "default", "64", "1048576"] {
        let words = format!("latency effort={effort} {}", open_loop(options, 1, rate, keys));
        plan.point(format!("effort {effort}"), (0.0, ""), &words);
    }
    let kind = Kind::Lines { x: "keys that are asked for", y: "install to complete", metrics: &["p50", "p99", "max"] };
    plan.figure("5f-join", "A new query on an arrangement, by how much it asks for (1 worker)", kind, LATENCY);
    for queries in plan.tens(1, 100_000) {
        let repeat = if queries > 1000 { 50 } else { 100 };
        let words = format!("join keys={keys} queries={queries} repeat={repeat}");
        plan.point("", (queries as f64, "keys"), &words);
    }
}

/// Graphs that stay, that change, and that are asked.
fn graphs(plan: &mut Plan) {
    let scale = if plan.options.smoke { "10" } else { "20" };
    plan.figure("graph", &format!("R-MAT of scale {scale}"), Kind::Table, &[]);
    for workers in plan.workers() {
        plan.point("graph", (workers as f64, "workers"), &format!("graph scale={scale} workers={workers}"));
    }
    let columns = &["initial", "p50", "p99", "max", "resident"];
    plan.figure("incremental", "Edges out of and into a random graph (1M nodes, 10M edges)", Kind::Table, columns);
    for query in ["bfs", "wcc"] {
        for (change, rounds) in [(1, 1000), (10, 500), (1000, 100)] {
            let rounds = if plan.options.smoke { 3 } else { rounds };
            let words = format!("incremental query={query} change={change} rounds={rounds}");
            plan.point(query, (f64::from(change), "edges"), &words);
        }
    }
    let columns =
        &["look-up mean", "one-hop mean", "two-hop mean", "4-path mean", "loaded", "resident", "peak resident"];
    plan.figure("interactive", "Queries that come and go on a graph (1M nodes, 6.4M edges)", Kind::Table, columns);
    for shared in [1, 0] {
        for queries in plan.tens(1, 1000) {
            let name = if shared == 1 { "shared" } else { "not shared" };
            let words = format!("interactive shared={shared} queries={queries}");
            plan.point(name, (queries as f64, "queries"), &words);
        }
    }
}

/// Closures, and points-to analysis where its facts are at hand.
fn rules(plan: &mut Plan) {
    plan.figure("closure", "Transitive closure with results that can be retracted", Kind::Table, &[]);
    let graphs: &[&str] = if plan.options.smoke { &["tree-5", "grid-10"] } else { &["tree-11", "gnp-2000"] };
    for graph in graphs {
        plan.point(graph, (1.0, "workers"), &format!("closure graph={graph}"));
    }
    plan.figure("pointers", "Points-to analysis, then single facts out and in", Kind::Table, &[]);
    let facts = if plan.options.smoke || files::directory().is_none() { "made" } else { "cspa10k" };
    plan.point(facts, (1.0, "workers"), &format!("pointers facts={facts}"));
}

/// What little things cost.
fn small(plan: &mut Plan) {
    let columns = &["rounds", "p50", "p90", "p99", "max", "built", "resident"];
    plan.figure("progress", "Rounds of next to nothing", Kind::Table, columns);
    for workers in plan.workers() {
        let mut row = |name: &str, words: &str| {
            plan.point(name, (workers as f64, "workers"), &format!("{words} workers={workers}"));
        };
        row("barrier", "barrier");
        for operator in ["map", "arrange", "count-total", "count"] {
            row(&format!("one record, {operator}"), &format!("single operator={operator}"));
        }
        row("100 maps, one record", "chain");
        row("100 maps, no record", "chain records=0");
    }
    plan.point("dataflows of 10 maps", (1000.0, "of them"), "idle");
    plan.figure("memory", "Bytes an update of an arrangement", Kind::Table, &[]);
    for kind in ["keys", "edges"] {
        plan.point(kind, (1.0, "workers"), &format!("memory kind={kind}"));
    }
}

/// Cost against work.
fn scaling(plan: &mut Plan) {
    let most = plan.options.keys.max(10_000_000);
    let keys = plan.tens(100_000, most);
    let kind = Kind::Lines { x: "keys", y: "updates/s", metrics: &["updates"] };
    plan.figure("scaling-keys", "Updates a second by keys, in rounds of 10,000 (1 worker)", kind, ROUNDS);
    for operator in ["arrange", "count-total"] {
        for keys in &keys {
            plan.point(operator, (*keys as f64, "keys"), &format!("throughput operator={operator} keys={keys}"));
        }
    }
    let kind = Kind::Lines { x: "keys", y: "latency", metrics: &["p50", "p99", "max"] };
    plan.figure("scaling-latency", "Latency by keys, at a quarter of the load (arrange, 1 worker)", kind, LATENCY);
    for keys in &keys {
        let words = format!("latency {}", open_loop(plan.options, 1, plan.options.rates[0] / 4, *keys));
        plan.point("", (*keys as f64, "keys"), &words);
    }
    let metrics = &["loaded live", "settled live", "peak live"];
    let kind = Kind::Lines { x: "keys", y: "bytes an update", metrics };
    plan.figure("scaling-bytes", "Bytes an update by updates (distinct keys, 1 worker)", kind, &[]);
    for updates in &keys {
        plan.point("", (*updates as f64, "updates"), &format!("memory updates={updates}"));
    }
    let kind = Kind::Lines { x: "updates a round", y: "updates/s", metrics: &["updates"] };
    plan.figure("scaling-batches", "Updates a second by updates a round (1 worker)", kind, ROUNDS);
    for operator in ["arrange", "count-total"] {
        for batch in plan.tens(1, 1_000_000) {
            let rounds = (5_000_000 / batch).min(100_000);
            let rounds = if plan.options.smoke { 5 } else { rounds };
            let keys = plan.options.keys;
            let words = format!("throughput operator={operator} keys={keys} batch={batch} rounds={rounds}");
            plan.point(operator, (batch as f64, "a round"), &words);
        }
    }
    let kind = Kind::Lines {
        x: "queries on one arrangement",
        y: "a round of 1000 updates",
        metrics: &["round p50", "round p99"],
    };
    let columns = &["attached", "updates", "round p50", "round p99", "round max", "resident"];
    plan.figure("scaling-queries", "A round of 1000 updates by queries on their arrangement (1 worker)", kind, columns);
    for queries in plan.tens(1, 10_000) {
        let rounds = if plan.options.smoke { 3 } else { (1_000_000 / queries).clamp(20, 1000) };
        plan.point("", (queries as f64, "queries"), &format!("attached queries={queries} rounds={rounds}"));
    }
}
