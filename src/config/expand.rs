//! `${…}` put in at start, never in what is shown or stored.
