//! What may run and what may start. Pure.

pub mod permit;
pub mod trust;
