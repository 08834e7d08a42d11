//! Every decision into the journal: the events, and a sink that never blocks and never loses silently.
//!
//! An [`Event`] says what happened in typed fields; [`Event::encode`] turns it into one record of the journal's native protocol;
//! the [`Sink`] hands records to journald over its datagram socket. Nothing here decides, and nothing here sees a secret:
//! argument lists arrive masked.
//!
//! Handed over means queued with journald. It does not mean stored: nothing that a client of the journal can do tells it that.
#![forbid(unsafe_code)]

pub mod argv;
pub mod event;
mod journal;
mod kind;
mod limiter;
mod message;
mod queue;
mod rates;
mod record;
pub mod sink;
pub mod text;

pub use event::{Caller, Command, Ended, Event, Grant, Lost};
pub use journal::{JOURNAL_SOCKET, open};
pub use kind::Kind;
pub use limiter::{Limiter, Suppressed};
pub use sink::{Sink, Unavailable};
