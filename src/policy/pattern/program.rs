//! The instructions that groups are compiled to, and where each group's compiler is.
//!
//! A program runs over the arguments from left to right; a pair of instruction and position is tried at most once
//! (see [`super::machine`]), so that time and memory are bounded by instructions x arguments.

/// One step. Jumps are indices into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) enum Inst {
    /// One argument, taken by this part of the arena.
    Take(u32),
    /// As many arguments as this part takes, at most `max`, at least `min`: first all, then fewer.
    Many {
        /// Index of the part.
        part: u32,
        /// At least.
        min: u16,
        /// At most.
        max: u16,
    },
    /// Goes on at `first`, and where that fails at `second`.
    Split {
        /// Preferred.
        first: u32,
        /// Otherwise.
        second: u32,
    },
    /// Goes on there.
    Jump(u32),
    /// An options element: as many as there are, in one way only.
    Options(u32),
    /// The rest is a command: index into the arena's inner commands. Ends the program.
    Command(u32),
    /// The end.
    Accept,
}

/// A compiled `args`, or the value of an option.
pub(in crate::policy) type Program = [Inst];

/// Most instructions of one filter.
pub(super) const MAX_LENGTH: usize = 16 * 1024;
