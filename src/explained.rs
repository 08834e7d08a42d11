//! An explanation as `io.rootwrap.Explain` says it: the same from the service and from `rootwrapctl` over files.
#![forbid(unsafe_code)]

use crate::policy::spec::{Capabilities, Execution};
use crate::policy::{Explanation, Outcome, Permit, capability, explain};
use crate::protocol::io_rootwrap::{ExplainReply, Mismatch, Privileges, Tried};

/// The reply. `executable` finds what would be executed; `None` where it does not exist or nothing is executed.
pub fn reply(explanation: Explanation, executable: impl FnOnce(&Permit) -> Option<String>) -> ExplainReply {
    let mut reply = ExplainReply {
        tried: explanation.tried.into_iter().map(tried).collect(),
        ..ExplainReply::default()
    };
    match explanation.outcome {
        Outcome::Allow(permit) => {
            reply.allowed = true;
            reply.filter = Some(permit.filter().name.clone());
            reply.inner_filter = permit.inner().map(|inner| inner.name.clone());
            reply.privileges = Some(privileges(permit.execution()));
            reply.executable = executable(&permit);
        }
        Outcome::Deny(denial) => {
            reply.reason = Some(denial.reason.to_string());
            reply.message = Some(denial.message);
        }
        // Every question is answered by now; if not, it is no yes.
        Outcome::Ask(_) => reply.message = Some("the answer depends on the system".to_owned()),
    }
    reply
}

fn tried(tried: explain::Tried) -> Tried {
    Tried {
        filter: tried.filter,
        source: tried.source,
        mismatch: tried.mismatch.map(|mismatch| Mismatch {
            argument: mismatch.argument.and_then(|argument| u32::try_from(argument).ok()),
            expected: mismatch.expected,
        }),
    }
}

/// With what it runs; a capability that has no name here by its number.
fn privileges(execution: &Execution) -> Privileges {
    let named = |number: u8| capability::name(number).map_or_else(|| number.to_string(), str::to_owned);
    Privileges {
        run_as: execution.run_as.user.clone(),
        capabilities: match execution.capabilities {
            Capabilities::All => vec!["all".to_owned()],
            Capabilities::Set(bits) => (0..64_u8).filter(|number| bits >> number & 1 == 1).map(named).collect(),
        },
    }
}
