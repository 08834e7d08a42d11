//! The sockets on which callers connect: passed by systemd, or bound here.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::cli::rootwrapd::Arguments;
use crate::sys::{activation, socket};

/// Callers that wait to be accepted, as in rootwrap.socket.
const BACKLOG: i32 = 4096;

/// Listening sockets, nonblocking, close-on-exec, with SO_PASSCRED: every message tells who sent it.
#[derive(Debug)]
pub struct Listeners {
    /// At least one.
    pub sockets: Vec<UnixListener>,
    /// The manager holds them too, and starts the service again when somebody connects.
    pub activated: bool,
}

/// Takes or binds the sockets. Called from the main thread before there is another one.
///
/// # Errors
/// Anything that is not exactly what is expected: a service that listens somewhere else than its administrator believes is a risk.
pub fn acquire(arguments: &Arguments) -> Result<Listeners> {
    let passed = activation::take_descriptors().map_err(anyhow::Error::msg)?;
    match &arguments.socket {
        Some(path) => {
            ensure!(
                passed.is_empty(),
                "--socket was given, but systemd passed sockets as well: use one of both"
            );
            let listener = bind(path).with_context(|| format!("{}", path.display()))?;
            Ok(Listeners {
                sockets: vec![prepare(listener)?],
                activated: false,
            })
        }
        None => {
            ensure!(
                !passed.is_empty(),
                "no socket was passed: start rootwrap.socket (systemctl start rootwrap.socket), or use --socket PATH"
            );
            let sockets = passed.into_iter().enumerate().map(|(index, (descriptor, name))| {
                let shown = format!(
                    "passed descriptor {} ({})",
                    index + 3,
                    name.as_deref().unwrap_or("unnamed").escape_debug()
                );
                check(&descriptor, name.as_deref())
                    .and_then(|()| prepare(descriptor.into()))
                    .context(shown)
            });
            Ok(Listeners {
                sockets: sockets.collect::<Result<_>>()?,
                activated: true,
            })
        }
    }
}

/// `rootwrap` is what rootwrap.socket calls it; without FileDescriptorName= systemd uses the socket unit's name.
fn check(descriptor: &OwnedFd, name: Option<&str>) -> Result<()> {
    if let Some(name) = name {
        ensure!(
            name == "rootwrap" || name.ends_with(".socket"),
            "the service has no use for a descriptor of this name: set FileDescriptorName=rootwrap"
        );
    }
    let domain = sockopt::socket_domain(descriptor).context("not a socket")?;
    ensure!(domain == AddressFamily::UNIX, "not a unix(7) socket: use ListenStream=/PATH");
    let kind = sockopt::socket_type(descriptor)?;
    ensure!(
        kind == SocketType::STREAM,
        "not a stream socket: use ListenStream=, not ListenDatagram= or ListenSequentialPacket="
    );
    ensure!(sockopt::socket_acceptconn(descriptor)?, "not listening: use Accept=no");
    Ok(())
}

fn prepare(listener: UnixListener) -> Result<UnixListener> {
    listener.set_nonblocking(true)?;
    socket::set_pass_credentials(listener.as_fd(), true)?;
    Ok(listener)
}

fn bind(path: &Path) -> Result<UnixListener> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    refuse_shared(directory)?;
    remove_stale(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).context("socket")?;
    // Before anybody can connect: what is sent on a connection that was made without it carries no credentials.
    socket::set_pass_credentials(listener.as_fd(), true)?;
    rustix::net::bind(&listener, &SocketAddrUnix::new(path)?).context("bind")?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).context("chmod")?;
    rustix::net::listen(&listener, BACKLOG).context("listen")?;
    Ok(listener.into())
}

/// Whoever can write the directory could put a socket of his own in this one's place.
fn refuse_shared(directory: &Path) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let directory = fs::canonicalize(directory).with_context(|| format!("{}", directory.display()))?;
    for (distance, ancestor) in directory.ancestors().enumerate() {
        let metadata = fs::metadata(ancestor)?;
        let shown = ancestor.display();
        ensure!(
            metadata.uid() == 0 || metadata.uid() == own,
            "{shown} belongs to uid {}: others could replace the socket",
            metadata.uid()
        );
        let sticky = distance > 0 && metadata.mode() & 0o1000 != 0;
        ensure!(
            metadata.mode() & 0o022 == 0 || sticky,
            "others can write {shown} (mode {:04o}) and replace the socket: use a directory that only root can write",
            metadata.mode() & 0o7777
        );
    }
    Ok(())
}

/// Removes a socket that nobody listens on any more.
fn remove_stale(path: &Path) -> Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        bail!("it exists and is no socket");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => fs::remove_file(path).context("unlink"),
        _ => bail!("another process listens on it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(domain: AddressFamily, kind: SocketType) -> OwnedFd {
        rustix::net::socket(domain, kind, None).unwrap()
    }

    #[test]
    fn given_anything_but_a_listening_unix_stream_socket_then_refused() {
        let directory = tempfile::tempdir().unwrap();
        let datagram = std::os::unix::net::UnixDatagram::bind(directory.path().join("d")).unwrap();
        let refused: Vec<OwnedFd> = vec![
            fs::File::open("/dev/null").unwrap().into(),
            descriptor(AddressFamily::INET, SocketType::STREAM),
            descriptor(AddressFamily::UNIX, SocketType::STREAM),
            descriptor(AddressFamily::UNIX, SocketType::SEQPACKET),
            datagram.into(),
        ];
        for descriptor in refused {
            assert!(check(&descriptor, None).is_err());
        }
        let listener = OwnedFd::from(UnixListener::bind(directory.path().join("s")).unwrap());
        for name in [None, Some("rootwrap"), Some("rootwrap.socket")] {
            check(&listener, name).unwrap();
        }
        assert!(check(&listener, Some("stored")).is_err());
    }

    #[test]
    fn given_a_directory_that_others_can_write_then_binding_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        let error = bind(&directory.path().join("s")).unwrap_err();
        assert!(error.to_string().contains("others can write"), "{error}");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        bind(&directory.path().join("s")).unwrap();
    }

    #[test]
    fn given_a_stale_socket_then_it_is_replaced_and_a_live_one_or_a_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let live = bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666);
        assert!(bind(&path).is_err());
        drop(live);
        bind(&path).unwrap();
        fs::write(directory.path().join("f"), "").unwrap();
        assert!(bind(&directory.path().join("f")).is_err());
    }
}
