//! `capabilities`: names of capabilities(7), or `"all"`.

use super::reader::{Node, Reader};
use super::suggest;
use crate::policy::capability;
use crate::policy::spec::Capabilities;

/// Reads them. Whether "all" is linted is the caller's choice: a `[[test]]` only repeats what a filter says.
pub(crate) fn read<'a>(reader: Reader<'a>, node: Node<'a>, lint: bool) -> Option<Capabilities> {
    if node.value.as_str() == Some("all") {
        if lint {
            reader.warning(
                node.span,
                "all-capabilities",
                "\"all\" is full root, with everything that root can do to this machine",
                "name the capabilities that the command needs",
            );
        }
        return Some(Capabilities::All);
    }
    let names = reader.strings(node, "`capabilities` is \"all\" or a list of names", "a capability")?;
    let before = reader.report.errors();
    let mut bits = 0;
    for (name, span) in names {
        match capability::number(name) {
            Some(number) => bits |= 1u64 << number,
            None => {
                let bare = name.to_lowercase();
                let bare = bare.strip_prefix("cap_").unwrap_or(&bare);
                let hint = match suggest::nearest(bare, capability::all()) {
                    _ if bare == "all" => "write capabilities = \"all\", not in a list".to_owned(),
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "capabilities(7) lists them; write them in lower case without `cap_`".to_owned(),
                };
                reader.error(span, "unknown-capability", &format!("there is no capability `{name}`"), &hint);
            }
        }
    }
    // strings() reports what is no string and leaves it out.
    let complete = node
        .value
        .as_array()
        .is_some_and(|items| items.iter().all(|item| item.get_ref().is_str()));
    (complete && reader.report.errors() == before).then_some(Capabilities::Set(bits))
}
