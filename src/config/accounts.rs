//! Users and groups by name, without ever waiting long: /etc/passwd and /etc/group first, then the name service in a thread of
//! its own, with one deadline for all questions of a load.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::unistd::{Group, Uid, User};

/// How long the name service may take for all questions of one load.
const PATIENCE: Duration = Duration::from_secs(3);

/// What passwd(5) says of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    pub home: String,
    pub shell: String,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lookup<T> {
    Found(T),
    /// Nobody has that name.
    Unknown,
    /// The name service failed or did not answer in time.
    NoAnswer,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    User(String),
    Uid(u32),
    Group(String),
}

#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Account(Account),
    Gid(u32),
}

/// Asks the name service; may block.
pub(crate) type Ask = fn(&Question) -> Lookup<Answer>;

/// All look-ups of one load.
pub(crate) struct Accounts {
    users: Vec<Account>,
    by_name: HashMap<String, usize>,
    by_uid: HashMap<u32, usize>,
    groups: HashMap<String, u32>,
    /// Gids by member's name.
    memberships: HashMap<String, Vec<u32>>,
    answers: RefCell<HashMap<Question, Lookup<Answer>>>,
    service: OnceCell<Option<Service>>,
    silent: Cell<bool>,
    ask: Ask,
    patience: Duration,
}

struct Service {
    questions: Sender<Question>,
    answers: Receiver<(Question, Lookup<Answer>)>,
    deadline: Instant,
}

impl Accounts {
    /// This machine's.
    pub fn of_this_machine() -> Self {
        let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
        Self::new(&read("/etc/passwd"), &read("/etc/group"), ask_the_system, PATIENCE)
    }

    pub fn new(passwd: &str, group: &str, ask: Ask, patience: Duration) -> Self {
        let users: Vec<Account> = passwd.lines().filter_map(account).collect();
        let mut accounts = Self {
            by_name: HashMap::new(),
            by_uid: HashMap::new(),
            groups: HashMap::new(),
            memberships: HashMap::new(),
            answers: RefCell::default(),
            service: OnceCell::new(),
            silent: Cell::new(false),
            ask,
            patience,
            users: Vec::new(),
        };
        // The first line of a name counts, as for getpwnam(3).
        for (index, user) in users.iter().enumerate() {
            accounts.by_name.entry(user.name.clone()).or_insert(index);
            accounts.by_uid.entry(user.uid).or_insert(index);
        }
        accounts.users = users;
        for (name, gid, members) in group.lines().filter_map(group_line) {
            accounts.groups.entry(name.to_owned()).or_insert(gid);
            for member in members.split(',').filter(|member| !member.is_empty()) {
                accounts.memberships.entry(member.to_owned()).or_default().push(gid);
            }
        }
        accounts
    }

    pub fn user(&self, name: &str) -> Lookup<Account> {
        self.account(self.by_name.get(name), || Question::User(name.to_owned()))
    }

    pub fn uid(&self, uid: u32) -> Lookup<Account> {
        self.account(self.by_uid.get(&uid), || Question::Uid(uid))
    }

    pub fn group(&self, name: &str) -> Lookup<u32> {
        if let Some(gid) = self.groups.get(name) {
            return Lookup::Found(*gid);
        }
        match self.question(Question::Group(name.to_owned())) {
            Lookup::Found(Answer::Gid(gid)) => Lookup::Found(gid),
            Lookup::Found(Answer::Account(_)) | Lookup::Unknown => Lookup::Unknown,
            Lookup::NoAnswer => Lookup::NoAnswer,
        }
    }

    /// The groups that group(5) lists a user in.
    pub fn groups_of(&self, user: &str) -> Vec<u32> {
        self.memberships.get(user).cloned().unwrap_or_default()
    }

    fn account(&self, known: Option<&usize>, question: impl FnOnce() -> Question) -> Lookup<Account> {
        if let Some(account) = known.and_then(|index| self.users.get(*index)) {
            return Lookup::Found(account.clone());
        }
        match self.question(question()) {
            Lookup::Found(Answer::Account(account)) => Lookup::Found(account),
            Lookup::Found(Answer::Gid(_)) | Lookup::Unknown => Lookup::Unknown,
            Lookup::NoAnswer => Lookup::NoAnswer,
        }
    }

    fn question(&self, question: Question) -> Lookup<Answer> {
        if let Some(answer) = self.answers.borrow().get(&question) {
            return answer.clone();
        }
        let answer = self.ask_service(&question);
        self.answers.borrow_mut().insert(question, answer.clone());
        answer
    }

    fn ask_service(&self, question: &Question) -> Lookup<Answer> {
        if self.silent.get() {
            return Lookup::NoAnswer;
        }
        let service = self.service.get_or_init(|| Service::start(self.ask, self.patience));
        let answer = service.as_ref().and_then(|service| service.ask(question));
        // One question without an answer, and the rest is not asked: the deadline is for all of them.
        self.silent.set(answer.is_none());
        answer.unwrap_or(Lookup::NoAnswer)
    }
}

