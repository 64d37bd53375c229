//! The client's view: engine, inputs, subscriptions, probes, published arrangements, errors.
#![forbid(unsafe_code)]

mod engine;
mod error;
mod input;
mod metrics;
mod published;
mod subscription;
mod waiting;

pub use engine::{Config, Engine, HostedWorker, Query, WorkerSeed};
pub use error::Error;
pub use input::Input;
pub use metrics::{Metrics, QueryBytes, QueryMetrics, Report};
pub use published::Published;
pub use subscription::{Changes, Past, Probe, Subscription};
