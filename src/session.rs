//! How a front meets its engine.
