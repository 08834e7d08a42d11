//! Talks to the service through zlink and checks what it answers; see README.md.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use zlink::tokio::unix::{self, Connection};
use zlink::varlink_service::Proxy as _;
use zlink::{Call, ReplyError, proxy};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[proxy("io.rootwrap")]
trait Rootwrap {
    async fn run(&mut self, argv: &[&str]) -> zlink::Result<Result<RunReply, RootwrapError>>;

    #[zlink(more, rename = "Run")]
    async fn run_more(
        &mut self,
        argv: &[&str],
    ) -> zlink::Result<impl futures_util::Stream<Item = zlink::Result<Result<RunReply, RootwrapError>>>>;

    async fn explain(&mut self, argv: &[&str]) -> zlink::Result<Result<ExplainReply, RootwrapError>>;

    async fn list_filters(&mut self) -> zlink::Result<Result<ListFiltersReply, RootwrapError>>;
}

/// Run with descriptors, which proxies do not have.
#[derive(Debug, Serialize)]
#[serde(tag = "method", content = "parameters")]
enum Methods<'a> {
    #[serde(rename = "io.rootwrap.Run", rename_all = "camelCase")]
    Run {
        argv: &'a [&'a str],
        stdout_file_descriptor: usize,
    },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum RunState {
    Started,
    Exited,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunReply {
    state: RunState,
    id: String,
    exit_code: Option<i64>,
    stdout: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ExplainReply {
    allowed: bool,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ListFiltersReply {
    filters: Vec<Filter>,
}

#[derive(Debug, Deserialize)]
struct Filter {
    name: String,
}

#[derive(Debug, ReplyError)]
#[zlink(interface = "io.rootwrap")]
#[allow(dead_code)] // the fields are for Debug
enum RootwrapError {
    NotPermitted { reason: String, message: String },
    NoSuchExecutable { command: String },
    Busy { what: String },
    LaunchFailed { step: String, errno: i64 },
    BadRequest { message: String },
    PolicyUnavailable,
    AuditUnavailable,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((socket, command)) = arguments.split_first() else {
        eprintln!("usage: interop-zlink SOCKET [COMMAND [ARGUMENT]...]");
        return ExitCode::FAILURE;
    };
    match check(socket, command).await {
        Ok(()) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("interop-zlink: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn check(socket: &str, command: &[&str]) -> Outcome<()> {
    let mut connection = unix::connect(socket).await?;
    introspection(&mut connection).await?;
    refusals(&mut connection).await?;
    if !command.is_empty() {
        captured(&mut connection, command).await?;
        with_more(&mut connection, command).await?;
        with_descriptor(&mut connection, command).await?;
    }
    Ok(())
}

/// A condition that must hold.
fn ensure(holds: bool, what: impl Into<String>) -> Outcome<()> {
    if holds { Ok(()) } else { Err(what.into().into()) }
}

async fn introspection(connection: &mut Connection) -> Outcome<()> {
    let interfaces: Vec<String> = {
        let info = connection.get_info().await?.map_err(|error| format!("GetInfo: {error:?}"))?;
        info.interfaces.iter().map(|name| name.to_string()).collect()
    };
    ensure(interfaces.iter().any(|name| name == "io.rootwrap"), format!("interfaces: {interfaces:?}"))?;
    for name in &interfaces {
        let reply = connection.get_interface_description(name.as_str().try_into()?).await?;
        let description = reply.map_err(|error| format!("GetInterfaceDescription: {error:?}"))?;
        let interface = description.parse()?;
        ensure(interface.name().as_str() == name, format!("{name} calls itself {}", interface.name()))?;
        let methods = interface.methods().count();
        ensure(methods == if name == "io.rootwrap" { 6 } else { 2 }, format!("{name} has {methods} methods"))?;
    }
    Ok(())
}

async fn refusals(connection: &mut Connection) -> Outcome<()> {
    let nobody = ["rootwrap-interop-that-no-filter-allows"];
    let explained = connection.explain(&nobody).await?.map_err(|error| format!("Explain: {error:?}"))?;
    ensure(!explained.allowed && explained.reason.is_some(), format!("{explained:?}"))?;
    match connection.run(&nobody).await? {
        Err(RootwrapError::NotPermitted { reason, .. }) => ensure(Some(reason) == explained.reason, "Run and Explain give different reasons")?,
        other => return Err(format!("a command that nobody is allowed: {other:?}").into()),
    }
    let listed = connection.list_filters().await?.map_err(|error| format!("ListFilters: {error:?}"))?;
    ensure(listed.filters.iter().all(|filter| !filter.name.is_empty()), "a filter without a name")
}

async fn captured(connection: &mut Connection, command: &[&str]) -> Outcome<()> {
    let explained = connection.explain(command).await?.map_err(|error| format!("Explain: {error:?}"))?;
    ensure(explained.allowed, format!("{command:?} is not allowed: {explained:?}"))?;
    let reply = connection.run(command).await?.map_err(|error| format!("Run: {error:?}"))?;
    ensure(reply.state == RunState::Exited && reply.exit_code == Some(0), format!("{reply:?}"))?;
    ensure(reply.stdout.is_some_and(|output| !output.is_empty()), "no output was captured")
}

async fn with_more(connection: &mut Connection, command: &[&str]) -> Outcome<()> {
    let replies = connection.run_more(command).await?;
    let mut replies = std::pin::pin!(replies);
    let mut seen = Vec::new();
    while let Some(reply) = replies.next().await {
        seen.push(reply?.map_err(|error| format!("Run with more: {error:?}"))?);
    }
    match seen.as_slice() {
        [started, exited] => ensure(
            started.state == RunState::Started && exited.state == RunState::Exited && started.id == exited.id,
            format!("{seen:?}"),
        ),
        _ => Err(format!("not two replies: {seen:?}").into()),
    }
}

async fn with_descriptor(connection: &mut Connection, command: &[&str]) -> Outcome<()> {
    let (mut ours, theirs) = std::io::pipe()?;
    let run = Methods::Run {
        argv: command,
        stdout_file_descriptor: 0,
    };
    connection.send_call(&Call::new(run), vec![OwnedFd::from(theirs)]).await?;
    let (reply, _) = connection.receive_reply::<RunReply, RootwrapError>().await?;
    let reply = reply.map_err(|error| format!("Run with a descriptor: {error:?}"))?;
    let reply = reply.into_parameters().ok_or("Run with a descriptor: no parameters")?;
    ensure(reply.exit_code == Some(0) && reply.stdout.is_none(), format!("{reply:?}"))?;
    let mut output = Vec::new();
    ours.read_to_end(&mut output)?;
    ensure(!output.is_empty(), "nothing came through the descriptor")
}
