//! Runs a program in an engine and compares all that it delivers with the naive evaluator.
//!
//! Compared for each output, at each time once it is complete: the accumulation of what was delivered. Checked of what
//! is delivered: no zero, nothing twice, nothing at a time that was complete before. A snapshot of a published
//! arrangement is compared at its time.

use super::build::{Built, Nested, build_op};
use super::generate::points;
use super::naive::{Bag, Mutant, Naive, add, before, delayed, join};
use super::program::{D, Event, Flow, Op, Program, Time};
use super::rng::Rng;
use kpg::client::HostedWorker;
use kpg::operators::PublishedStream;
use kpg::prelude::*;
use kpg::simulation::Simulation;
use std::collections::BTreeMap;
use std::time::Duration;

/// Past all times of a program.
const FAR: Time = (1 << 40, 0);

/// Times outside of loops.
pub trait Root: Nested {
    fn make(time: Time) -> Self;
    fn read(self) -> Time;
}
impl Root for u64 {
    fn make(time: Time) -> Self {
        time.0
    }
    fn read(self) -> Time {
        (self, 0)
    }
}
impl Root for Pair<u64, u64> {
    fn make(time: Time) -> Self {
        Pair::new(time.0, time.1)
    }
    fn read(self) -> Time {
        (self.first, self.second)
    }
}

/// One output: what was delivered of it.
struct Output<T: Root> {
    op: usize,
    subscription: Subscription<T, D>,
    delivered: BTreeMap<(Time, D), i64>,
    /// The times at which it was compared.
    compared: Vec<bool>,
    through: Antichain<T>,
    /// What it delivers may be summed over time.
    coalesces: bool,
}

struct Live<T: Root> {
    query: Option<Query>,
    inputs: Vec<Vec<Option<Input<T, D>>>>,
    outputs: Vec<Output<T>>,
    published: Vec<(usize, Published<u32, u32, T>)>,
    streams: Vec<(usize, PublishedStream<T, D>)>,
}

/// What a flow gives.
struct Handles<T: Root> {
    inputs: Vec<Input<T, D>>,
    timer: Input<T, D>,
    outputs: Vec<Subscription<T, D>>,
    published: Vec<Published<u32, u32, T>>,
    streams: Vec<PublishedStream<T, D>>,
}

/// An engine that runs a program.
struct Run<'p, T: Root> {
    program: &'p Program,
    naive: Naive<'p>,
    flows: Vec<Option<Live<T>>>,
    engine: Engine,
    workers: Vec<HostedWorker>,
    rng: Rng,
    points: Vec<Time>,
    /// How long anything is waited for.
    patience: Duration,
}

/// Runs a program; says what was wrong. A mutant is for canaries.
pub fn run(program: &Program, mutant: Option<Mutant>, patience: Duration) -> Result<(), String> {
    run_in(program, mutant, patience, program.simulated.map(Simulation::new))
}

/// As `run`, in this simulation, or on threads.
pub fn run_in(
    program: &Program,
    mutant: Option<Mutant>,
    patience: Duration,
    simulation: Option<Simulation>,
) -> Result<(), String> {
    match program.dimensions {
        1 => Run::<u64>::new(program, mutant, patience, simulation)?.all(),
        _ => Run::<Pair<u64, u64>>::new(program, mutant, patience, simulation)?.all(),
    }
}

impl<'p, T: Root> Run<'p, T> {
    fn new(
        program: &'p Program,
        mutant: Option<Mutant>,
        patience: Duration,
        simulation: Option<Simulation>,
    ) -> Result<Self, String> {
        let policy = if program.eager_merges { MergePolicy::eager() } else { MergePolicy::lazy() };
        let config = Config::default().workers(program.workers).pinned(false).merge_policy(policy);
        let config = config.install_timeout(patience).quantum(program.quantum);
        let (engine, workers) = match simulation {
            Some(simulation) => simulation.config(config).start().map_err(|e| e.to_string())?.into_parts(),
            None => (Engine::start(config).map_err(|e| e.to_string())?, Vec::new()),
        };
        let mut naive = Naive::new(program);
        naive.mutant = mutant;
        let flows = program.flows.iter().map(|_| None).collect();
        let rng = Rng::new(program.simulated.unwrap_or(0));
        Ok(Run { program, naive, flows, engine, workers, rng, points: points(program), patience })
    }

    fn all(mut self) -> Result<(), String> {
        for (index, (flow, event)) in self.program.events.iter().enumerate() {
            self.event(*flow, *event).map_err(|e| format!("event {index}, {event:?} on {flow}: {e}"))?;
        }
        for flow in 0..self.flows.len() {
            self.finish(flow).map_err(|e| format!("at the end, flow {flow}: {e}"))?;
        }
        if self.workers.is_empty() {
            self.flows.clear();
            self.engine.shutdown(self.patience).map_err(|e| format!("shutdown: {e}"))?;
        }
        Ok(())
    }

