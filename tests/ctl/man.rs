//! The manual pages and completions under `packaging/` are what the command-line definitions say.
//!
//! `UPDATE_MAN=1 cargo test --test ctl man::` writes them anew.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

/// The programs with their manual sections.
fn programs() -> Vec<(clap::Command, &'static str)> {
    vec![
        (rootwrap::cli::rootwrap::Arguments::definition(), "1"),
        (rootwrap::cli::rootwrapctl::command(), "1"),
        (rootwrap::cli::rootwrapd::Arguments::command(), "8"),
    ]
}

#[test]
fn manual_pages_are_what_the_definitions_say() {
    for (command, section) in programs() {
        let name = format!("man/{}.{section}", command.get_name());
        compare_or_write(&name, &manual(&command, section));
    }
}

#[test]
fn completions_are_what_the_definitions_say() {
    for (mut command, section) in programs() {
        if section == "8" {
            continue; // started by systemd, not from a shell
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let name = command.get_name().to_owned();
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, &name, &mut text);
            let file = match shell {
                Shell::Zsh => format!("completions/_{name}"),
                Shell::Fish => format!("completions/{name}.fish"),
                _ => format!("completions/{name}.bash"),
            };
            compare_or_write(&file, &String::from_utf8(text).unwrap());
        }
    }
}

#[test]
fn hand_written_pages_name_only_pages_that_exist() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/man");
    let pages: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in &pages {
        let text = fs::read_to_string(directory.join(page)).unwrap().replace('\\', "");
        for (start, _) in text.match_indices("rootwrap") {
            let reference: String = text[start..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "-.()".contains(*c))
                .collect();
            if let Some((name, rest)) = reference.split_once('(') {
                let section = rest.split(')').next().unwrap_or_default();
                assert!(
                    pages.contains(&format!("{name}.{section}")),
                    "{page} refers to {name}({section}), which there is not"
                );
            }
        }
    }
}

/// Compares a file under `packaging/` with what it should be, or writes it.
fn compare_or_write(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name);
    if std::env::var_os("UPDATE_MAN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "packaging/{name} is not what the definition in src/cli says; write it anew with: UPDATE_MAN=1 cargo test --test ctl man::"
    );
}

/// One page: clap's sections, each subcommand in full, then the sections of `after_long_help`.
fn manual(command: &clap::Command, section: &str) -> String {
    let program = command.clone().disable_help_flag(true);
    let after = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(program.after_long_help(None::<&str>).after_help(None::<&str>))
        .title(command.get_name().to_uppercase())
        .section(section)
        .date("")
        .manual("rootwrap");
    let mut page = Vec::new();
    man.render_title(&mut page).unwrap();
    man.render_name_section(&mut page).unwrap();
    page.extend(synopsis(command).into_bytes());
    man.render_description_section(&mut page).unwrap();
    if command.has_subcommands() {
        Roff::new().control("SH", ["COMMANDS"]).to_writer(&mut page).unwrap();
    }
    for verb in command.get_subcommands() {
        page.extend(subcommand(command.get_name(), verb).into_bytes());
    }
    man.render_options_section(&mut page).unwrap();
    let mut text = String::from_utf8(page).unwrap();
    text.push_str(&sections(&after));
    text
}

/// The usage lines as `--help` has them.
fn synopsis(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]).control("nf", []);
    for line in usage.trim_start_matches("Usage:").lines() {
        roff.text([bold(line.trim())]);
    }
    roff.control("fi", []).to_roff()
}

/// A subcommand: its synopsis as the heading, its description and its own options.
fn subcommand(program: &str, verb: &clap::Command) -> String {
    let usage = verb
        .clone()
        .bin_name(format!("{program} {}", verb.get_name()))
        .render_usage()
        .to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let man = Man::new(verb.clone().disable_help_flag(true).disable_version_flag(true));
    let mut body = Vec::new();
    man.render_description_section(&mut body).unwrap();
    if verb.get_arguments().next().is_some() {
        man.render_options_section(&mut body).unwrap();
    }
    let body = String::from_utf8(body).unwrap();
    let body: Vec<&str> = body
        .lines()
        .filter(|line| !line.starts_with(".SH") && !line.starts_with(".ie") && !line.starts_with(".el"))
        .collect();
    let heading = Roff::new().control("SS", [usage.as_str()]).to_roff();
    format!("{heading}{}\n", body.join("\n"))
}

/// The sections of `after_long_help` in the form that `src/cli/mod.rs` describes.
fn sections(text: &str) -> String {
    let mut roff = Roff::new();
    // What the lines so far belong to: an entry's term (none: a paragraph), and its text.
    let mut open: Option<(Option<String>, String)> = None;
    for line in text.lines().chain([""]) {
        let flat = line.trim_start();
        let indent = line.len() - flat.len();
        let entry = flat.split_once("  ").filter(|_| indent == 2);
        if let Some((term, text)) = &mut open {
            if indent > 2 || (indent == 2 && entry.is_none() && term.is_none() && !flat.starts_with("$ ")) {
                text.push(' ');
                text.push_str(flat);
                continue;
            }
        }
        match open.take() {
            Some((Some(term), text)) => roff.control("TP", []).text([bold(term)]).text([roman(text)]),
            Some((None, text)) => roff.control("PP", []).text([roman(text)]),
            None => &mut roff,
        };
        if indent == 0 && line.ends_with(':') {
            roff.control("SH", [line.trim_end_matches(':').to_uppercase().as_str()]);
        } else if flat.starts_with("$ ") {
            roff.control("RS", ["4"]).text([bold(flat)]).control("RE", []);
        } else if !flat.is_empty() {
            let (term, text) = entry.map_or((None, flat), |(term, text)| (Some(term.to_owned()), text.trim_start()));
            open = Some((term, text.to_owned()));
        }
    }
    roff.to_roff()
}

#[test]
fn sections_of_a_help_text_become_headings_entries_and_paragraphs() {
    let text = "Exit status:\n  Its own. Else:\n  0   done\n      well\n\nNotes:\n  One\n  paragraph.\n\n  Another:\n  $ true -x\n";
    let page = sections(text).replace("\\-", "-");
    let body = page.split_once(".SH").unwrap().1;
    assert_eq!(
        body.split_whitespace().collect::<Vec<_>>().join(" "),
        r#""EXIT STATUS" .PP Its own. Else: .TP \fB0\fR done well .SH NOTES .PP One paragraph. .PP Another: .RS 4 \fB$ true -x\fR .RE"#
    );
}
