//! Runs programs: divides arguments among elements.
//!
//! A pair of (instruction, argument) is tried once and never again, so that the work is bounded by the product of both,
//! whatever the nesting. Options elements and the values of options have one result each and are not reconsidered. A [`Budget`] bounds
//! the whole work of a filter, inner commands included: what it does not suffice for is no match.

use std::cell::Cell;
use std::collections::HashMap;

use super::intern::ProgramRef;
use super::options::{Entry, Following, Key, OptionSet};
use super::program::{Inst, Program};
use super::{Arena, Lean};
use crate::policy::facts::{Facts, Question};
use crate::policy::text::quoted;
use crate::policy::verdict::Verdict;

/// Steps of one filter over one request, at most: some hundred for each of 4,096 arguments.
const MAX_STEPS: u64 = 1 << 20;
/// Bytes of an argument that are judged in one step, about.
const BYTES_A_STEP: usize = 64;

/// What the work of one filter may cost.
#[derive(Debug)]
pub(in crate::policy) struct Budget(Cell<u64>);

impl Budget {
    pub(in crate::policy) fn new() -> Self {
        Self(Cell::new(MAX_STEPS))
    }

    /// Takes some steps; no, when there are none left.
    fn spend(&self, steps: usize) -> bool {
        let left = self.0.get().saturating_sub(steps as u64);
        self.0.set(left);
        left > 0
    }

    /// Steps so far.
    #[cfg(test)]
    fn spent(&self) -> u64 {
        MAX_STEPS - self.0.get()
    }
}

/// Arguments that belong to one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Covered {
    /// Index of the first.
    pub(in crate::policy) at: usize,
    /// How many.
    pub(in crate::policy) count: usize,
    /// What takes them.
    pub(in crate::policy) by: By,
}

/// What takes arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum By {
    /// Each is taken by this part.
    Part(u32),
    /// The spelling of an option.
    Key,
    /// The spelling of an option of this length, and its value.
    Joined {
        /// Judges the value.
        part: u32,
        /// Where the value begins.
        skip: usize,
    },
    /// An inner command.
    Command,
}

/// Notes how far a program came: for explanations, and to find secrets.
#[derive(Debug, Default)]
pub(in crate::policy) struct Tracker {
    /// Where the most advanced attempt failed.
    pub(in crate::policy) furthest: usize,
    /// What was expected there.
    pub(in crate::policy) expected: Vec<String>,
    /// Arguments that a secret element was tried on.
    pub(in crate::policy) secrets: Vec<usize>,
}

impl Tracker {
    /// Nothing fitted at this argument.
    pub(in crate::policy) fn fail(&mut self, at: usize, expected: impl FnOnce() -> String) {
        if at < self.furthest {
            return;
        }
        if at > self.furthest {
            self.furthest = at;
            self.expected.clear();
        }
        let expected = expected();
        if !self.expected.contains(&expected) {
            self.expected.push(expected);
        }
    }
}

/// Judges whether the arguments from an index on are an allowed command: index of the inner command, of the argument.
pub(in crate::policy) type JudgeCommand<'c> = dyn FnMut(u32, usize) -> bool + 'c;

/// Runs the programs of one filter over one list of arguments.
pub(in crate::policy) struct Machine<'a> {
    arena: &'a Arena,
    args: &'a [Vec<u8>],
    lean: Lean<'a>,
    facts: &'a Facts,
    tracker: Option<&'a mut Tracker>,
    /// For each part: one past the last of the arguments from an index on that it takes, plus one.
    runs: HashMap<u32, Vec<u32>>,
    budget: &'a Budget,
}

/// Where an attempt can go on.
enum Retry {
    At {
        pc: usize,
        at: usize,
    },
    Fewer {
        pc: usize,
        at: usize,
        part: u32,
        count: usize,
        min: usize,
    },
}

/// When a program is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// All arguments are covered.
    Everything,
    /// As many as possible.
    Most,
}

