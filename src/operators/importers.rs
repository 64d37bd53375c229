//! Who on a worker hears of a published arrangement's batches and ticks.
//!
//! ```text
//! writer ─ data, an end ──▶ told after the quantum: all
//!        └ a tick ────────▶                         those that hear ticks │ every so many ticks: the dozing, too
//! ```
//! A tick is a move of the published upper without data; those of one quantum are one. An importing dataflow dozes while
//! nobody would learn anything from its ticks (`dataflow/doze.rs`). Cost of a tick: the importers that hear it; of
//! dozing or waking, a logarithm.
#![forbid(unsafe_code)]

use crate::dataflow::ImportSource;
use crate::runtime::{DataflowId, Local, Poke};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// What importers have not been told yet; each kind takes in those before it.
#[derive(Copy, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum News {
    #[default]
    Nothing,
    /// The upper moved.
    Tick,
    /// A batch was inserted, or the arrangement has closed.
    Data,
}

#[derive(Default)]
struct Inner {
    writer: u32,
    hearing: RefCell<BTreeSet<(DataflowId, u32)>>,
    dozing: RefCell<BTreeSet<(DataflowId, u32)>>,
    news: Cell<News>,
    /// Of which the dozing were not told.
    ticks: Cell<usize>,
    idle_tick: Cell<usize>,
    tag: RefCell<Option<kpg_arena::Tag>>,
}

/// Who on this worker hears of an arrangement's batches and ticks, and on whose account its bytes are.
#[derive(Clone)]
pub(crate) struct Importers(Rc<Inner>);

impl Importers {
    /// Of what that node writes.
    pub(crate) fn of(writer: u32, local: &Local) -> Self {
        Importers(Rc::new(Inner { writer, idle_tick: Cell::new(local.idle_tick), ..Inner::default() }))
    }

    /// The node that writes.
    pub(crate) fn writer(&self) -> u32 {
        self.0.writer
    }

    /// Has the importers told, after this quantum.
    pub(crate) fn poke(&self, local: &Local, news: News) {
        let inner = &self.0;
        if inner.hearing.borrow().is_empty() && inner.dozing.borrow().is_empty() {
            return;
        }
        let before = inner.news.replace(inner.news.get().max(news));
        if before == News::Nothing {
            local.pokes.borrow_mut().push(inner.clone());
        }
    }

    /// Adds an importer; what is given back lets it doze, and go.
    pub(crate) fn add(&self, dataflow: DataflowId, node: u32) -> Box<dyn ImportSource> {
        self.0.hearing.borrow_mut().insert((dataflow, node));
        Box::new(Importer { inner: self.0.clone(), place: (dataflow, node) })
    }

    /// How many importers there are.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.hearing.borrow().len() + self.0.dozing.borrow().len()
    }

    pub(crate) fn set_tag(&self, tag: kpg_arena::Tag) {
        *self.0.tag.borrow_mut() = Some(tag);
    }

    /// Calls `f`, whose bytes are on the account of what is published, if this is.
    pub(crate) fn on_account<O>(&self, f: impl FnOnce() -> O) -> O {
        match &*self.0.tag.borrow() {
            Some(tag) => tag.scope(f),
            None => f(),
        }
    }
}

impl Poke for Inner {
    fn tell(&self, activate: &mut dyn FnMut(DataflowId, u32)) {
        let mut all = self.news.take() == News::Data;
        self.hearing.borrow().iter().for_each(|(dataflow, node)| activate(*dataflow, *node));
        let dozing = self.dozing.borrow();
        if dozing.is_empty() {
            return;
        }
        self.ticks.set(self.ticks.get() + 1);
        all |= self.ticks.get() >= self.idle_tick.get();
        if all {
            self.ticks.set(0);
            dozing.iter().for_each(|(dataflow, node)| activate(*dataflow, *node));
        }
    }
}

struct Importer {
    inner: Rc<Inner>,
    place: (DataflowId, u32),
}

impl ImportSource for Importer {
    fn set_dozing(&self, dozing: bool) -> bool {
        let (mut hearing, mut dozers) = (self.inner.hearing.borrow_mut(), self.inner.dozing.borrow_mut());
        let (from, to) = if dozing { (&mut *hearing, &mut *dozers) } else { (&mut *dozers, &mut *hearing) };
        from.remove(&self.place);
        to.insert(self.place);
        !dozing && self.inner.ticks.get() > 0
    }
    fn forget(&self) {
        self.inner.hearing.borrow_mut().remove(&self.place);
        self.inner.dozing.borrow_mut().remove(&self.place);
    }
}
