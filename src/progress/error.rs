//! Why a graph is refused, by the names its builder gave.

use std::fmt;

/// A graph that could not be tracked, or whose loops could never be declared finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GraphError {
    /// A cycle on which no time grows: without a feedback in its scope, or with one that steps by 0.
    NotAdvancing {
        /// The locations on the cycle, in order.
        cycle: Vec<String>,
    },
    /// What leaves a scope enters it again without a feedback of an outer scope.
    Reenters {
        /// The scope.
        scope: String,
        /// Where it is left.
        from: String,
        /// Where it is entered again.
        to: String,
    },
    /// A summary that is none between its two scopes: wrong counts of coordinates, or one kept in a foreign scope.
    Shape {
        /// The edge's source.
        from: String,
        /// The edge's target.
        to: String,
    },
    /// A scope whose times have more than [`MAX_COORDINATES`](crate::order::MAX_COORDINATES) coordinates.
    TooDeep {
        /// The scope.
        scope: String,
    },
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GraphError::NotAdvancing { cycle } => {
                write!(f, "a cycle on which no time grows could never finish: ")?;
                for name in cycle {
                    write!(f, "{name} -> ")?;
                }
                write!(f, "{}; a feedback must step by at least 1", cycle.first().map_or("", String::as_str))
            }
            GraphError::Reenters { scope, from, to } => write!(
                f,
                "what leaves scope {scope} at {from} enters it again at {to} without a feedback of an outer scope"
            ),
            GraphError::Shape { from, to } => {
                write!(f, "the summary from {from} to {to} does not fit the scopes of the two")
            }
            GraphError::TooDeep { scope } => write!(
                f,
                "scope {scope} is nested too deep: its times would have more than {} coordinates",
                crate::order::MAX_COORDINATES
            ),
        }
    }
}

impl std::error::Error for GraphError {}
