//! Remote servers: what works, and what every fault on the way looks like to the one who asked.

mod faults;
mod legacy;
mod mock;
mod peer;
mod signin;
mod streams;
