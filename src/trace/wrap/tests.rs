//! Views against naive ones.
