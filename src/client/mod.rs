//! The client's view: engine, inputs, subscriptions, probes, published arrangements, errors.
#![forbid(unsafe_code)]

mod engine;
mod error;
mod input;
mod published;
mod subscription;
mod waiting;

pub use engine::{Config, Engine, HostedWorker, Metrics, Query, QueryBytes, QueryMetrics, Report, WorkerSeed};
pub use error::Error;
pub use input::Input;
pub use published::Published;
pub use subscription::{Changes, Past, Probe, Subscription};
