//! All servers, the one door to every tool: the only thing a front holds.
