//! A program's dataflow as the engine's. Next stop: `own`, the operators that are written here.
//!
//! Each operator's output is a [`Built`]: a collection, its arrangement once someone asks for it (shared by all who do),
//! or a view of one. Loops go from one time type to the next by [`Nested`]; two deep at most.

use super::own;
use super::program::{D, DOMAIN, Fun, How, JoinFn, Loop, Op, Pred, Reducer};
use kpg::operators::{ArrangedByKey, Imported, Variable as EngineVariable};
use kpg::prelude::*;
use kpg::trace::OrdBatch;
use std::cell::RefCell;
use std::rc::Rc;

type Bag<'s, T> = Collection<'s, T, D>;
type Arr<'s, T> = ArrangedByKey<'s, T, u32, u32, i64>;
/// As imports see it.
pub type Seen<'s, T> = Imported<'s, OrdBatch<u32, u32, T, i64>>;

/// An arrangement, whatever its trace.
trait View<'s, T: Timestamp> {
    fn join_right(&self, left: &Arr<'s, T>, f: JoinFn) -> Bag<'s, T>;
    fn join_left(&self, right: &Arr<'s, T>, f: JoinFn) -> Bag<'s, T>;
    fn reduce(&self, f: Reducer) -> Arr<'s, T>;
    fn flatten(&self) -> Bag<'s, T>;
    fn flat_map(&self, f: Fun, g: Fun) -> Bag<'s, T>;
}

/// A view that joins on either side.
struct Both<A>(A);
/// A view that joins from the right only, to spare half of the code.
struct Right<A>(A);

/// One function, so that all who join the same kinds of arrangements share the code.
fn join_views<'s, T, A, B>(left: &Arranged<'s, A>, right: &Arranged<'s, B>, f: JoinFn, turned: bool) -> Bag<'s, T>
where
    T: Timestamp,
    A: Trace<Key = u32, Val = u32, Time = T, Diff = i64>,
    B: Trace<Key = u32, Val = u32, Time = T, Diff = i64>,
{
    left.join_core(right, move |k, v, w| if turned { f.apply(k, w, v) } else { f.apply(k, v, w) })
}

macro_rules! view {
    ($view:ident, |$this:ident, $right:ident, $f:ident| $left:expr) => {
        impl<'s, T, Tr> View<'s, T> for $view<Arranged<'s, Tr>>
        where
            T: Timestamp,
            Tr: Trace<Key = u32, Val = u32, Time = T, Diff = i64>,
        {
            fn join_right(&self, left: &Arr<'s, T>, f: JoinFn) -> Bag<'s, T> {
                join_views(left, &self.0, f, false)
            }
            fn join_left(&self, right: &Arr<'s, T>, f: JoinFn) -> Bag<'s, T> {
                let ($this, $right, $f) = (&self.0, right, f);
                $left
            }
            fn reduce(&self, f: Reducer) -> Arr<'s, T> {
                self.0.reduce(move |key, vals, output| f.apply(key, vals, output))
            }
            fn flatten(&self) -> Bag<'s, T> {
                self.0.as_collection(|k, v| (k, v))
            }
            fn flat_map(&self, f: Fun, g: Fun) -> Bag<'s, T> {
                self.0.flat_map_ref(move |k, v| [f.apply((k, v)), g.apply((k, v))])
            }
        }
    };
}
view!(Both, |this, right, f| join_views(this, right, f, false));
view!(Right, |this, right, f| join_views(right, this, f, true));

/// What an operator gives.
pub struct Built<'s, T: Timestamp> {
    collection: RefCell<Option<Bag<'s, T>>>,
    arranged: RefCell<Option<Arr<'s, T>>>,
    view: Option<Rc<dyn View<'s, T> + 's>>,
    seen: Option<Seen<'s, T>>,
}