impl<'a> Machine<'a> {
    pub(in crate::policy) fn new(
        arena: &'a Arena,
        args: &'a [Vec<u8>],
        facts: &'a Facts,
        budget: &'a Budget,
        tracker: Option<&'a mut Tracker>,
    ) -> Self {
        Self {
            arena,
            args,
            lean: Lean::new(facts),
            facts,
            tracker,
            runs: HashMap::new(),
            budget,
        }
    }

    /// How a filter's program covers all arguments, if it does.
    pub(in crate::policy) fn divide(&mut self, program: ProgramRef, command: &mut JudgeCommand<'_>) -> Option<Vec<Covered>> {
        let program = self.arena.program(program);
        self.run(program, 0, Goal::Everything, command).map(|(covered, _)| covered)
    }

    fn run(&mut self, program: &Program, from: usize, goal: Goal, command: &mut JudgeCommand<'_>) -> Option<(Vec<Covered>, usize)> {
        let mut path: Vec<Covered> = Vec::new();
        let mut retries: Vec<(Retry, usize)> = Vec::new();
        let mut visited = Visited::new(program.len(), from, self.args.len());
        let mut best: Option<(Vec<Covered>, usize)> = None;
        let mut here = Some((0, from));
        loop {
            let (pc, at) = match here.take() {
                Some(here) => here,
                None => match retries.pop() {
                    None => return best,
                    Some((retry, kept)) => {
                        path.truncate(kept);
                        self.resume(retry, &mut path, &mut retries)
                    }
                },
            };
            if !self.budget.spend(1) {
                self.note(self.args.len(), || "arguments that can be divided in fewer ways".to_owned());
                return None;
            }
            // On a straight line nothing can come twice.
            if (visited.used() || !retries.is_empty()) && !visited.first_time(pc, at) {
                continue;
            }
            match *program.get(pc)? {
                Inst::Take(part) => {
                    if self.takes(part, at) {
                        path.push(Covered {
                            at,
                            count: 1,
                            by: By::Part(part),
                        });
                        here = Some((pc + 1, at + 1));
                    }
                }
                Inst::Many { part, min, max } => {
                    let count = self.run_of(part, at).min(usize::from(max));
                    if count < usize::from(max) {
                        self.fail(part, at + count);
                    }
                    if count >= usize::from(min) {
                        let retry = Retry::Fewer {
                            pc: pc + 1,
                            at,
                            part,
                            count,
                            min: usize::from(min),
                        };
                        here = Some(self.resume(retry, &mut path, &mut retries));
                    }
                }
                Inst::Split { first, second } => {
                    retries.push((Retry::At { pc: second as usize, at }, path.len()));
                    here = Some((first as usize, at));
                }
                Inst::Jump(target) => here = Some((target as usize, at)),
                Inst::Options(set) => {
                    if let Some((covered, end)) = self.options(set, at) {
                        path.extend(covered);
                        here = Some((pc + 1, end));
                    }
                }
                Inst::Command(inner) => {
                    if at < self.args.len() && command(inner, at) {
                        path.push(Covered {
                            at,
                            count: self.args.len() - at,
                            by: By::Command,
                        });
                        return Some((path, self.args.len()));
                    }
                    let arena = self.arena;
                    self.note(at, || arena.inner(inner).map(|inner| inner.expected()).unwrap_or_default());
                }
                Inst::Accept if at == self.args.len() => return Some((path, at)),
                Inst::Accept if goal == Goal::Everything => self.note(at, || "no more arguments".to_owned()),
                Inst::Accept => {
                    if best.as_ref().is_none_or(|(_, end)| *end < at) {
                        self.budget.spend(path.len());
                        best = Some((path.clone(), at));
                    }
                }
            }
        }
    }

    /// Takes up an attempt; what is left of it goes back.
    fn resume(&mut self, retry: Retry, path: &mut Vec<Covered>, retries: &mut Vec<(Retry, usize)>) -> (usize, usize) {
        match retry {
            Retry::At { pc, at } => (pc, at),
            Retry::Fewer { pc, at, part, count, min } => {
                if count > min {
                    let fewer = Retry::Fewer {
                        pc,
                        at,
                        part,
                        count: count - 1,
                        min,
                    };
                    retries.push((fewer, path.len()));
                }
                if count > 0 {
                    path.push(Covered {
                        at,
                        count,
                        by: By::Part(part),
                    });
                }
                (pc, at + count)
            }
        }
    }

