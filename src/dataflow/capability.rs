//! Capabilities: the right to send at a timestamp or later, from one output port.
//!
//! A capability is counted at its output port as long as it lives; dropping the last one at a time, from anywhere on
//! its worker, schedules the dataflow, so that those downstream hear of it.
#![forbid(unsafe_code)]

use super::core::{Core, Stamp};
use crate::order::{Antichain, Coords, Timestamp};
use crate::progress::Location;
use crate::runtime::Failure;
use std::fmt;
use std::rc::Rc;

/// The right to send at `time()` or later, from one output port.
pub struct Capability<T: Timestamp> {
    time: T,
    location: Location,
    core: Rc<Core>,
}

/// A time asked of a capability that does not reach it, or a port that it isn't for.
#[derive(Clone, Debug, PartialEq)]
pub struct NotHeld(pub String);

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for NotHeld {}

impl<T: Timestamp> Capability<T> {
    /// A capability that is counted from now on.
    pub(crate) fn mint(time: T, location: Location, core: &Rc<Core>) -> Self {
        core.count_held(location, time.to_coords(), 1);
        Capability { time, location, core: core.clone() }
    }

    /// A capability that every replica has counted since its birth.
    pub(crate) fn born(time: T, location: Location, core: &Rc<Core>) -> Self {
        let capability = Self::mint(time, location, core);
        core.count(location, time.to_coords(), -1);
        capability
    }

    /// The time.
    #[inline]
    pub fn time(&self) -> &T {
        &self.time
    }

    pub(crate) fn location(&self) -> Location {
        self.location
    }

    /// A capability for a later time.
    ///
    /// # Errors
    /// If `time` is not at or after this one's.
    pub fn delayed(&self, time: &T) -> Result<Self, NotHeld> {
        if self.time.less_equal(time) {
            Ok(Self::mint(*time, self.location, &self.core))
        } else {
            Err(self.not_held(time))
        }
    }

    /// Gives up all but `time` and later.
    ///
    /// # Errors
    /// If `time` is not at or after this one's; the capability stays as it is.
    pub fn downgrade(&mut self, time: &T) -> Result<(), NotHeld> {
        if !self.time.less_equal(time) {
            return Err(self.not_held(time));
        }
        if *time != self.time {
            self.core.count(self.location, time.to_coords(), 1);
            self.core.count(self.location, self.time.to_coords(), -1);
            self.time = *time;
        }
        Ok(())
    }

    fn not_held(&self, time: &T) -> NotHeld {
        NotHeld(format!(
            "a capability at {:?} does not reach {time:?}: keep one at or before each time you will send at",
            self.time
        ))
    }
}

impl<T: Timestamp> Clone for Capability<T> {
    fn clone(&self) -> Self {
        Self::mint(self.time, self.location, &self.core)
    }
}

impl<T: Timestamp> Drop for Capability<T> {
    fn drop(&mut self) {
        self.core.count_held(self.location, self.time.to_coords(), -1);
    }
}

impl<T: Timestamp> fmt::Debug for Capability<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capability({:?})", self.time)
    }
}

/// Capabilities of one port at mutually incomparable times.
#[derive(Debug)]
pub struct CapabilitySet<T: Timestamp> {
    elements: Vec<Capability<T>>,
}

impl<T: Timestamp> Default for CapabilitySet<T> {
    fn default() -> Self {
        CapabilitySet { elements: Vec::new() }
    }
}

impl<T: Timestamp> CapabilitySet<T> {
    /// No capability.
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds one, unless it adds nothing.
    pub fn insert(&mut self, capability: Capability<T>) {
        if !self.elements.iter().any(|c| c.time.less_equal(&capability.time)) {
            self.elements.retain(|c| !capability.time.less_equal(&c.time));
            self.elements.push(capability);
        }
    }
    /// The capabilities.
    pub fn elements(&self) -> &[Capability<T>] {
        &self.elements
    }
    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
    /// Their times.
    pub fn frontier(&self) -> Antichain<T> {
        self.elements.iter().map(|c| c.time).collect()
    }
    /// Drops all.
    pub fn clear(&mut self) {
        self.elements.clear();
    }
    pub(crate) fn stamp(&self) -> Stamp {
        self.elements.iter().map(|c| c.time.to_coords()).collect()
    }
    /// A capability for `time`.
    ///
    /// # Errors
    /// If none reaches it.
    pub fn delayed(&self, time: &T) -> Result<Capability<T>, NotHeld> {
        match self.elements.iter().find(|c| c.time.less_equal(time)) {
            Some(capability) => capability.delayed(time),
            None => Err(NotHeld(format!(
                "no capability reaches {time:?} (held: {:?}): keep one at or before each time you will send at",
                self.frontier()
            ))),
        }
    }
    /// Holds just the times of `frontier`.
    ///
    /// # Errors
    /// If one of them is not reached; nothing changes then.
    pub fn downgrade(&mut self, frontier: &Antichain<T>) -> Result<(), NotHeld> {
        if let ([one], [time]) = (&mut self.elements[..], frontier.elements()) {
            return one.downgrade(time);
        }
        let mut elements = Vec::with_capacity(frontier.len());
        for time in frontier.elements() {
            elements.push(self.delayed(time)?);
        }
        self.elements = elements;
        Ok(())
    }
    /// As `downgrade`, inside a node, where failing is the operator's error and ends its query.
    pub(crate) fn must_downgrade(&mut self, frontier: &Antichain<T>) {
        if let Err(error) = self.downgrade(frontier) {
            Failure::NotHeld(error.0).raise();
        }
    }
}

/// The stamp of a message just taken: lets a node send at its times within the step, or retain capabilities.
#[derive(Clone)]
pub struct Token<T: Timestamp> {
    pub(crate) stamp: Stamp,
    pub(crate) core: Rc<Core>,
    // Only outputs to which the input is connected; as summaries of the one coordinate change a node may make.
    pub(crate) connected: Rc<[(Location, crate::progress::Summary)]>,
    pub(crate) maxima: Rc<[u64; crate::order::MAX_COORDINATES]>,
    pub(crate) marker: std::marker::PhantomData<T>,
}

impl<T: Timestamp> Token<T> {
    /// The message's times, as they can be sent at from `output`.
    pub(crate) fn times_at(&self, output: Location) -> Vec<Coords> {
        let summary = self.connected.iter().find(|(location, _)| *location == output).map(|(_, summary)| summary);
        match summary {
            Some(summary) => self.stamp.elements().iter().filter_map(|t| summary.apply(t, &self.maxima)).collect(),
            None => Failure::NotHeld("this input is not connected to that output port".to_string()).raise(),
        }
    }

    /// The message's times.
    pub fn times(&self) -> Antichain<T> {
        super::core::typed(&self.stamp)
    }

    /// Adds capabilities at the message's times, for an output port, to `set`.
    pub(crate) fn retain_at<T2: Timestamp>(&self, output: Location, set: &mut CapabilitySet<T2>) {
        for time in self.times_at(output) {
            let time = T2::from_coords(&time);
            if !set.elements.iter().any(|c| c.time.less_equal(&time)) {
                set.insert(Capability::mint(time, output, &self.core));
            }
        }
    }
}