impl Service {
    /// The thread ends when its question does, or with this handle; one that hangs is left behind.
    fn start(ask: Ask, patience: Duration) -> Option<Self> {
        let (questions, asked) = channel::<Question>();
        let (answered, answers) = channel();
        let work = move || {
            while let Ok(question) = asked.recv() {
                let answer = ask(&question);
                if answered.send((question, answer)).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("name-service".into()).spawn(work).ok()?;
        Some(Self {
            questions,
            answers,
            deadline: Instant::now() + patience,
        })
    }

    fn ask(&self, question: &Question) -> Option<Lookup<Answer>> {
        self.questions.send(question.clone()).ok()?;
        let left = self.deadline.saturating_duration_since(Instant::now());
        let (answered, answer) = self.answers.recv_timeout(left).ok()?;
        (answered == *question).then_some(answer)
    }
}

fn ask_the_system(question: &Question) -> Lookup<Answer> {
    let found = match question {
        Question::User(name) => User::from_name(name).map(|user| user.map(account_of)),
        Question::Uid(uid) => User::from_uid(Uid::from_raw(*uid)).map(|user| user.map(account_of)),
        Question::Group(name) => Group::from_name(name).map(|group| group.map(|group| Answer::Gid(group.gid.as_raw()))),
    };
    match found {
        // "No id", whoever says so.
        Ok(Some(Answer::Gid(u32::MAX))) => Lookup::Unknown,
        Ok(Some(Answer::Account(account))) if account.uid == u32::MAX || account.gid == u32::MAX => Lookup::Unknown,
        Ok(Some(answer)) => Lookup::Found(answer),
        // getpwnam(3): what some services say instead of "not found".
        Ok(None) | Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ESRCH) => Lookup::Unknown,
        Err(_) => Lookup::NoAnswer,
    }
}

fn account_of(user: User) -> Answer {
    Answer::Account(Account {
        name: user.name,
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        home: user.dir.to_string_lossy().into_owned(),
        shell: user.shell.to_string_lossy().into_owned(),
    })
}

/// A line of passwd(5).
fn account(line: &str) -> Option<Account> {
    let fields: Vec<&str> = line.split(':').collect();
    let [name, _, uid, gid, _, home, shell] = fields.as_slice() else {
        return None;
    };
    Some(Account {
        name: (!name.is_empty() && !name.starts_with(['#', '+', '-'])).then(|| (*name).to_owned())?,
        uid: number(uid)?,
        gid: number(gid)?,
        home: (*home).to_owned(),
        shell: (*shell).to_owned(),
    })
}

/// A line of group(5): name, gid, members.
fn group_line(line: &str) -> Option<(&str, u32, &str)> {
    let mut fields = line.split(':');
    let (name, gid, members) = (fields.next()?, fields.nth(1)?, fields.next()?);
    (!name.is_empty() && !name.starts_with(['#', '+', '-'])).then_some((name, number(gid)?, members))
}

/// Digits only: `parse` alone takes a plus sign.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n#c:x:1:1::/:/x\nneutron:x:112:115::/var/lib/neutron:/bin/false\nbad:x:-1:0::/:/x\n\
        neutron:x:0:0::/:/bin/sh\nshort:x:7\nplus:x:+8:8::/:/x\n";
    const GROUP: &str = "root:x:0:\nnetdev:x:116:neutron,alice\nneutron:x:115:\n";

    #[test]
    fn files_answer_first_and_broken_lines_are_nobody() {
        let accounts = Accounts::new(PASSWD, GROUP, |_| Lookup::Unknown, PATIENCE);
        assert!(matches!(accounts.user("neutron"), Lookup::Found(account) if account.uid == 112 && account.gid == 115));
        assert!(matches!(accounts.uid(0), Lookup::Found(account) if account.home == "/root"));
        for nobody in ["#c", "bad", "short", "plus", "", "+"] {
            assert_eq!(accounts.user(nobody), Lookup::Unknown, "{nobody}");
        }
        assert_eq!(accounts.group("netdev"), Lookup::Found(116));
        assert_eq!(accounts.groups_of("neutron"), [116]);
    }

    #[test]
    fn the_name_service_answers_for_what_files_do_not_know() {
        fn ask(question: &Question) -> Lookup<Answer> {
            match question {
                Question::Group(name) if name == "ldap" => Lookup::Found(Answer::Gid(5000)),
                _ => Lookup::Unknown,
            }
        }
        let accounts = Accounts::new(PASSWD, GROUP, ask, PATIENCE);
        assert_eq!(accounts.group("ldap"), Lookup::Found(5000));
        assert_eq!(accounts.user("ldap"), Lookup::Unknown);
    }

    #[test]
    fn given_a_silent_name_service_then_files_still_answer_and_nothing_waits_twice() {
        fn hang(_: &Question) -> Lookup<Answer> {
            loop {
                std::thread::park();
            }
        }
        let accounts = Accounts::new(PASSWD, GROUP, hang, Duration::from_millis(1));
        assert_eq!(accounts.user("ldap"), Lookup::NoAnswer);
        for number in 0..1000 {
            assert_eq!(accounts.user(&format!("user{number}")), Lookup::NoAnswer);
        }
        assert!(matches!(accounts.user("root"), Lookup::Found(_)));
    }

    #[test]
    fn the_system_knows_root_and_nobody_else_by_a_strange_name() {
        assert!(matches!(ask_the_system(&Question::User("root".into())), Lookup::Found(Answer::Account(account)) if account.uid == 0));
        assert_eq!(Accounts::of_this_machine().user("no-such-user-of-rootwrap"), Lookup::Unknown);
    }
}