    /// Whether a part takes an argument.
    fn takes(&mut self, part: u32, at: usize) -> bool {
        let taken = self.judge(part, at);
        if !taken {
            self.fail(part, at);
        }
        taken
    }

    fn judge(&mut self, index: u32, at: usize) -> bool {
        self.lean.open.clear();
        let Some(part) = self.arena.part(index) else {
            return false;
        };
        if part.secret {
            if let Some(tracker) = &mut self.tracker {
                tracker.secrets.push(at);
            }
        }
        let Some(argument) = self.args.get(at) else {
            return false;
        };
        self.budget.spend(argument.len() / BYTES_A_STEP);
        part.accepts(argument, true, &mut self.lean)
    }

    /// How many arguments from an index on a part takes; each is judged once.
    fn run_of(&mut self, part: u32, at: usize) -> usize {
        let mut known = self.runs.remove(&part).unwrap_or_else(|| vec![0; self.args.len() + 1]);
        let mut end = at;
        let end = loop {
            match known.get(end) {
                Some(0) if self.judge(part, end) => end += 1,
                Some(0) | None => break end,
                Some(known) => break *known as usize - 1,
            }
        };
        let noted = u32::try_from(end + 1).unwrap_or(0);
        known.iter_mut().take(end + 1).skip(at).for_each(|known| *known = noted);
        self.runs.insert(part, known);
        end - at
    }

    fn fail(&mut self, part: u32, at: usize) {
        let Some(part) = self.arena.part(part) else {
            return;
        };
        let dash = self.args.get(at).is_some_and(|argument| part.refuses_dash(argument));
        let rule = if dash { " that does not begin with `-`" } else { "" };
        self.note(at, || format!("{}{rule}", part.expected()));
    }

    fn note(&mut self, at: usize, expected: impl FnOnce() -> String) {
        if let Some(tracker) = &mut self.tracker {
            tracker.fail(at, expected);
        }
    }

    /// All options from an index on.
    fn options(&mut self, index: u32, mut at: usize) -> Option<(Vec<Covered>, usize)> {
        let set = self.arena.option_set(index)?;
        let mut covered = Vec::new();
        let mut seen = vec![false; set.entries.len()];
        while let Some((key, entry)) = self.args.get(at).and_then(|argument| find(set, argument)) {
            let seen = seen.get_mut(key.entry)?;
            if *seen && !entry.many {
                self.note(at, || format!("the option {} only once", quoted(&entry.name)));
                return None;
            }
            *seen = true;
            at = if key.joined {
                self.joined(key, entry, at, &mut covered)?
            } else {
                self.separate(entry, at, &mut covered)?
            };
        }
        let missing = set.entries.iter().zip(&seen).find(|(entry, seen)| entry.required && !**seen);
        if let Some((entry, _)) = missing {
            self.note(at, || format!("the option {}, which must be there", quoted(&entry.name)));
            return None;
        }
        if seen.iter().zip(&set.entries).any(|(seen, entry)| !seen || entry.many) {
            self.note(at, || set.expected());
        }
        Some((covered, at))
    }

    /// `--wait=10`.
    fn joined(&mut self, key: &Key, entry: &Entry, at: usize, covered: &mut Vec<Covered>) -> Option<usize> {
        self.budget.spend(1);
        let (part, skip) = (entry.joined?, key.spelling.len());
        let by = By::Joined { part, skip };
        covered.push(Covered { at, count: 1, by });
        if self.judge_joined(part, skip, at) {
            return Some(at + 1);
        }
        let arena = self.arena;
        self.note(at, || {
            let value = arena.part(part).map(|part| part.expected()).unwrap_or_default();
            format!("{value} after {}", quoted(&key.spelling))
        });
        None
    }

    fn judge_joined(&mut self, part: u32, skip: usize, at: usize) -> bool {
        self.lean.open.clear();
        let value = self.args.get(at).and_then(|argument| argument.get(skip..));
        let part = self.arena.part(part);
        match (value, part) {
            (Some(value), Some(part)) => {
                self.budget.spend(value.len() / BYTES_A_STEP);
                part.accepts(value, false, &mut self.lean)
            }
            _ => false,
        }
    }

