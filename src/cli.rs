//! The front for a person in a shell.
