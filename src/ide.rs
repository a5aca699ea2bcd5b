//! Language features of config files, pure.
