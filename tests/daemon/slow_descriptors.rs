//! Descriptors that cannot be closed until somebody else agrees: the one who passes them waits, and nobody else.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{ALICE, Daemon, Peer, as_user, directory, error, output};

/// A TCP socket whose last close(2) waits until the peer reads, which it never does, for most of an hour; and the peer.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let mut stream = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let (peer, _) = listener.accept().expect("accept");
    rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::from_secs(3000))).expect("SO_LINGER");
    stream.set_nonblocking(true).expect("nonblocking");
    while stream.write(&[0; 65536]).is_ok() {}
    (stream, peer)
}

/// Does something while the service is halted. (Halting ends what lingers there.)
fn halted<T>(daemon: &Daemon, act: impl FnOnce() -> T) -> T {
    daemon.signal(Signal::STOP);
    let done = act();
    daemon.signal(Signal::CONT);
    done
}

/// Passes it on with these bytes. While the service is halted, so that what holds the socket in the end is the message alone.
fn give_away(connection: &UnixStream, bytes: &[u8], stream: TcpStream, flags: SendFlags) {
    let descriptors = [stream.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(connection, &[IoSlice::new(bytes)], &mut control, flags).expect("send");
    drop(stream);
}

fn serves(daemon: &Daemon) {
    for _ in 0..3 {
        assert_eq!(output(&daemon.connect().run(&["echo", "hello"]), "stdout"), "hello\n");
    }
}

#[test]
fn given_sockets_that_linger_in_messages_then_nobody_waits_for_them() {
    let daemon = Daemon::start();
    let call = format!("{}\0", json!({"method": "io.rootwrap.GetStatus"}));
    for bytes in [call.as_bytes(), b"{", b"\0", b"no JSON\0"] {
        let (stream, _peer) = lingering();
        let connection = daemon.connect();
        halted(&daemon, || give_away(connection.stream(), bytes, stream, SendFlags::empty()));
        serves(&daemon);
    }
}

#[test]
fn given_sockets_that_linger_in_the_queue_of_a_closed_connection_then_nobody_waits_for_them() {
    let daemon = Daemon::start();
    let (stream, _peer) = lingering();
    let mut connection = daemon.connect();
    halted(&daemon, || {
        // After this the service takes nothing more from the connection, and closes it.
        connection.send_bytes(b"no JSON\0");
        give_away(connection.stream(), b"{", stream, SendFlags::empty());
    });
    serves(&daemon);
}

#[test]
fn given_a_socket_that_lingers_sent_out_of_band_then_nobody_waits_for_it() {
    let daemon = Daemon::start();
    let (stream, _peer) = lingering();
    let mut connection = daemon.connect();
    halted(&daemon, || give_away(connection.stream(), b"x", stream, SendFlags::OOB));
    connection.send_bytes(b"\0");
    assert_eq!(error(&connection.reply().expect("a reply")), "BadRequest");
    serves(&daemon);
}

#[test]
fn given_more_connections_than_a_user_may_have_with_sockets_that_linger_then_others_are_served() {
    let daemon = Daemon::with_settings("max_connections_per_uid = 1");
    let sockets: Vec<_> = (0..3).map(|_| lingering()).collect();
    let connect_thrice = || {
        let mut held = Vec::new();
        for (number, (stream, peer)) in sockets.into_iter().enumerate() {
            let connection = Peer::connect(&daemon.socket());
            give_away(connection.stream(), b"{", stream, SendFlags::empty());
            held.push((connection, peer));
            if number == 1 {
                // Far more than are let wait for the one before them.
                (0..1100).for_each(|_| Peer::connect(&daemon.socket()).send_bytes(b"{"));
            }
        }
        held
    };
    let held = halted(&daemon, || as_user(ALICE, connect_thrice));
    serves(&daemon);
    drop(held);
}

/// A file of a file system in user space that answers nothing but what opening it takes: its close(2) waits as long as the server
/// lives. Mounted for a test, and gone with it.
struct UnansweredFile {
    mountpoint: tempfile::TempDir,
    _server: File,
}

impl UnansweredFile {
    fn new() -> Self {
        let mountpoint = directory();
        let server = File::options().read(true).write(true).open("/dev/fuse").expect("/dev/fuse");
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", server.as_raw_fd());
        nix::mount::mount(
            Some("test"),
            mountpoint.path(),
            Some("fuse"),
            nix::mount::MsFlags::empty(),
            Some(options.as_str()),
        )
        .expect("mount");
        let requests = server.try_clone().expect("dup");
        std::thread::spawn(move || answer(requests));
        Self {
            mountpoint,
            _server: server,
        }
    }

    fn open(&self) -> File {
        File::options().write(true).open(self.mountpoint.path().join("file")).expect("open")
    }
}

impl Drop for UnansweredFile {
    fn drop(&mut self) {
        // Aborts what waits, too.
        let _ = nix::mount::umount2(self.mountpoint.path(), nix::mount::MntFlags::MNT_FORCE);
        let _ = nix::mount::umount2(self.mountpoint.path(), nix::mount::MntFlags::MNT_DETACH);
    }
}

/// include/uapi/linux/fuse.h: LOOKUP, GETATTR, OPEN and INIT are answered.
fn answer(mut requests: File) {
    let mut buffer = vec![0; 1 << 18];
    while let Ok(length) = requests.read(&mut buffer) {
        let header = &buffer[..length];
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
        let (kind, node) = (word(4), word(16));
        let reply: Vec<u32> = match kind {
            1 => [vec![2, 0, 0, 0, 3600, 0, 3600, 0, 0, 0], attributes(2)].concat(),
            3 => [vec![3600, 0, 0, 0], attributes(node)].concat(),
            14 => vec![1, 0, 0, 0],
            26 => [vec![7, 31, 0, 0, 0, 1 << 17, 1], vec![0; 9]].concat(),
            _ => continue,
        };
        let size = u32::try_from(16 + 4 * reply.len()).unwrap();
        let words = [vec![size, 0, word(8), word(12)], reply].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let _ = requests.write(&bytes);
    }
}

/// `struct fuse_attr`: a directory, or a file that anybody may write.
fn attributes(node: u32) -> Vec<u32> {
    let mode = if node == 1 { 0o40_755 } else { 0o100_666 };
    [vec![node], vec![0; 14], vec![mode, 1, 0, 0, 0, 4096, 0]].concat()
}

#[test]
fn given_files_whose_file_system_does_not_answer_then_only_their_user_waits() {
    let daemon = Daemon::start();
    let file = UnansweredFile::new();
    let opened = std::mem::ManuallyDrop::new(file.open());
    let mut refused = daemon.connect();
    refused.send_with(&json!({"method": "io.rootwrap.GetStatus"}), &[opened.as_fd()]);
    assert_eq!(error(&refused.reply().expect("a reply")), "BadRequest");
    serves(&daemon);
}
