//! `{ ip = "any|v4|v6" }` with `prefix` and `within`: an address as inet_pton(3) reads it, optionally with a prefix length.

use std::net::IpAddr;

use super::{Kind, Lean};
use crate::policy::spec::{Cidr, IpFamily, Prefix};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::policy) struct Ip {
    pub(super) family: IpFamily,
    pub(super) prefix: Prefix,
    pub(super) within: Box<[Cidr]>,
}

/// What is wrong with a network.
pub(super) fn check(network: &Cidr) -> Result<(), String> {
    if network.prefix > width(network.address) {
        return Err(format!("{} has no prefix of {} bits", network.address, network.prefix));
    }
    Ok(())
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address as a number, aligned to the left.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Whether the network (or single address) lies in the other as a whole.
fn lies_within(address: IpAddr, prefix: u8, network: &Cidr) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(network.prefix)).unwrap_or(0);
    address.is_ipv4() == network.address.is_ipv4() && prefix >= network.prefix && bits(address) & mask == bits(network.address) & mask
}

/// Address and prefix length, where there is one.
fn parse(text: &[u8]) -> Option<(IpAddr, Option<u8>)> {
    let text = std::str::from_utf8(text).ok()?;
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(super::int::parse(prefix.as_bytes())?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let prefix = match prefix {
        Some(prefix) => Some(u8::try_from(prefix).ok().filter(|p| *p <= width(address))?),
        None => None,
    };
    Some((address, prefix))
}

impl Kind for Ip {
    fn accepts(&self, text: &[u8], _lead: bool, _lean: &mut Lean<'_>) -> bool {
        let Some((address, prefix)) = parse(text) else {
            return false;
        };
        let family = match self.family {
            IpFamily::Any => true,
            IpFamily::V4 => address.is_ipv4(),
            IpFamily::V6 => address.is_ipv6(),
        };
        let spelling = match self.prefix {
            Prefix::No => prefix.is_none(),
            Prefix::Yes => prefix.is_some(),
            Prefix::Maybe => true,
        };
        let length = prefix.unwrap_or(width(address));
        family && spelling && (self.within.is_empty() || self.within.iter().any(|network| lies_within(address, length, network)))
    }

    fn shape(&self) -> String {
        "(?:[0-9A-Fa-f:./]+)".to_owned()
    }

    fn expected(&self) -> String {
        let family = match self.family {
            IpFamily::Any => "an IP address",
            IpFamily::V4 => "an IPv4 address",
            IpFamily::V6 => "an IPv6 address",
        };
        let prefix = match self.prefix {
            Prefix::No => " without a prefix length",
            Prefix::Yes => " with a prefix length",
            Prefix::Maybe => "",
        };
        let networks: Vec<String> = self.within.iter().map(ToString::to_string).collect();
        if networks.is_empty() {
            format!("{family}{prefix}")
        } else {
            format!("{family}{prefix} within {}", networks.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::pattern::testing::{accepts, value};
    use crate::policy::spec::{Cidr, ElementKind, IpFamily, Prefix};

    fn ip(family: IpFamily, prefix: Prefix, within: &[(&str, u8)]) -> crate::policy::spec::Element {
        let within = within
            .iter()
            .map(|(address, prefix)| Cidr {
                address: address.parse().unwrap(),
                prefix: *prefix,
            })
            .collect();
        value(ElementKind::Ip { family, prefix, within })
    }

    #[test]
    fn families_are_kept_apart() {
        for (family, v4, v6) in [
            (IpFamily::Any, true, true),
            (IpFamily::V4, true, false),
            (IpFamily::V6, false, true),
        ] {
            let ip = ip(family, Prefix::No, &[]);
            assert_eq!(accepts(&ip, "10.0.0.1"), v4);
            assert_eq!(accepts(&ip, "fe80::1"), v6);
        }
    }

    #[test]
    fn addresses_have_no_other_spellings() {
        let ip = ip(IpFamily::Any, Prefix::Maybe, &[]);
        for no in [
            "",
            "10.1",
            "010.0.0.1",
            "0x7f.0.0.1",
            "2130706433",
            "fe80::1%eth0",
            "[::1]",
            "10.0.0.1 ",
            "10.0.0.1\n",
            "10.0.0.256",
            "/8",
        ] {
            assert!(!accepts(&ip, no), "{no:?}");
        }
    }

    #[test]
    fn the_prefix_is_as_the_filter_says() {
        for (prefix, with, without) in [(Prefix::No, false, true), (Prefix::Yes, true, false), (Prefix::Maybe, true, true)] {
            let ip = ip(IpFamily::Any, prefix, &[]);
            assert_eq!(accepts(&ip, "10.0.0.1/24"), with);
            assert_eq!(accepts(&ip, "10.0.0.1"), without);
        }
        let ip = ip(IpFamily::Any, Prefix::Yes, &[]);
        for no in [
            "10.0.0.1/33",
            "fe80::/129",
            "10.0.0.1/",
            "10.0.0.1/08",
            "10.0.0.1/+8",
            "10.0.0.1/-1",
            "10.0.0.1/8/8",
            "10.0.0.1/255.0.0.0",
        ] {
            assert!(!accepts(&ip, no), "{no:?}");
        }
        assert!(accepts(&ip, "0.0.0.0/0") && accepts(&ip, "::/128"));
    }

    #[test]
    fn within_holds_the_whole_network() {
        let ip = ip(IpFamily::Any, Prefix::Maybe, &[("10.0.0.0", 8), ("fd00::", 8)]);
        for yes in ["10.255.0.1", "10.0.0.0/8", "10.1.0.0/16", "fd12::1"] {
            assert!(accepts(&ip, yes), "{yes}");
        }
        for no in ["11.0.0.1", "10.0.0.0/7", "0.0.0.0/0", "fe80::1", "::ffff:10.0.0.1", "a00::"] {
            assert!(!accepts(&ip, no), "{no}");
        }
    }

    #[test]
    fn everything_lies_within_the_empty_prefix_of_its_family() {
        let ip = ip(IpFamily::Any, Prefix::No, &[("0.0.0.0", 0)]);
        assert!(accepts(&ip, "192.0.2.1"));
        assert!(!accepts(&ip, "::1"));
    }
}
