//! `ip`: addresses and networks.

use std::net::IpAddr;

use super::Elements;
use crate::config::reader::{Node, Table};
use crate::policy::spec::{Cidr, ElementKind, IpFamily, Prefix};

impl<'a> Elements<'a> {
    pub(super) fn ip(&self, node: Node<'a>, table: Table<'a>) -> Option<ElementKind> {
        let families = [("any", IpFamily::Any), ("v4", IpFamily::V4), ("v6", IpFamily::V6)];
        let prefixes = [("no", Prefix::No), ("yes", Prefix::Yes), ("maybe", Prefix::Maybe)];
        let family = self.reader.word(node, "`ip`", &families);
        let prefix = match table.get("prefix") {
            Some(node) => self.reader.word(node, "`prefix`", &prefixes),
            None => Some(Prefix::No),
        };
        let within = match table.get("within") {
            Some(node) => self.networks(node),
            None => Some(Vec::new()),
        };
        Some(ElementKind::Ip {
            family: family?,
            prefix: prefix?,
            within: within?,
        })
    }

    fn networks(&self, node: Node<'a>) -> Option<Vec<Cidr>> {
        let items: Vec<Node<'a>> = self.reader.array(node, "`within`")?.collect();
        if items.is_empty() {
            self.reader
                .error(node.span, "empty-list", "`within` is empty", "name a network, or leave it out");
            return None;
        }
        let networks: Vec<Option<Cidr>> = items.into_iter().map(|item| self.network(item)).collect();
        networks.into_iter().collect()
    }

    fn network(&self, node: Node<'a>) -> Option<Cidr> {
        let text = self.reader.string(node, "a network")?;
        let Some(cidr) = parse(text) else {
            let message = format!("`{text}` is no network");
            self.reader
                .error(node.span, "bad-network", &message, "write it as in \"10.0.0.0/8\" or \"fe80::/10\"");
            return None;
        };
        let first = first_address(cidr);
        if first != cidr.address {
            let message = format!("`{text}` has bits beyond its prefix");
            self.reader
                .error(node.span, "bad-network", &message, &format!("write `{first}/{}`", cidr.prefix));
            return None;
        }
        Some(cidr)
    }
}

fn parse(text: &str) -> Option<Cidr> {
    let (address, prefix) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit()) && (prefix == "0" || !prefix.starts_with('0'));
    let prefix: u8 = prefix.parse().ok().filter(|_| digits)?;
    (prefix <= if address.is_ipv4() { 32 } else { 128 }).then_some(Cidr { address, prefix })
}

fn first_address(cidr: Cidr) -> IpAddr {
    let prefix = u32::from(cidr.prefix);
    match cidr.address {
        IpAddr::V4(v4) => IpAddr::from((v4.to_bits() & u32::MAX.checked_shl(32 - prefix).unwrap_or(0)).to_be_bytes()),
        IpAddr::V6(v6) => IpAddr::from((v6.to_bits() & u128::MAX.checked_shl(128 - prefix).unwrap_or(0)).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::{first_address, parse};

    #[test]
    fn networks_are_an_address_and_a_prefix() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "fe80::/10", "10.0.0.1/32"] {
            let cidr = parse(text).unwrap();
            assert_eq!(first_address(cidr), cidr.address, "{text}");
        }
        for text in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "::/129",
            "x/8",
            "/8",
            "10.0.0.0/",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
        assert_eq!(first_address(parse("10.1.2.3/8").unwrap()).to_string(), "10.0.0.0");
        assert_eq!(first_address(parse("fe80::1/64").unwrap()).to_string(), "fe80::");
    }
}