impl<'s, T: Timestamp> Built<'s, T> {
    /// Of updates.
    pub fn collection_of(collection: Bag<'s, T>) -> Self {
        Self::new(collection)
    }
    fn new(collection: Bag<'s, T>) -> Self {
        Built { collection: Some(collection).into(), arranged: None.into(), view: None, seen: None }
    }
    fn arrangement(arranged: Arr<'s, T>) -> Self {
        Built { collection: None.into(), arranged: Some(arranged).into(), view: None, seen: None }
    }
    fn viewed(view: Rc<dyn View<'s, T> + 's>) -> Self {
        Built { collection: None.into(), arranged: None.into(), view: Some(view), seen: None }
    }
    /// An import.
    pub fn imported(seen: Seen<'s, T>) -> Self {
        Built { seen: Some(seen.clone()), ..Self::viewed(Rc::new(Both(seen))) }
    }
    /// The updates.
    pub fn collection(&self) -> Bag<'s, T> {
        let mut collection = self.collection.borrow_mut();
        let make = || match (&self.view, &*self.arranged.borrow()) {
            (Some(view), _) => view.flatten(),
            (None, Some(arranged)) => Right(arranged.clone()).flatten(),
            (None, None) => unreachable!("something was built"),
        };
        collection.get_or_insert_with(make).clone()
    }
    /// Its arrangement, one for all.
    pub fn arranged(&self) -> Arr<'s, T> {
        if let Some(arranged) = &*self.arranged.borrow() {
            return arranged.clone();
        }
        let arranged = self.collection().arrange_by_key();
        *self.arranged.borrow_mut() = Some(arranged.clone());
        arranged
    }
    fn view(&self) -> Rc<dyn View<'s, T> + 's> {
        self.view.clone().unwrap_or_else(|| Rc::new(Right(self.arranged())))
    }
}

type InLoop<T> = Product<T, u32>;

/// What the scopes of a time can hold; what is not said here is left out, to spare code.
pub trait Nested: Timestamp {
    /// The loop's result, given what was built around it.
    fn build_loop<'s>(_: &Scope<'s, Self>, _: &Loop, _: &[Built<'s, Self>]) -> Bag<'s, Self> {
        unreachable!("loops are not that deep")
    }
    /// An arrangement, filtered.
    fn filter<'s>(of: &Built<'s, Self>, p: Pred) -> Built<'s, Self> {
        Built::new(of.collection().filter(move |d| p.holds(d)))
    }
    /// An arrangement, negated.
    fn negate<'s>(of: &Built<'s, Self>) -> Built<'s, Self> {
        Built::new(of.collection().negate())
    }
}

/// What can be imported, and seen from inside a loop.
pub trait Around: Timestamp {
    /// An arrangement from outside.
    fn enter<'s>(of: &Built<'s, Self>, inner: &Scope<'s, InLoop<Self>>) -> Built<'s, InLoop<Self>>;
}

fn filter_view<'s, T: Timestamp>(of: &Built<'s, T>, p: Pred) -> Built<'s, T> {
    Built::viewed(Rc::new(Right(of.arranged().filter(move |k, v| p.holds((k, v))))))
}

fn negate_view<'s, T: Timestamp>(of: &Built<'s, T>) -> Built<'s, T> {
    Built::viewed(Rc::new(Right(of.arranged().negate())))
}

macro_rules! nested {
    ($($time:ty),*) => { $(
        impl Nested for $time {
            fn build_loop<'s>(scope: &Scope<'s, Self>, spec: &Loop, around: &[Built<'s, Self>]) -> Bag<'s, Self> {
                build_loop(scope, spec, around)
            }
            fn filter<'s>(of: &Built<'s, Self>, p: Pred) -> Built<'s, Self> {
                match &of.seen {
                    Some(seen) => Built::viewed(Rc::new(Right(seen.filter(move |k, v| p.holds((k, v)))))),
                    None => filter_view(of, p),
                }
            }
            fn negate<'s>(of: &Built<'s, Self>) -> Built<'s, Self> {
                negate_view(of)
            }
        }
        impl Around for $time {
            fn enter<'s>(of: &Built<'s, Self>, inner: &Scope<'s, InLoop<Self>>) -> Built<'s, InLoop<Self>> {
                match &of.seen {
                    Some(seen) => Built::viewed(Rc::new(Both(seen.enter(inner)))),
                    None => Built::viewed(Rc::new(Both(of.arranged().enter(inner)))),
                }
            }
        }
    )* }
}
nested!(u64, Pair<u64, u64>);