    /// `-w`, and what follows it.
    fn separate(&mut self, entry: &Entry, at: usize, covered: &mut Vec<Covered>) -> Option<usize> {
        self.budget.spend(1);
        covered.push(Covered { at, count: 1, by: By::Key });
        let at = at + 1;
        match &entry.value {
            Following::Nothing => Some(at),
            Following::One(part) => {
                covered.push(Covered {
                    at,
                    count: 1,
                    by: By::Part(*part),
                });
                self.takes(*part, at).then_some(at + 1)
            }
            Following::Several(program) => {
                let (value, end) = self.run(program, at, Goal::Most, &mut |_, _| false)?;
                covered.extend(value);
                Some(end)
            }
        }
    }

    /// Judges a division once more, from the start: every argument is covered once, in order, by something that takes it.
    /// Also gives the questions that it leans on. This, not the search, is what a permit rests on.
    pub(in crate::policy) fn verify(&mut self, covered: &[Covered]) -> (Verdict, Vec<Question>) {
        let mut next = 0;
        let mut questions = Vec::new();
        for cover in covered {
            let range = cover.at..cover.at + cover.count;
            let fits = cover.at == next
                && match cover.by {
                    By::Key => cover.count == 1,
                    By::Command => range.end == self.args.len(),
                    By::Joined { part, skip } => {
                        let fits = cover.count == 1 && self.judge_joined(part, skip, cover.at);
                        questions.append(&mut self.lean.open);
                        fits
                    }
                    By::Part(part) => range.clone().all(|at| {
                        let fits = self.judge(part, at);
                        questions.append(&mut self.lean.open);
                        fits
                    }),
                };
            if !fits {
                return (Verdict::DENY, Vec::new());
            }
            next = range.end;
        }
        questions.retain(|question| self.facts.get(question).is_none());
        (Verdict::of(next == self.args.len()), questions)
    }
}

fn find<'s>(set: &'s OptionSet, argument: &[u8]) -> Option<(&'s Key, &'s Entry)> {
    let key = set.find(argument)?;
    Some((key, set.entries.get(key.entry)?))
}

/// Pairs of (instruction, argument) that were tried.
struct Visited {
    bits: Vec<u64>,
    instructions: usize,
    from: usize,
    arguments: usize,
}

impl Visited {
    fn new(instructions: usize, from: usize, to: usize) -> Self {
        Self {
            bits: Vec::new(),
            instructions,
            from,
            arguments: to + 1 - from.min(to),
        }
    }

    /// Whether it was needed so far.
    fn used(&self) -> bool {
        !self.bits.is_empty()
    }

