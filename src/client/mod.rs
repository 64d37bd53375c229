//! The client's view: engine, inputs, subscriptions, probes, published arrangements, errors.
#![forbid(unsafe_code)]

mod config;
mod engine;
mod error;
mod hosted;
mod input;
mod metrics;
mod probe;
mod published;
mod query;
mod shared;
pub mod simulation;
mod subscription;
mod waiting;

pub use crate::runtime::MergeState;
pub use config::{Config, InstallOptions};
pub use engine::Engine;
pub use error::Error;
pub use hosted::{HostedWorker, WorkerSeed};
pub use input::Input;
pub use metrics::{ArrangementMetrics, Metrics, QueryBytes, QueryMetrics, Report};
pub use probe::Probe;
pub use published::Published;
pub use query::Query;
pub use subscription::{Changes, Past, Subscription};
