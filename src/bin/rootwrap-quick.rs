//! `rootwrap` as it is installed where speed counts: the usual call, and nothing else, without the start-up of a C library.
//!
//! A plain `rootwrap COMMAND ARGUMENT...` is sent as it stands, and a plain exit status is passed on. Everything else is done by the
//! full client, which this program becomes: before anything is sent where the call is not plain (options, other characters, a closed
//! descriptor, `ROOTWRAP_SOCKET`), and afterwards, with the connection, where something else comes than an exit status: a signal, an
//! error, the end of the connection. It takes no message apart but for its own request's echo: the state and the exit status.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

#[allow(unsafe_code)]
#[path = "../sys/bare.rs"]
mod bare;

use bare::Strings;
use core::ffi::CStr;

/// Where the service listens.
const SOCKET: &CStr = c"/run/rootwrap.sock";
/// Below the directory that holds `bin`.
const FULL_CLIENT: &[u8] = b"libexec/rootwrap/rootwrap-client";
/// Trouble of rootwrap itself, see rootwrap(1).
const TROUBLE: u8 = 125;
/// Arguments of a plain call, at most.
const MOST: usize = 200;
/// SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT and SIGTSTP: those that the full client sends on.
const FORWARDED: [u32; 8] = [1, 2, 3, 10, 12, 15, 18, 20];

/// A connection with a request on it.
struct Call {
    socket: i32,
    /// The command's, once it has been started.
    id: Option<[u8; 32]>,
}

fn run(arguments: &Strings, environment: &Strings) -> u8 {
    match plain_call(arguments, environment).map(follow) {
        Some(Ok(status)) => status,
        Some(Err(call)) => become_full_client(Some(&call), arguments, environment),
        None => become_full_client(None, arguments, environment),
    }
}

/// Sends a plain call; `None` where it is not plain, or nothing could be sent.
fn plain_call(arguments: &Strings, environment: &Strings) -> Option<Call> {
    let mut request = Bytes::<4096>::new();
    if !is_plain(arguments, environment) {
        return None;
    }
    let descriptors = write_request(arguments, &mut request)?;
    send(&request, descriptors)
}

fn is_plain(arguments: &Strings, environment: &Strings) -> bool {
    let command = arguments.get(1).unwrap_or_default();
    let other_socket = (0..environment.len()).any(|index| environment.get(index).is_some_and(|word| word.starts_with(b"ROOTWRAP_")));
    (2..=MOST).contains(&arguments.len()) && !command.is_empty() && !command.starts_with(b"-") && !other_socket
}

/// What a standard input is for the request.
enum Input {
    /// Passed on.
    Given,
    /// /dev/null: none is passed.
    Null,
    /// Closed, or a terminal or the like, with which more goes than a descriptor.
    Other,
}

impl Input {
    fn own() -> Self {
        const TYPE: u32 = 0o170_000;
        const CHARACTER_DEVICE: u32 = 0o020_000;
        // 1:3, see null(4).
        const NULL: u64 = 0x103;
        match bare::status(0) {
            Some((mode, NULL)) if mode & TYPE == CHARACTER_DEVICE => Self::Null,
            Some((mode, _)) if mode & TYPE != CHARACTER_DEVICE => Self::Given,
            _ => Self::Other,
        }
    }