    fn first_time(&mut self, pc: usize, at: usize) -> bool {
        if self.bits.is_empty() {
            self.bits = vec![0; (self.instructions * self.arguments).div_ceil(64)];
        }
        let index = pc * self.arguments + (at - self.from);
        let Some(word) = self.bits.get_mut(index / 64) else {
            return false;
        };
        let bit = 1 << (index % 64);
        let first = *word & bit == 0;
        *word |= bit;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{compile, dash, literal, one_of, option, optional, options, repeat, sequence, value};
    use super::*;
    use crate::policy::spec::{Element, ElementKind};

    fn steps(args: &[Element], argv: &[&str]) -> (bool, u64) {
        let (arena, compiled) = compile(args);
        let argv: Vec<Vec<u8>> = argv.iter().map(|a| a.as_bytes().to_vec()).collect();
        let (facts, budget) = (Facts::lexical(), Budget::new());
        let mut machine = Machine::new(&arena, &argv, &facts, &budget, None);
        let found = machine.divide(compiled.program, &mut |_, _| false).is_some();
        (found, budget.spent())
    }

    /// Patterns on which plain backtracking takes exponential time.
    fn traps() -> Vec<Vec<Element>> {
        let a = || literal("a");
        let stars = (0..12).map(|_| repeat(a(), 0, None)).chain([literal("b")]).collect();
        let options = (0..40)
            .map(|_| optional(a()))
            .chain((0..40).map(|_| a()))
            .chain([literal("b")])
            .collect();
        let nested = (0..6).fold(a(), |inner, _| repeat(inner, 1, None));
        let choices = repeat(one_of(vec![a(), sequence(vec![a(), a()]), sequence(vec![a(), a(), a()])]), 0, None);
        let counted = repeat(repeat(repeat(a(), 1, Some(9)), 1, Some(9)), 1, Some(9));
        vec![
            stars,
            options,
            vec![nested, literal("b")],
            vec![choices, literal("b")],
            vec![counted, literal("b")],
        ]
    }

    #[test]
    fn the_number_of_steps_is_bounded_by_instructions_times_arguments() {
        for trap in traps() {
            for count in [10, 40, 400] {
                let (found, steps) = steps(&trap, &vec!["a"; count]);
                assert!(!found || count == 0);
                let (arena, compiled) = compile(&trap);
                // Twice: an attempt that comes too late is a step as well. Nine: what the counters hold at most.
                let pairs = arena.program(compiled.program).len() as u64 * (count as u64 + 1);
                let bound = 2 * 9 * pairs;
                assert!(steps <= bound, "{steps} > {bound} for {count} arguments");
            }
        }
    }

    #[test]
    fn doubling_the_arguments_about_doubles_the_steps() {
        for trap in traps() {
            let (_, one) = steps(&trap, &["a"; 400]);
            let (_, two) = steps(&trap, &["a"; 800]);
            assert!(two <= one * 5 / 2, "{one} then {two}");
        }
    }

    /// The value of an option is tried anew for each place where the options could begin.
    fn cubic() -> Vec<Element> {
        let dashed = || dash(value(ElementKind::Any));
        let mut option = option(&["-a"], Some(optional(sequence(vec![repeat(dashed(), 1, None), literal("end")]))));
        option.many = true;
        vec![repeat(dashed(), 0, None), options(vec![option]), literal("zend")]
    }

    #[test]
    fn the_work_of_one_filter_has_an_end_and_then_it_does_not_match() {
        assert!(steps(&cubic(), &["-a", "zend"]).0);
        let mut many = vec!["-a"; 4000];
        let (found, spent) = steps(&cubic(), &many);
        assert!(!found && spent == MAX_STEPS, "{spent}");
        // What fits at once costs little, however long it is.
        many = vec!["a"; 4000];
        many.push("zend");
        let (found, spent) = steps(&cubic(), &many);
        assert!(found && spent < 20_000, "{spent}");
    }

    #[test]
    fn long_arguments_cost_more_than_short_ones() {
        let long = "a".repeat(1 << 17);
        let args = [repeat(
            one_of(vec![sequence(vec![value(ElementKind::Mac), literal("x")]), literal("y")]),
            0,
            None,
        )];
        assert!(steps(&args, &[&long]).1 > steps(&args, &["a"]).1 + 1000);
    }

    #[test]
    fn straight_programs_take_one_step_for_each_instruction() {
        let args = [literal("link"), literal("set"), value(ElementKind::Interface)];
        assert_eq!(steps(&args, &["link", "set", "eth0"]), (true, 4));
    }

    #[test]
    fn a_division_that_is_not_whole_is_never_verified() {
        let (arena, compiled) = compile(&[literal("a"), literal("b")]);
        let argv = vec![b"a".to_vec(), b"b".to_vec()];
        let (facts, budget) = (Facts::lexical(), Budget::new());
        let mut machine = Machine::new(&arena, &argv, &facts, &budget, None);
        let whole = machine.divide(compiled.program, &mut |_, _| false).unwrap();
        assert!(machine.verify(&whole).0.allows());
        assert!(!machine.verify(&whole[..1]).0.allows());
        assert!(!machine.verify(&whole[1..]).0.allows());
        assert!(!machine.verify(&[]).0.allows());
        let swapped = [Covered { at: 0, ..whole[1] }, Covered { at: 1, ..whole[0] }];
        assert!(!machine.verify(&swapped).0.allows());
    }
}
