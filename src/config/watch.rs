//! The owner of the last good config.