    /// The descriptors that are sent, and their parameters.
    fn descriptors(&self) -> Option<(&'static [u32], &'static [u8])> {
        match self {
            Self::Given => Some((
                &[0, 1, 2],
                br#""stdinFileDescriptor":0,"stdoutFileDescriptor":1,"stderrFileDescriptor":2"#,
            )),
            Self::Null => Some((&[1, 2], br#""stdoutFileDescriptor":0,"stderrFileDescriptor":1"#)),
            Self::Other => None,
        }
    }
}

/// The call of `Run`, see rootwrap-protocol(7), and its descriptors; `None` where it is not plain.
fn write_request(arguments: &Strings, request: &mut Bytes<4096>) -> Option<&'static [u32]> {
    let (descriptors, parameters) = Input::own().descriptors()?;
    bare::status(1).and(bare::status(2))?;
    request.push(br#"{"method":"io.rootwrap.Run","parameters":{"argv":["#);
    for index in 1..arguments.len() {
        let word = arguments.get(index)?;
        if word.iter().any(|byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\')) {
            return None;
        }
        request.push(if index == 1 { b"\"" } else { b",\"" });
        request.push(word);
        request.push(b"\"");
    }
    request.push(b"],");
    request.push(parameters);
    request.push(b"},\"more\":true}\0");
    request.fits.then_some(descriptors)
}

/// Connects and sends, all of it; `None` where nothing was sent.
fn send(request: &Bytes<4096>, descriptors: &[u32]) -> Option<Call> {
    let socket = bare::connect(SOCKET.to_bytes()).ok()?;
    if bare::peer_uid(socket) != Some(0) || bare::owner(SOCKET) != Some(0) {
        return None;
    }
    let sent = bare::send(socket, request.get(), descriptors, bare::identity());
    // A request of this size is taken whole by an empty socket, or not at all.
    (usize::try_from(sent) == Ok(request.get().len())).then_some(Call { socket, id: None })
}

/// Waits for the exit status; gives the call back where something else happens.
fn follow(mut call: Call) -> Result<u8, Call> {
    let taken = FORWARDED.iter().filter(|signal| !bare::is_ignored(**signal));
    let Ok(signals) = i32::try_from(bare::signals(taken.fold(0, |mask, signal| mask | 1 << (signal - 1)))) else {
        return Err(call);
    };
    loop {
        // A signal stays pending for the full client.
        let [readable, signalled] = bare::wait([call.socket, signals]);
        if signalled || signals < 0 {
            return Err(call);
        }
        if readable {
            let mut buffer = [0; 2048];
            match message(call.socket, &mut buffer).map(read) {
                Some(Reply::Exited(status)) => return Ok(status),
                Some(Reply::Started(id, length)) if call.id.is_none() => {
                    call.id = Some(id);
                    bare::receive(call.socket, buffer.get_mut(..length).unwrap_or_default(), false);
                }
                _ => return Err(call),
            }
        }
    }
}

/// One whole message that waits to be received, with its NUL byte; it goes on waiting.
fn message(socket: i32, buffer: &mut [u8; 2048]) -> Option<&[u8]> {
    let length = usize::try_from(bare::receive(socket, buffer, true)).ok()?;
    let received = buffer.get(..length)?;
    let end = received.iter().position(|byte| *byte == 0)?;
    received.get(..=end)
}

enum Reply {
    /// The command's id; the message's length.
    Started([u8; 32], usize),
    Exited(u8),
    Other,
}

/// A quotation mark inside a JSON string has a backslash before it, so `"name":` can only be what it seems.
fn read(message: &[u8]) -> Reply {
    if !message.starts_with(br#"{"parameters":{"#) {
        return Reply::Other;
    }
    if let (Some(_), Some(id)) = (after(message, br#""continues":true"#), after(message, br#""id":""#)) {
        return match id.first_chunk::<32>() {
            Some(id) if id.iter().all(u8::is_ascii_hexdigit) => Reply::Started(*id, message.len()),
            _ => Reply::Other,
        };
    }
    match after(message, br#""exitCode":"#).map(number) {
        Some(Some(status)) => Reply::Exited(status),
        _ => Reply::Other,
    }
}

fn after<'m>(message: &'m [u8], key: &[u8]) -> Option<&'m [u8]> {
    let at = message.windows(key.len()).position(|window| window == key)?;
    message.get(at + key.len()..)
}

/// A decimal number at the start, up to 255, that a comma or brace ends.
fn number(text: &[u8]) -> Option<u8> {
    let digits = text.iter().position(|byte| !byte.is_ascii_digit())?;
    if !(1..=3).contains(&digits) || !matches!(text.get(digits), Some(b',' | b'}')) {
        return None;
    }
    let value = text
        .iter()
        .take(digits)
        .fold(0_u32, |value, digit| value * 10 + u32::from(digit - b'0'));
    u8::try_from(value).ok()
}

fn become_full_client(call: Option<&Call>, arguments: &Strings, environment: &Strings) -> u8 {
    let mut path = Bytes::<4096>::new();
    let mut own = [0; 4000];
    let own = usize::try_from(bare::own_path(&mut own)).ok().and_then(|length| own.get(..length));
    let is_slash = |byte: &u8| *byte == b'/';
    // Two levels up from PREFIX/bin/rootwrap.
    let bin = own.and_then(|own| own.get(..own.iter().rposition(is_slash)?));
    let prefix = bin.and_then(|bin| bin.get(..=bin.iter().rposition(is_slash)?));
    path.push(prefix.unwrap_or(b"/usr/"));
    path.push(FULL_CLIENT);
    path.push(b"\0");
    let Ok(path) = CStr::from_bytes_with_nul(path.get()) else {
        return TROUBLE;
    };
    match call {
        None => bare::exec(path, arguments, environment),
        Some(call) => {
            bare::keep_on_exec(call.socket);
            let mut resumed = Bytes::<64>::new();
            resumed.push(b"--resume=");
            resumed.push_number(call.socket);
            resumed.push(b":");
            resumed.push(call.id.as_ref().map_or(b"", |id| id.as_slice()));
            resumed.push(b"\0");
            if let Ok(resumed) = CStr::from_bytes_with_nul(resumed.get()) {
                bare::exec_with(path, &[c"rootwrap", resumed, c"--"], arguments, environment);
            }
        }
    }
    bare::complain("rootwrap: cannot start the full client, libexec/rootwrap/rootwrap-client; is rootwrap installed whole?\n");
    TROUBLE
}

/// Bytes up to a limit.
struct Bytes<const LIMIT: usize> {
    bytes: [u8; LIMIT],
    length: usize,
    fits: bool,
}

impl<const LIMIT: usize> Bytes<LIMIT> {
    fn new() -> Self {
        Self {
            bytes: [0; LIMIT],
            length: 0,
            fits: true,
        }
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn push(&mut self, more: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + more.len()) {
            Some(place) => {
                place.copy_from_slice(more);
                self.length += more.len();
            }
            None => self.fits = false,
        }
    }

    fn push_number(&mut self, number: i32) {
        let mut divisor = 1_000_000_000;
        let mut begun = false;
        while divisor > 0 {
            let digit = (number / divisor % 10).unsigned_abs() as u8;
            begun |= digit > 0 || divisor == 1;
            if begun {
                self.push(&[b'0' + digit]);
            }
            divisor /= 10;
        }
    }
}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    bare::complain("rootwrap: this should not have happened; please report it\n");
    bare::exit(TROUBLE)
}