    fn event(&mut self, flow: usize, event: Event) -> Result<(), String> {
        match event {
            Event::Install(flow) => return self.install(flow),
            Event::Step(count) => {
                self.step(count);
                return Ok(());
            }
            _ => {}
        }
        if self.flows[flow].is_none() {
            return Ok(());
        }
        match event {
            Event::Poll => self.poll(flow),
            Event::Wait => self.wait(flow),
            Event::Snapshot => self.snapshot(flow),
            Event::Retire(_) => self.retire(flow, false),
            Event::RetireCascade(_) => self.retire(flow, true),
            event => self.session_event(flow, event).map_err(|e| e.to_string()),
        }
    }

    fn session_event(&mut self, flow: usize, event: Event) -> Result<(), Error> {
        let first = self.naive.firsts[flow].expect("it is installed");
        let live = self.flows[flow].as_mut().expect("it is installed");
        let at = |time: Time| T::make(join(time, first));
        let (Event::Update { input, .. }
        | Event::Advance { input, .. }
        | Event::Clone { input }
        | Event::Close { input, .. }
        | Event::Flush { input, .. }) = event
        else {
            unreachable!("all others are about no session")
        };
        let sessions = &mut live.inputs[input];
        // A program made smaller may have lost a retirement, and so ask for times that are past.
        let open = |session: usize| match (sessions.get(session), event) {
            (Some(Some(session)), Event::Update { time, .. } | Event::Advance { time, .. }) => {
                before(session.time().read(), at(time).read())
            }
            (session, _) => session.is_some_and(Option::is_some),
        };
        match event {
            Event::Update { session, datum, time, diff, .. } if open(session) => {
                sessions[session].as_mut().expect("just seen").update_at(datum, at(time), diff)?;
                self.naive.update(flow, input, datum, at(time).read(), diff);
            }
            Event::Advance { session, time, .. } if open(session) => {
                sessions[session].as_mut().expect("just seen").advance_to(at(time))?;
            }
            Event::Flush { session, .. } if open(session) => sessions[session].as_mut().expect("just seen").flush()?,
            Event::Close { session, .. } if open(session) => sessions[session] = None,
            Event::Clone { .. } => {
                // None, too, keeps the numbers as the program has them.
                let clone = sessions[0].clone();
                sessions.push(clone);
            }
            _ => {}
        }
        Ok(())
    }

    fn step(&mut self, count: usize) {
        if self.workers.is_empty() {
            std::thread::sleep(Duration::from_micros(10 * count as u64));
        }
        for _ in 0..if self.workers.is_empty() { 0 } else { count } {
            let worker = self.rng.below(self.workers.len());
            self.workers[worker].step();
        }
    }

    fn install(&mut self, flow: usize) -> Result<(), String> {
        let program = self.program;
        let spec = &program.flows[flow];
        if self.flows[flow].is_some() || spec.sources().any(|source| self.flows[source].is_none()) {
            return Ok(());
        }
        let flows = &self.flows;
        let live = |flow: usize| flows[flow].as_ref().expect("just seen");
        let built = self
            .engine
            .install_at::<T, Handles<T>, _>(&format!("flow {flow}"), |scope| build(scope, program, spec, &live));
        let (query, handles) = built.map_err(|e| e.to_string())?;
        let Handles { inputs, timer, outputs, published, streams } = handles;
        self.naive.start(flow, timer.time().read());
        let count = self.points.len();
        let outputs = spec.outputs.iter().zip(outputs).map(|(op, subscription)| Output {
            op: *op,
            subscription,
            delivered: BTreeMap::new(),
            compared: vec![false; count],
            through: Antichain::from_elem(T::minimum()),
            coalesces: T::TOTAL && program.capacity.is_some(),
        });
        self.flows[flow] = Some(Live {
            query: Some(query),
            inputs: inputs.into_iter().map(|input| vec![Some(input)]).collect(),
            outputs: outputs.collect(),
            published: spec.publishes.iter().copied().zip(published).collect(),
            streams: spec.streams.iter().copied().zip(streams).collect(),
        });
        Ok(())
    }

    /// Whether all that a flow depends on has passed a time.
    fn passed(&self, flow: usize, time: Time) -> bool {
        let Some(live) = &self.flows[flow] else { return false };
        let sessions = live.inputs.iter().flatten().flatten();
        let mut sources = self.program.flows[flow].sources();
        sessions.into_iter().all(|s| !before(s.time().read(), time)) && sources.all(|s| self.passed(s, time))
    }

