//! What a command costs through the service: every variant against a bare spawn of the same command, interleaved in one run.
//!
//! `bench-overhead ROUNDS CLIENT [SOCKET]`: CLIENT is the client command's path; with a second SOCKET the warm client is measured
//! against that service too (one with many filters, say). Absolute times mean little on a shared machine; the ratios are the result.
//! `bench-overhead --first`: microseconds from connecting to the first answer, for a service that has to be started for it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rootwrap::client::{Client, Sink};

const COMMAND: &str = "/usr/bin/true";
/// Rounds before anything counts.
const WARM_UP: usize = 50;
/// Between two measurements: what one leaves to do behind it (its records in the journal, the next parked child) is over then and
/// does not count against the next.
const PAUSE: Duration = Duration::from_millis(6);

type Failure = Box<dyn std::error::Error>;

struct Variant<'a> {
    name: &'static str,
    run: Box<dyn FnMut() -> Result<(), Failure> + 'a>,
    times: Vec<Duration>,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--first"] => first_answer(),
        [rounds, client] => compare(rounds.parse()?, client, None),
        [rounds, client, socket] => compare(rounds.parse()?, client, Some(socket)),
        _ => Err("usage: bench-overhead ROUNDS CLIENT [SOCKET] | bench-overhead --first".into()),
    }
}

fn first_answer() -> Result<(), Failure> {
    let start = Instant::now();
    Client::connect_default()?.status()?;
    println!("{}", start.elapsed().as_micros());
    Ok(())
}

fn compare(rounds: usize, client: &str, other: Option<&str>) -> Result<(), Failure> {
    let mut warm = Client::connect_default()?;
    let mut many = other.map(Client::connect).transpose()?;
    let mut variants = vec![
        variant("bare spawn", || spawn(&mut Command::new(COMMAND))),
        variant("client process", || spawn(Command::new(client).arg(COMMAND))),
        variant("warm client", || through(&mut warm)),
    ];
    if let Some(many) = &mut many {
        variants.push(variant("warm client, second service", || through(many)));
    }
    let mut order: Vec<usize> = (0..variants.len()).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15;
    for round in 0..WARM_UP + rounds {
        shuffle(&mut order, &mut random);
        for index in &order {
            let variant = &mut variants[*index];
            std::thread::sleep(PAUSE);
            let start = Instant::now();
            (variant.run)()?;
            if round >= WARM_UP {
                variant.times.push(start.elapsed());
            }
        }
    }
    report(&mut variants);
    Ok(())
}

/// No variant always runs after the same other one. The order is the same in every run.
fn shuffle(order: &mut [usize], random: &mut u64) {
    for last in (1..order.len()).rev() {
        // Xorshift, Marsaglia 2003.
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        order.swap(last, usize::try_from(*random % (last as u64 + 1)).unwrap_or(0));
    }
}

fn variant<'a>(name: &'static str, run: impl FnMut() -> Result<(), Failure> + 'a) -> Variant<'a> {
    Variant {
        name,
        run: Box::new(run),
        times: Vec::new(),
    }
}

fn spawn(command: &mut Command) -> Result<(), Failure> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    status
        .success()
        .then_some(())
        .ok_or_else(|| format!("{command:?}: {status}").into())
}

fn through(client: &mut Client) -> Result<(), Failure> {
    let null = || std::fs::OpenOptions::new().write(true).open("/dev/null");
    let output = client
        .command([COMMAND])
        .stdout(Sink::Descriptor(null()?.into()))
        .stderr(Sink::Descriptor(null()?.into()))
        .run()?;
    output
        .status
        .success()
        .then_some(())
        .ok_or_else(|| format!("{:?}", output.status).into())
}

fn report(variants: &mut [Variant<'_>]) {
    println!(
        "{:<30}{:>10}{:>10}{:>10}{:>10}{:>10}",
        COMMAND, "median", "p99", "min", "ratio", "p99 ratio"
    );
    let mut base = None;
    for variant in variants {
        variant.times.sort_unstable();
        let at = |percent: usize| variant.times[(variant.times.len() - 1) * percent / 100];
        let (median, p99, min) = (at(50), at(99), at(0));
        let (base_median, base_p99) = *base.get_or_insert((median, p99));
        println!(
            "{:<30}{:>7} us{:>7} us{:>7} us{:>9.2}x{:>9.2}x",
            variant.name,
            median.as_micros(),
            p99.as_micros(),
            min.as_micros(),
            median.as_secs_f64() / base_median.as_secs_f64(),
            p99.as_secs_f64() / base_p99.as_secs_f64(),
        );
    }
}