impl Nested for InLoop<u64> {
    fn build_loop<'s>(scope: &Scope<'s, Self>, spec: &Loop, around: &[Built<'s, Self>]) -> Bag<'s, Self> {
        build_loop(scope, spec, around)
    }
    fn filter<'s>(of: &Built<'s, Self>, p: Pred) -> Built<'s, Self> {
        filter_view(of, p)
    }
    fn negate<'s>(of: &Built<'s, Self>) -> Built<'s, Self> {
        negate_view(of)
    }
}
impl Nested for InLoop<Pair<u64, u64>> {
    fn build_loop<'s>(scope: &Scope<'s, Self>, spec: &Loop, around: &[Built<'s, Self>]) -> Bag<'s, Self> {
        build_loop(scope, spec, around)
    }
}
impl Nested for InLoop<InLoop<u64>> {}
impl Nested for InLoop<InLoop<Pair<u64, u64>>> {}

macro_rules! around {
    ($($time:ty),*) => { $(
        impl Around for $time {
            fn enter<'s>(of: &Built<'s, Self>, inner: &Scope<'s, InLoop<Self>>) -> Built<'s, InLoop<Self>> {
                Built::viewed(Rc::new(Right(of.arranged().enter(inner))))
            }
        }
    )* }
}
around!(InLoop<u64>, InLoop<Pair<u64, u64>>);

fn build_loop<'s, T: Around>(scope: &Scope<'s, T>, spec: &Loop, around: &[Built<'s, T>]) -> Bag<'s, T>
where
    InLoop<T>: Nested,
{
    if spec.iterate {
        let Op::Enter(source) = spec.body[0] else { unreachable!("the body of an iterate starts with its source") };
        return around[source].collection().iterate(|inner, variable| {
            let mut variables = vec![(1, None)];
            let start = vec![Built::new(around[source].collection().enter(inner)), Built::new(variable.clone())];
            let built = body(inner, spec, around, start, &mut variables);
            built[spec.sets[0].1].collection()
        });
    }
    scope.iterative(|inner| {
        let mut variables = Vec::new();
        let built = body(inner, spec, around, Vec::new(), &mut variables);
        for (at, variable) in variables {
            let (_, value) = spec.sets.iter().find(|(v, _)| *v == at).expect("each variable is set");
            let value = built[*value].collection();
            let value = match spec.limit {
                Some(limit) => limited(&value, limit),
                None => value,
            };
            variable.expect("made by the body").set(&value);
        }
        let leaving: Vec<_> = spec.leaves.iter().map(|at| built[*at].collection()).collect();
        Collection::concat_all(&leaving).leave()
    })
}

/// Without the updates of the rounds from `limit` on.
fn limited<'s, T: Timestamp>(collection: &Bag<'s, InLoop<T>>, limit: u32) -> Bag<'s, InLoop<T>> {
    collection.unary("limit", move |input, output, _| {
        while let Some((token, chunk)) = input.next() {
            let mut session = output.session(&token);
            chunk.iter().filter(|(_, t, _)| t.inner < limit).for_each(|(d, t, r)| session.give(d, t, r));
        }
        false
    })
}

type Variables<'s, T> = Vec<(usize, Option<EngineVariable<'s, T, u32, D, i64>>)>;

fn body<'s, T: Around>(
    inner: &Scope<'s, InLoop<T>>,
    spec: &Loop,
    around: &[Built<'s, T>],
    mut built: Vec<Built<'s, InLoop<T>>>,
    variables: &mut Variables<'s, T>,
) -> Vec<Built<'s, InLoop<T>>>
where
    InLoop<T>: Nested,
{
    for op in &spec.body[built.len()..] {
        let next = match op {
            Op::Enter(of) => Built::new(around[*of].collection().enter(inner)),
            Op::EnterAt(of, rounds) => {
                let rounds = (*rounds).max(1);
                Built::new(around[*of].collection().enter_at(inner, move |(k, _)| k % rounds))
            }
            Op::EnterArranged(of) => T::enter(&around[*of], inner),
            Op::Variable { source, eager } => {
                let source = source.map(|at: usize| built[at].collection());
                let variable = match source {
                    None => EngineVariable::new(inner),
                    Some(source) if *eager => EngineVariable::eager(&source),
                    Some(source) => EngineVariable::new_from(&source),
                };
                let collection = variable.collection();
                variables.push((built.len(), Some(variable)));
                Built::new(collection)
            }
            op => build_op(inner, op, &built, &|time| *time),
        };
        built.push(next);
    }
    built
}

