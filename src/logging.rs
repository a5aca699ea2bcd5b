//! Tracing to a daily file.
