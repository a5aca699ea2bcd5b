//! The only place that knows key names.
