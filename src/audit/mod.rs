//! Every decision into the journal: the events, and a sink that never blocks and never loses silently.
#![forbid(unsafe_code)]