    fn wait(&mut self, flow: usize) -> Result<(), String> {
        let passed: Vec<_> = self.points.iter().copied().filter(|t| self.passed(flow, *t)).collect();
        if passed.is_empty() {
            return Ok(());
        }
        let time = *self.rng.pick(&passed);
        let live = self.flows[flow].as_mut().expect("what has passed a time was installed");
        for output in &mut live.outputs {
            let changes = output.subscription.wait_past(&T::make(time), self.patience);
            let changes = changes.map_err(|e| format!("output {} does not pass {time:?}: {e}", output.op))?;
            let through = changes.through().clone();
            if through.less_equal(&T::make(time)) {
                return Err(format!("output {}: waited past {time:?}, got through {through:?}", output.op));
            }
            output.take(&through, changes.into_vec())?;
            output.compare_through(&mut self.naive, flow, &self.points, &through)?;
        }
        Ok(())
    }

    fn poll(&mut self, flow: usize) -> Result<(), String> {
        let live = self.flows[flow].as_mut().expect("seen before");
        for output in &mut live.outputs {
            let changes = output.subscription.poll().map_err(|e| format!("output {}: {e}", output.op))?;
            let through = changes.through().clone();
            output.take(&through, changes.into_vec())?;
            output.compare_through(&mut self.naive, flow, &self.points, &through)?;
        }
        Ok(())
    }

    fn snapshot(&mut self, flow: usize) -> Result<(), String> {
        let passed: Vec<_> = self.points.iter().copied().filter(|t| self.passed(flow, *t)).collect();
        let live = self.flows[flow].as_ref().expect("seen before");
        for (op, published) in &live.published {
            let snapshot = match passed.last() {
                Some(time) if self.rng.chance(50) => published.wait_snapshot(&T::make(*time), self.patience),
                _ => published.snapshot(),
            };
            let snapshot = match snapshot {
                Ok(snapshot) => snapshot,
                Err(Error::NotYet { .. } | Error::Compacted { .. }) => continue,
                Err(error) => return Err(format!("snapshot of {op}: {error}")),
            };
            let time = snapshot.time().read();
            let mut got = Bag::new();
            snapshot.iter().for_each(|(k, v, r)| add(&mut got, (k, v), r));
            // A flow that began late may hold more than its program was looked through for.
            let Ok(expected) = self.naive.value(flow, *op, time) else { continue };
            differ(&expected, &got).map_or(Ok(()), |text| Err(format!("snapshot of {op} at {time:?}: {text}")))?;
        }
        Ok(())
    }

    fn retire(&mut self, flow: usize, cascade: bool) -> Result<(), String> {
        let importers: Vec<_> = (0..self.flows.len())
            .filter(|other| self.flows[*other].is_some() && self.program.flows[*other].sources().any(|s| s == flow))
            .collect();
        if !importers.is_empty() && !cascade {
            return Ok(());
        }
        let mut live = self.flows[flow].take().expect("seen before");
        let query = live.query.take().expect("retired once");
        let retired = if cascade { query.retire_cascade() } else { query.retire() };
        retired.map_err(|e| format!("retire: {e}"))?;
        self.after_end(flow, live)?;
        let mut ended = importers;
        while let Some(flow) = ended.pop() {
            let Some(live) = self.flows[flow].take() else { continue };
            self.after_end(flow, live)?;
            ended.extend((0..self.flows.len()).filter(|other| self.program.flows[*other].sources().any(|s| s == flow)));
        }
        Ok(())
    }

    fn after_end(&mut self, flow: usize, mut live: Live<T>) -> Result<(), String> {
        for output in &mut live.outputs {
            // What is left must be right, all the same.
            match output.subscription.poll() {
                Ok(changes) => {
                    let through = changes.through().clone();
                    output.take(&through, changes.into_vec())?;
                    output.compare_through(&mut self.naive, flow, &self.points, &through)?;
                }
                Err(Error::Retired { .. } | Error::SourceEnded { .. }) => {}
                Err(error) => return Err(format!("after it was retired: {error}")),
            }
        }
        Ok(())
    }

    fn finish(&mut self, flow: usize) -> Result<(), String> {
        let Some(live) = &mut self.flows[flow] else { return Ok(()) };
        let last = *self.points.last().expect("there are times");
        for output in &mut live.outputs {
            let changes = output.subscription.wait_past(&T::make(last), self.patience);
            let changes = changes.map_err(|e| format!("output {} does not pass {last:?}: {e}", output.op))?;
            let through = changes.through().clone();
            output.take(&through, changes.into_vec())?;
            output.compare_through(&mut self.naive, flow, &self.points, &through)?;
        }
        for (op, published) in &live.published {
            let snapshot = published.wait_snapshot(&T::make(last), self.patience);
            if let Err(error) = snapshot
                && !matches!(error, Error::Compacted { .. })
            {
                return Err(format!("the last snapshot of {op}: {error}"));
            }
        }
        Ok(())
    }
}

