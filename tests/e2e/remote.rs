//! Remote servers: what works, and what every fault on the way looks like to the one who asked.

mod faults;
mod issuer;
mod legacy;
mod mock;
#[cfg(unix)]
mod paste;
mod peer;
mod signin;
mod signin_editor;
mod streams;
