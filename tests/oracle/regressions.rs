//! Programs that once failed.
