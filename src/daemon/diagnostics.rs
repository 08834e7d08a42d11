//! The service's own diagnostics (not its evidence: that is `audit`): into the journal through tracing-journald, to stderr where
//! there is no journal.
//!
//! tracing-journald blocks while the journal's queue is full. The event loop must not, so a thread of its own talks to the journal;
//! messages that it cannot take are dropped.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Messages that wait for the thread.
const QUEUE: usize = 256;

/// Installs the subscriber. Called once, when the process is confined: the thread is confined too then.
pub fn install() {
    let installed = match tracing_journald::layer() {
        Ok(journald) => {
            let (sender, receiver) = sync_channel(QUEUE);
            let journald = journald.with_syslog_identifier("rootwrapd".to_owned());
            let spawned = std::thread::Builder::new()
                .name("diagnostics".into())
                .spawn(move || forward(&receiver, journald));
            spawned.is_ok() && tracing_subscriber::registry().with(Forward(sender)).try_init().is_ok()
        }
        Err(_) => false,
    };
    if !installed {
        let stderr = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .without_time();
        // Fails only where a subscriber is there already.
        let _ = tracing_subscriber::registry().with(stderr).with(Informative).try_init();
    }
}

/// Leaves out what is below INFO.
struct Informative;

impl<S: Subscriber> Layer<S> for Informative {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO
    }
}

struct Message {
    level: Level,
    text: String,
}

struct Forward(SyncSender<Message>);

impl<S: Subscriber> Layer<S> for Forward {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let message = Message {
            level: *event.metadata().level(),
            text: text.0,
        };
        // Full: diagnostics are dropped rather than waited for.
        let _ = self.0.try_send(message);
    }
}

/// An event's message and fields as one text.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let separator = if self.0.is_empty() { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = if field.name() == "message" {
            write!(self.0, "{separator}{value:?}")
        } else {
            write!(self.0, "{separator}{}={value:?}", field.name())
        };
    }
}

fn forward(receiver: &Receiver<Message>, journald: tracing_journald::Layer) {
    let _guard = tracing_subscriber::registry().with(journald).set_default();
    while let Ok(Message { level, text }) = receiver.recv() {
        match level {
            Level::ERROR => tracing::error!("{text}"),
            Level::WARN => tracing::warn!("{text}"),
            _ => tracing::info!("{text}"),
        }
    }
}