fn build<'s, 'l, T: Root>(
    scope: &Scope<'s, T>,
    program: &Program,
    flow: &Flow,
    live: &dyn Fn(usize) -> &'l Live<T>,
) -> Handles<T> {
    let missing = "only what is published is imported";
    let (mut inputs, mut built) = (Vec::new(), Vec::<Built<'s, T>>::new());
    let (timer, _) = scope.input::<D>();
    for op in &flow.ops {
        built.push(match op {
            Op::Input(_) => {
                let (input, collection) = scope.input::<D>();
                inputs.push(input);
                Built::collection_of(collection)
            }
            Op::Constant(data) => Built::collection_of(scope.constant(data.clone())),
            Op::Import { flow, op } => {
                let (_, published) = live(*flow).published.iter().find(|(p, _)| p == op).expect(missing);
                Built::imported(published.import(scope))
            }
            Op::ImportStream { flow, op } => {
                let (_, stream) = live(*flow).streams.iter().find(|(p, _)| p == op).expect(missing);
                Built::collection_of(stream.import(scope))
            }
            op => {
                let (dimensions, (add, round)) = match op {
                    Op::Delay { add, round, .. } => (program.dimensions, (*add, *round)),
                    _ => (1, (0, 1)),
                };
                build_op(scope, op, &built, &move |t: &T| T::make(delayed(t.read(), dimensions, add, round)))
            }
        });
    }
    let subscribe = |op: &usize| match program.capacity {
        Some(capacity) => built[*op].collection().subscribe_bounded(capacity),
        None => built[*op].collection().subscribe(),
    };
    let outputs = flow.outputs.iter().map(subscribe).collect();
    let published = flow.publishes.iter().map(|op| built[*op].arranged().publish()).collect();
    let streams = flow.streams.iter().map(|op| built[*op].collection().publish_stream()).collect();
    Handles { inputs, timer, outputs, published, streams }
}

impl<T: Root> Output<T> {
    fn take(&mut self, through: &Antichain<T>, changes: Vec<(D, T, i64)>) -> Result<(), String> {
        for (datum, time, diff) in changes {
            let fault = |what: &str| Err(format!("output {}: ({datum:?}, {time:?}, {diff}) {what}", self.op));
            if diff == 0 {
                return fault("is no change");
            }
            if through.less_equal(&time) {
                return fault("is not complete");
            }
            if !self.through.less_equal(&time) {
                return fault("comes after its time was complete");
            }
            if self.delivered.insert((time.read(), datum), diff).is_some() {
                return fault("comes twice");
            }
        }
        if !self.through.before_equal(through) {
            return Err(format!("output {}: went through {:?}, now {through:?}", self.op, self.through));
        }
        self.through = through.clone();
        Ok(())
    }

    /// Compares at each time not beyond `through`; what is summed over time, at the last of all such times.
    fn compare_through(
        &mut self,
        naive: &mut Naive,
        flow: usize,
        points: &[Time],
        through: &Antichain<T>,
    ) -> Result<(), String> {
        if !self.coalesces {
            return self.compare(naive, flow, points, |t| !through.less_equal(&T::make(t)));
        }
        let last = through.as_single().map_or(FAR, |t| (t.read().0.wrapping_sub(1), 0));
        if last.0 == u64::MAX {
            return Ok(());
        }
        self.compared = vec![false];
        self.compare(naive, flow, &[last], |_| true)
    }

    /// Compares at the times chosen, each once.
    fn compare(
        &mut self,
        naive: &mut Naive,
        flow: usize,
        points: &[Time],
        chosen: impl Fn(Time) -> bool,
    ) -> Result<(), String> {
        for (index, time) in points.iter().enumerate().filter(|(_, t)| chosen(**t)) {
            let first = naive.firsts[flow].expect("it was installed");
            if std::mem::replace(&mut self.compared[index], true) || !before(first, *time) {
                continue;
            }
            let mut got = Bag::new();
            for ((t, d), r) in &self.delivered {
                if before(*t, *time) {
                    add(&mut got, *d, *r);
                }
            }
            let Ok(expected) = naive.value(flow, self.op, *time) else { continue };
            if let Some(text) = differ(&expected, &got) {
                return Err(format!("output {} at {time:?} (first {first:?}): {text}", self.op));
            }
        }
        Ok(())
    }
}

/// The first difference of two accumulations.
fn differ(expected: &Bag, got: &Bag) -> Option<String> {
    let data = expected.keys().chain(got.keys());
    let count = |bag: &Bag, d: &D| bag.get(d).copied().unwrap_or(0);
    let datum = data.filter(|d| count(expected, d) != count(got, d)).min()?;
    Some(format!("{datum:?} is expected {} times, got {}", count(expected, datum), count(got, datum)))
}
