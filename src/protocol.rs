//! The wire contract with editors as Rust types.