/// Any operator but sources and those of loops' bodies. `delay` is what a `Delay` does to times.
pub fn build_op<'s, T: Nested>(
    scope: &Scope<'s, T>,
    op: &Op,
    built: &[Built<'s, T>],
    delay: &(impl Fn(&T) -> T + Clone + 'static),
) -> Built<'s, T> {
    let of = |at: &usize| built[*at].collection();
    Built::new(match op {
        Op::Map(a, f) => {
            let f = *f;
            of(a).map(move |d| f.apply(d))
        }
        Op::FlatMap(a, f, g) => {
            let (f, g) = (*f, *g);
            of(a).flat_map(move |d| [f.apply(d), g.apply(d)])
        }
        Op::Filter(a, p) => {
            let p = *p;
            of(a).filter(move |d| p.holds(d))
        }
        Op::Negate(a) => of(a).negate(),
        Op::Concat(all) => match &all[..] {
            [a, b] => of(a).concat(&of(b)),
            all => Collection::concat_all(&all.iter().map(of).collect::<Vec<_>>()),
        },
        Op::Explode(a, f, factors) => {
            let (f, factors) = (*f, *factors);
            of(a).explode(move |d| [(f.apply(d), factors[d.0 as usize % 3]), (d, factors[d.1 as usize % 3])])
        }
        Op::Consolidate(a) => of(a).consolidate(),
        Op::Inspect(a) => of(a).inspect(|(k, v), _, r| assert!(k < DOMAIN && v < DOMAIN && r != 0, "({k}, {v}), {r}")),
        Op::Delay { of: a, .. } => {
            let delay = delay.clone();
            of(a).delay(move |t| delay(t))
        }
        Op::ViewFilter(a, p) => return T::filter(&built[*a], *p),
        Op::ViewNegate(a) => return T::negate(&built[*a]),
        Op::Flatten(a) => built[*a].view().flatten(),
        Op::FlatMapRef(a, f, g) => built[*a].view().flat_map(*f, *g),
        Op::Notified(a) => own::notified(&of(a)),
        Op::Difference(a, b) => own::difference(&of(a), &of(b)),
        Op::Join(a, b, f, how) => {
            let f = *f;
            match how {
                How::Collections => of(a).join(&of(b)).flat_map(move |d| of_join(f, d)),
                How::Arranged => of(a).join_arranged(&built[*b].arranged()).flat_map(move |d| of_join(f, d)),
                How::Core => join_views(&built[*a].arranged(), &built[*b].arranged(), f, false),
                How::ViewRight => built[*b].view().join_right(&built[*a].arranged(), f),
                How::ViewLeft => built[*a].view().join_left(&built[*b].arranged(), f),
                How::Own => own::join(&built[*a].arranged(), &built[*b].arranged(), f),
            }
        }
        Op::Semijoin(a, b) => of(a).semijoin(&of(b).map(|(k, _)| k)),
        Op::Antijoin(a, b) => of(a).antijoin(&of(b).map(|(k, _)| k)),
        Op::Reduce(a, f) => return Built::arrangement(built[*a].view().reduce(*f)),
        Op::Count(a) => of(a).count().map(|(d, count)| super::naive::counted(d, count)),
        Op::Distinct(a) => of(a).distinct(),
        Op::CountByReduce(a) => of(a).arrange_by_self().count_arranged().as_collection(super::naive::counted),
        Op::DistinctByReduce(a) => {
            let counts = of(a).arrange_by_self();
            let once = counts.threshold_arranged("distinct", |_, count| i64::from(count > 0));
            once.as_collection(|datum, ()| datum)
        }
        Op::Threshold(a, level) => {
            let level = *level;
            of(a).threshold(move |_, count| level.apply(count))
        }
        Op::Loop(spec) => T::build_loop(scope, spec, built),
        other => unreachable!("{other:?} is no operator of this scope"),
    })
}

fn of_join(f: JoinFn, (k, (v, w)): (u32, (u32, u32))) -> Option<D> {
    f.apply(k, v, w)
}
