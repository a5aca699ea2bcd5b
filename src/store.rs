//! The state database, owned by one thread.
