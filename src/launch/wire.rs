//! What goes over the socket between rootwrapd and a child: one job there, its outcome back.
//!
//! A job is a length (4 bytes, little-endian) and that many bytes of postcard, with all descriptors on the first byte. The child
//! answers with [`Report`]s in postcard and closes: what was said until then is the outcome. The socket is close-on-exec, so
//! its end after [`Report::Starting`] is the exec. Both sides are the same build of the same package.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{ProbeAnswer, Step};

/// Bytes of an encoded job, at most: more than the kernel takes as arguments and environment by default (2 MiB).
pub(super) const MAX_JOB: usize = 4 << 20;

/// Descriptors of a job, at most: executable, inner executable, 0, 1, 2, directory.
pub(super) const MAX_DESCRIPTORS: usize = 6;

/// Bytes of the length before a job.
pub(super) const PREFIX: usize = 4;

/// Bytes of an outcome, at most.
pub(super) const MAX_REPORT: usize = 4096;

/// A job as the child gets it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WireJob {
    /// Give up privileges and exec.
    Command(CommandJob),
    /// Answer and exit.
    Probe(WireProbe),
}

/// A command: numbers and bytes. Descriptors, in this order: executable, inner executable, 0, 1, 2, directory; the last five where
/// the job says that they are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommandJob {
    /// Absolute; also argv\[0\].
    pub path: Vec<u8>,
    /// The arguments after it.
    pub args: Vec<Vec<u8>>,
    /// `NAME=VALUE`, all of it.
    pub environment: Vec<Vec<u8>>,
    /// Path of the inner executable, which the outer one will run.
    pub inner: Option<Vec<u8>>,
    /// SHA-256 of the executable, which is then executed by descriptor.
    pub sha256: Option<[u8; 32]>,
    /// Which of 0, 1, 2 come as descriptors; /dev/null otherwise.
    pub stdio: [bool; 3],
    /// A path, or none: a descriptor comes.
    pub cwd: Option<Vec<u8>>,
    /// File mode creation mask.
    pub umask: u32,
    /// -20 to 19.
    pub nice: i32,
    /// -1000 to 1000.
    pub oom_score: i32,
    /// Both limits of open descriptors, where the filter says so.
    pub nofile: Option<u64>,
    /// The caller's loginuid.
    pub loginuid: Option<u32>,
    /// Real, effective and saved uid.
    pub uid: u32,
    /// Real, effective and saved gid.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Exactly these, bit by bit; none: full root.
    pub capabilities: Option<u64>,
    /// PR_SET_NO_NEW_PRIVS.
    pub no_new_privs: bool,
}

/// A question. Descriptors: the pidfd or the executable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WireProbe {
    /// [`ProbeJob::PathUnder`](super::ProbeJob::PathUnder).
    PathUnder {
        path: Vec<u8>,
        base: Vec<u8>,
        links_to: Vec<Vec<u8>>,
        new: bool,
    },
    /// [`ProbeJob::PidOf`](super::ProbeJob::PidOf).
    PidOf { pid: u32, executables: Vec<Vec<u8>> },
    /// [`ProbeJob::Digest`](super::ProbeJob::Digest).
    Digest,
}

/// What a child says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The next system call is exec.
    Starting,
    /// A step failed; the command was not and will not be started.
    Failed { step: Step, errno: i32 },
    /// A probe's answer.
    Answer(ProbeAnswer),
}

/// A message with its length before it; `None` where it is larger than [`MAX_JOB`].
pub(super) fn frame<T: Serialize>(message: &T) -> Option<Vec<u8>> {
    let mut bytes = postcard::to_extend(message, vec![0; PREFIX]).ok()?;
    let length = bytes.len() - PREFIX;
    if length > MAX_JOB {
        return None;
    }
    let prefix = u32::try_from(length).ok()?.to_le_bytes();
    bytes.get_mut(..PREFIX)?.copy_from_slice(&prefix);
    Some(bytes)
}

/// The message, which must be all there is.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Some(message),
        _ => None,
    }
}

/// Everything that a child said, in order; `None` where a part of it is not to be understood.
pub(super) fn reports(mut bytes: &[u8]) -> Option<Vec<Report>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (report, rest) = postcard::take_from_bytes(bytes).ok()?;
        all.push(report);
        bytes = rest;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reports_are_taken_apart_and_half_a_report_is_refused() {
        let failed = Report::Failed { step: Step::Gid, errno: 1 };
        let mut bytes = postcard::to_stdvec(&Report::Starting).unwrap();
        bytes.extend(postcard::to_stdvec(&failed).unwrap());
        assert_eq!(reports(&bytes), Some(vec![Report::Starting, failed]));
        assert_eq!(reports(&bytes[..bytes.len() - 1]), None);
        assert_eq!(reports(b""), Some(vec![]));
    }

    #[test]
    fn a_message_followed_by_more_is_refused() {
        let framed = frame(&WireProbe::Digest).unwrap();
        assert_eq!(parse::<WireProbe>(&framed[4..]), Some(WireProbe::Digest));
        let longer = [&framed[4..], b"x"].concat();
        assert_eq!(parse::<WireProbe>(&longer), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse::<WireJob>(&bytes);
            let _ = reports(&bytes);
        }
    }
}
