//! The OS keyring and the user's inputs.
