//! The library's clients against a service that this test plays: results, errors, signals, a connection that is given up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use rootwrap::client::{Client, Error, Input, Sink};
use rootwrap::protocol::run::{RunReply, RunState};
use rootwrap::protocol::{self, Method, Reply};
use serde_json::json;
use support::{Peer, Service, started};

/// Plays one captured run.
fn captured(mut peer: Peer) {
    let (run, fds) = peer.run();
    assert!(fds.is_empty());
    assert_eq!(run.stdin.as_deref(), Some(&b"in\0put"[..]));
    assert_eq!(run.wanted.argv, [b"cat".to_vec(), b"\xff".to_vec()]);
    assert_eq!(run.wanted.environment, [(b"A".to_vec(), b"2".to_vec())]);
    assert_eq!(run.timeout_usec, Some(3_000_000));
    peer.reply(&RunReply {
        exit_code: Some(3),
        stdout: Some(b"out\xff".to_vec()),
        stderr: Some(b"err".to_vec()),
        stdout_truncated: Some(true),
        ..RunReply::new(RunState::Exited, "r1")
    });
    // The same connection serves the next call.
    let (run, fds) = peer.run();
    let claimed = run.claim(fds).unwrap();
    assert!(claimed.stdout.is_some() && claimed.cwd.is_some() && claimed.stderr.is_none());
    peer.send(&Reply::from(&protocol::Error::Busy { what: "commands".into() }));
}

fn null() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

fn bytes(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

/// The two clients have one surface: this is written once and compiled for both.
macro_rules! both_clients {
    ($connect:expr, $($wait:tt)*) => {
        let service = Service::start(captured);
        let mut client = $connect(service.path())$($wait)*.unwrap();
        let output = client
            .command(["cat"])
            .arg(bytes(b"\xff"))
            .env("A", "1")
            .env("A", "2")
            .stdin(Input::Bytes(b"in\0put".to_vec()))
            .timeout(Duration::from_secs(3))
            .run()$($wait)*
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\xff"[..], &b"err"[..]));
        assert!(output.stdout_truncated && !output.stderr_truncated);
        let error = client.command(["x"]).stdout(Sink::Descriptor(null())).cwd(null()).run()$($wait)*.unwrap_err();
        assert!(matches!(error, Error::Refused(protocol::Error::Busy { .. })), "{error}");
        drop(service);

        let service = Service::start(signalled);
        let mut client = $connect(service.path())$($wait)*.unwrap();
        let mut running = client.command(["sleep"]).start()$($wait)*.unwrap();
        assert_eq!((running.id(), running.pid()), ("r1", Some(1)));
        running.signal(15)$($wait)*.unwrap();
        let output = running.wait()$($wait)*.unwrap();
        assert_eq!(output.status.signal(), Some(15));
        drop(service);

        let service = Service::start(given_up);
        let mut client = $connect(service.path())$($wait)*.unwrap();
        drop(client.command(["sleep"]).start()$($wait)*.unwrap());
        drop(service);
        assert!(matches!(client.status()$($wait)*, Err(Error::Broken(_))));

        let service = Service::start(nothing_sent);
        let mut client = $connect(service.path())$($wait)*.unwrap();
        for argv in [&[][..], &["a\0b"]] {
            assert!(matches!(client.command(argv).run()$($wait)*, Err(Error::Unsendable(_))));
        }
        assert!(matches!(client.command(["x"]).env("", "v").run()$($wait)*, Err(Error::Unsendable(_))));
        assert!(matches!(client.command(["x"]).timeout(Duration::ZERO).run()$($wait)*, Err(Error::Unsendable(_))));
        drop(client);
        drop(service);
    };
}

fn signalled(mut peer: Peer) {
    peer.run();
    peer.reply_more(&started("r1"));
    assert_eq!(peer.signal(), ("r1".into(), 15));
    peer.reply(&RunReply {
        exit_signal: Some(15),
        ..RunReply::new(RunState::Exited, "r1")
    });
}

/// A running command is dropped: the connection must end, so that no later call takes its reply.
fn given_up(mut peer: Peer) {
    peer.run();
    peer.reply_more(&started("r1"));
    assert!(peer.next_call().is_none());
}

fn nothing_sent(mut peer: Peer) {
    assert!(peer.next_call().is_none());
}

#[test]
fn given_the_blocking_client_then_it_does_all_of_it() {
    both_clients!(Client::connect,);
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn given_the_tokio_client_then_it_does_all_of_it() {
    both_clients!(rootwrap::client::AsyncClient::connect, .await);
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn given_a_future_that_is_dropped_then_the_connection_ends() {
    let (arrived_in, arrived) = tokio::sync::oneshot::channel();
    let service = Service::start(move |mut peer| {
        peer.run();
        arrived_in.send(()).unwrap();
        assert!(peer.next_call().is_none());
    });
    let mut client = rootwrap::client::AsyncClient::connect(service.path()).await.unwrap();
    let slow = client.command(["sleep"]).run();
    tokio::select! {
        result = slow => panic!("{result:?}"),
        result = arrived => result.unwrap(),
    }
    drop(tokio::task::spawn_blocking(move || drop(service)).await);
    assert!(client.status().await.is_err());
}

#[test]
fn given_the_other_methods_then_their_replies_are_typed_and_later_members_ignored() {
    let service = Service::start(|mut peer| {
        let Method::Explain(explain) = peer.method() else {
            panic!("Explain")
        };
        assert_eq!(explain.wanted.argv, [b"ip".to_vec()]);
        peer.reply(&json!({"allowed": false, "reason": "no-filter", "tried": [], "ofTheFuture": 1}));
        assert_eq!(peer.method(), Method::GetStatus);
        peer.reply(&json!({"version": "9", "pid": 1, "uptimeUSec": 1, "filters": 2, "draining": false,
            "counters": {"allowed": 1, "denied": 2, "launchFailed": 3, "busy": 4, "badRequests": 5}, "callers": []}));
        assert_eq!(peer.method(), Method::Reload);
        peer.send(&Reply::from(&protocol::Error::ReloadFailed {
            diagnostics: vec!["x.toml:1:2: error: m".into()],
        }));
        assert_eq!(peer.method(), Method::ListFilters);
        peer.reply(&json!({"filters": "none"}));
    });
    let mut client = Client::connect(service.path()).unwrap();
    assert_eq!(client.explain_command(["ip"]).unwrap().reason.as_deref(), Some("no-filter"));
    assert_eq!(client.status().unwrap().counters.denied, 2);
    match client.reload().unwrap_err() {
        Error::Refused(protocol::Error::ReloadFailed { diagnostics }) => assert_eq!(diagnostics.len(), 1),
        other => panic!("{other}"),
    }
    assert!(client.list_filters().is_err());
}

#[test]
fn given_a_service_that_talks_nonsense_then_a_protocol_error() {
    for nonsense in ["[]", "{\"parameters\":1}", "x"] {
        let service = Service::start(move |mut peer| {
            peer.next_call();
            peer.raw(nonsense.as_bytes());
        });
        let error = Client::connect(service.path()).unwrap().status().unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{error}");
    }
}
