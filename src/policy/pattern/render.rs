//! Elements as one line for people: `link set dev INTERFACE mtu INT[68-65535]`.

use crate::policy::spec::{Element, ElementKind, InnerFilters, IpFamily, OptionSpec, Prefix};
use crate::policy::text::printable;

/// The arguments of a filter.
pub(in crate::policy) fn arguments(elements: &[Element]) -> String {
    let mut out = String::new();
    join(&mut out, elements, " ");
    out
}

fn join(out: &mut String, elements: &[Element], separator: &str) {
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        write(out, element);
    }
}

fn write(out: &mut String, element: &Element) {
    match &element.kind {
        ElementKind::Literal(text) => literal(out, text),
        ElementKind::Sequence(elements) => join(out, elements, " "),
        ElementKind::Any => out.push_str("ANY"),
        ElementKind::Regex(source) => out.push_str(&format!("/{}/", printable(source.as_bytes()))),
        ElementKind::Int { min, max } => out.push_str(&format!("INT[{min}-{max}]")),
        ElementKind::Ip { family, prefix, within } => {
            out.push_str(match family {
                IpFamily::Any => "IP",
                IpFamily::V4 => "IPV4",
                IpFamily::V6 => "IPV6",
            });
            out.push_str(match prefix {
                Prefix::No => "",
                Prefix::Yes => "/PREFIX",
                Prefix::Maybe => "[/PREFIX]",
            });
            let networks: Vec<String> = within.iter().map(ToString::to_string).collect();
            if !networks.is_empty() {
                out.push_str(&format!("(within {})", networks.join("|")));
            }
        }
        ElementKind::Mac => out.push_str("MAC"),
        ElementKind::Uuid => out.push_str("UUID"),
        ElementKind::Host => out.push_str("HOST"),
        ElementKind::Interface => out.push_str("INTERFACE"),
        ElementKind::PathUnder { base, .. } => out.push_str(&format!("{}/PATH", base.display().to_string().trim_end_matches('/'))),
        ElementKind::PidOf { executables, .. } => {
            let names: Vec<String> = executables.iter().map(|path| path.display().to_string()).collect();
            out.push_str(&format!("PID[{}]", names.join("|")));
        }
        ElementKind::Concat(elements) => join(out, elements, ""),
        ElementKind::List { item, separator } => {
            write(out, item);
            out.push_str(&format!("[{}...]", printable(separator.as_bytes())));
        }
        ElementKind::OneOf(elements) => {
            out.push('(');
            join(out, elements, "|");
            out.push(')');
        }
        ElementKind::Optional(element) => {
            out.push('[');
            write(out, element);
            out.push(']');
        }
        ElementKind::Repeat { item, min, max } => {
            out.push('(');
            write(out, item);
            let max = max.map(|max| max.to_string()).unwrap_or_default();
            out.push_str(&format!("){{{min},{max}}}"));
        }
        ElementKind::Options(specs) => {
            for (at, spec) in specs.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                option(out, spec);
            }
        }
        ElementKind::Command(InnerFilters::Any) => out.push_str("COMMAND..."),
        ElementKind::Command(InnerFilters::Named(names)) => {
            let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
            out.push_str(&format!("COMMAND[{}]...", names.join("|")));
        }
    }
}

fn option(out: &mut String, spec: &OptionSpec) {
    let (open, close) = if spec.required { ("", "") } else { ("[", "]") };
    out.push_str(open);
    out.push_str(&spec.keys.join("|"));
    if let Some(value) = &spec.value {
        if !spec.keys.iter().all(|key| key.ends_with('=')) {
            out.push(' ');
        }
        write(out, value);
    }
    out.push_str(close);
    if spec.many {
        out.push_str("...");
    }
}

fn literal(out: &mut String, text: &[u8]) {
    let plain = !text.is_empty() && text.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'`[](){}|".contains(byte));
    if plain {
        out.push_str(&String::from_utf8_lossy(text));
    } else {
        out.push_str(&format!("\"{}\"", printable(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{concat, list, literal, one_of, option, optional, options, repeat, sequence, value};
    use super::*;

    #[test]
    fn a_filter_fits_on_a_line() {
        let int = || value(ElementKind::Int { min: 68, max: 65535 });
        let args = [
            literal("link"),
            literal("a b"),
            optional(sequence(vec![literal("dev"), value(ElementKind::Interface)])),
            one_of(vec![literal("on"), concat(vec![literal("mtu="), int()])]),
            repeat(list(value(ElementKind::Uuid), ","), 1, Some(3)),
            options(vec![option(&["-w", "--wait="], Some(int())), option(&["-n"], None)]),
        ];
        assert_eq!(
            arguments(&args),
            "link \"a b\" [dev INTERFACE] (on|mtu=INT[68-65535]) (UUID[,...]){1,3} [-w|--wait= INT[68-65535]] [-n]"
        );
    }
}
