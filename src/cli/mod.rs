//! Command-line definitions: `--help`, the man pages and the completions all come from here.
#![forbid(unsafe_code)]
