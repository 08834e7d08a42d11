//! Yes and no as values far apart.
//!
//! A decision passes through memory that an attacker may disturb (bits flipped by hammering rows of memory). Yes is one
//! 64-bit value, compared by equality; every other value is no.

/// Yes or no.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict(u64);

impl Verdict {
    /// Yes.
    pub(super) const ALLOW: Self = Self(0x5a96_c3e1_0f78_b42d);
    /// No: all bits differ.
    pub(super) const DENY: Self = Self(!Self::ALLOW.0);

    /// From a condition that was just computed.
    pub(super) fn of(condition: bool) -> Self {
        if condition { Self::ALLOW } else { Self::DENY }
    }

    /// Yes, if both are.
    pub(super) fn and(self, other: Self) -> Self {
        if self.allows() && other.allows() { Self::ALLOW } else { Self::DENY }
    }

    /// Whether it is exactly yes.
    pub(super) fn allows(self) -> bool {
        self == Self::ALLOW
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn yes_and_no_differ_in_every_bit() {
        assert_eq!((Verdict::ALLOW.0 ^ Verdict::DENY.0).count_ones(), 64);
        assert!((24..=40).contains(&Verdict::ALLOW.0.count_ones()));
    }

    #[test]
    fn any_flipped_bit_is_no() {
        for bit in 0..64 {
            assert!(!Verdict(Verdict::ALLOW.0 ^ (1 << bit)).allows());
        }
        for value in [0, 1, u64::MAX] {
            assert!(!Verdict(value).allows());
        }
        assert!(!Verdict::ALLOW.and(Verdict::DENY).allows() && !Verdict::DENY.and(Verdict::ALLOW).allows());
        assert!(Verdict::ALLOW.and(Verdict::ALLOW).allows());
    }
}
