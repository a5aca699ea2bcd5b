//! Journeys through the whole: real servers, real sockets, real processes.

#[cfg(target_os = "linux")]
mod processes;
