//! Command-line definitions: `--help`, the man pages and the completions all come from here.
//!
//! A program's definition carries three texts: `about` (a line), `long_about` (the manual's DESCRIPTION) and `after_long_help`.
//! The last one holds further sections in one form, which `--help` prints as it stands and the manual's generator reads:
//!
//! ```text
//! Exit status:
//!   0    The command succeeded.
//!   124  It was ended
//!        after its time.
//!
//! See also:
//!   rootwrapd(8), rootwrap.filters(5)
//! ```
//!
//! A line without indentation that ends in a colon opens a section; in it, two blanks, a term, two or more blanks and a text make an
//! entry, and deeper lines go on with it; lines of two blanks and text alone make a paragraph; `$ command` lines are shown as they stand.
#![forbid(unsafe_code)]

pub mod rootwrap;
#[cfg(feature = "daemon")]
pub mod rootwrapctl;
#[cfg(feature = "daemon")]
pub mod rootwrapd;
pub mod timespan;
