//! Which socket, and whether to trust who listens there.
//!
//! A socket that systemd listens on has PID 1 as its peer, so neither the pid nor its executable says anything: only the uid counts.
//! In a user namespace that does not have the outer root (user_namespaces(7)) root shows as the overflow uid, as any outer user does;
//! there that uid is taken for root, because the alternative is that nothing in a rootless container can use the service.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::error::Error;
use crate::protocol::SOCKET_PATH;
use crate::sys::peer;

/// Names another socket than the usual one.
pub const SOCKET_VARIABLE: &str = "ROOTWRAP_SOCKET";

/// A socket to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    path: PathBuf,
    /// Besides root, this process's effective user is trusted.
    own_user: bool,
}

impl Default for Server {
    /// `ROOTWRAP_SOCKET` where it is set and not empty, else [`SOCKET_PATH`], where root alone is trusted.
    fn default() -> Self {
        match std::env::var_os(SOCKET_VARIABLE) {
            Some(path) if !path.is_empty() => Self::at(PathBuf::from(path)),
            _ => Self {
                path: SOCKET_PATH.into(),
                own_user: false,
            },
        }
    }
}

impl Server {
    /// A socket that somebody chose: of root, or of this process's effective user (a service started by hand, or a test's).
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            own_user: true,
        }
    }

    /// The socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Connects, blocking, and checks the owner of the socket and the server's user before anything is sent.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Untrusted`].
    pub fn connect(&self) -> Result<OwnedFd, Error> {
        let failed = |source| Error::Connect {
            path: self.path.clone(),
            source,
        };
        let socket: OwnedFd = UnixStream::connect(&self.path).map_err(failed)?.into();
        self.trust(peer::credentials(socket.as_fd()).map_err(failed)?.uid)?;
        self.trust(std::fs::metadata(&self.path).map_err(failed)?.uid())?;
        Ok(socket)
    }

    fn trust(&self, uid: u32) -> Result<(), Error> {
        let own = rustix::process::geteuid().as_raw();
        if uid == 0 || (self.own_user && uid == own) || is_outer_root(uid) {
            return Ok(());
        }
        Err(Error::Untrusted {
            path: self.path.clone(),
            uid,
        })
    }
}

/// Whether this may be root of an outer user namespace. Never in the initial one, where every uid is mapped.
fn is_outer_root(uid: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let overflow = read("/proc/sys/kernel/overflowuid").trim().parse() == Ok(uid);
    overflow && is_unmapped(&read("/proc/self/uid_map"), uid)
}

/// Lines of a map: first uid inside, first uid outside, how many.
fn is_unmapped(map: &str, uid: u32) -> bool {
    let covers = |line: &str| {
        let numbers: Option<Vec<u64>> = line.split_whitespace().map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some([inside, _, count]) => (*inside..inside.saturating_add(*count)).contains(&u64::from(uid)),
            // Not understood: as if it were mapped, so that nobody is trusted.
            _ => true,
        }
    };
    // A namespace whose map has not been written yet has an empty file. (Without /proc nobody gets here: the overflow uid is unknown.)
    !map.lines().any(covers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_the_initial_namespace_then_no_uid_is_unmapped() {
        assert!(!is_unmapped("         0          0 4294967295\n", 65534));
        assert!(is_unmapped("         0       1000          1\n", 65534));
        assert!(!is_unmapped("0 1000 1\n1 100000 65536\n", 65534));
        assert!(is_unmapped("", 65534));
        assert!(!is_unmapped("nonsense\n", 65534));
    }

    #[test]
    fn given_a_stranger_then_no_trust_and_given_root_then_trust() {
        let usual = Server {
            path: SOCKET_PATH.into(),
            own_user: false,
        };
        let own = rustix::process::geteuid().as_raw();
        assert!(usual.trust(0).is_ok());
        assert!(matches!(usual.trust(own.max(1)), Err(Error::Untrusted { .. })));
        assert!(Server::at("/x").trust(own).is_ok());
        assert!(matches!(Server::at("/x").trust(own + 1), Err(Error::Untrusted { uid, .. }) if uid == own + 1));
    }

    #[test]
    fn given_no_server_then_the_path_is_named() {
        let error = Server::at("/nonexistent/rootwrap.sock").connect().unwrap_err();
        assert!(error.to_string().contains("/nonexistent/rootwrap.sock"), "{error}");
    }
}
