//! No descriptor leaks, however many come and however they come. The only test of its process: it counts all descriptors there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::os::fd::{AsFd, BorrowedFd};

use rootwrap::protocol::Decoder;
use rootwrap::protocol::framing::{Outgoing, receive};
use rootwrap::sys::socket::{Credentials, pair, recv_with, send_with, set_pass_credentials};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn given_any_number_of_descriptors_then_none_is_left_afterwards() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let before = open_descriptors();
    for _round in 0..50 {
        for sent in [0, 1, 2, 3, 4, 5, 64, 253] {
            let fds: Vec<BorrowedFd<'_>> = vec![null.as_fd(); sent];
            whole_message(&fds);
            cut_off(&fds);
            never_read(&fds);
            late(&fds);
        }
        without_data(&null);
    }
    assert_eq!(open_descriptors(), before);
}

fn whole_message(fds: &[BorrowedFd<'_>]) {
    let (a, b) = pair().unwrap();
    set_pass_credentials(b.as_fd(), true).unwrap();
    let own = Some(Credentials::effective());
    Outgoing::new(b"{}".to_vec(), fds.to_vec(), own).send_all(a.as_fd()).unwrap();
    let mut decoder = Decoder::new(64);
    let receipt = receive(b.as_fd(), &mut decoder, 4).unwrap();
    assert_eq!(receipt.credentials, own);
    let message = decoder.take().unwrap();
    assert_eq!(message.fault.is_some(), fds.len() > 4);
    assert_eq!(message.fds.len(), fds.len().min(4));
}

/// The control buffer holds fewer than were sent.
fn cut_off(fds: &[BorrowedFd<'_>]) {
    let (a, b) = pair().unwrap();
    send_with(a.as_fd(), b"x", fds, None).unwrap();
    let received = recv_with(b.as_fd(), &mut [0; 8], 2).unwrap();
    assert_eq!(received.control_truncated, fds.len() > 2);
    assert_eq!(received.fds.len(), fds.len().min(2));
}

/// In the socket's queue when it is closed.
fn never_read(fds: &[BorrowedFd<'_>]) {
    let (a, _b) = pair().unwrap();
    send_with(a.as_fd(), b"x", fds, None).unwrap();
}

/// With the second piece of a message.
fn late(fds: &[BorrowedFd<'_>]) {
    let (a, b) = pair().unwrap();
    let mut decoder = Decoder::new(64);
    send_with(a.as_fd(), b"{", &[], None).unwrap();
    receive(b.as_fd(), &mut decoder, 4).unwrap();
    send_with(a.as_fd(), b"}\0", fds, None).unwrap();
    receive(b.as_fd(), &mut decoder, 4).unwrap();
    let message = decoder.take().unwrap();
    assert!(message.fds.is_empty());
    assert_eq!(message.fault.is_some(), !fds.is_empty());
}

/// A stream socket takes no descriptors without a byte, whoever sends them.
fn without_data(null: &std::fs::File) {
    let (a, _b) = pair().unwrap();
    assert!(send_with(a.as_fd(), b"", &[null.as_fd()], None).is_err());
}
