//! What is found out about one command, and how that is said.

use super::{Effect, Operand, judge::FOLDERS, risks, words::Arg};

/// What is found out about a command.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub effects: Vec<Effect>,
    /// Why it is not known to only read.
    pub faults: Vec<String>,
    /// What a wrapper sets for the command that it runs.
    pub assignments: Vec<(String, Option<String>)>,
    /// How many of the effects are of redirects.
    pub redirected: usize,
    /// What the files of its redirects may be.
    pub targets: Vec<String>,
    /// The texts that it is given.
    pub inputs: Vec<String>,
    /// Whether it follows links in folders.
    pub follows: bool,
    /// Whether it does nothing but to run what it wraps.
    pub passes: bool,
    /// What is a risk beside what the program itself does.
    pub beside: Vec<String>,
    /// Whether it runs a command that does more than look, or may.
    pub runs_more: bool,
}

impl Outcome {
    pub(crate) fn fault(&mut self, why: impl Into<String>) {
        self.faults.push(why.into());
    }

    /// It may do anything, and why.
    pub(crate) fn anything(&mut self, why: impl Into<String>) {
        self.effects.push(Effect::Anything);
        self.faults.push(why.into());
    }

    /// It may do anything, whatever the program itself does.
    pub(crate) fn besides(&mut self, why: &str) {
        self.anything(why);
        self.beside.push(why.to_owned());
    }

    /// What a program runs does more than look, or may.
    pub(crate) fn more(&mut self, program: &str) {
        self.runs_more = true;
        self.fault(format!("what {program} runs may do more than look"));
    }

    /// In a sentence without its full stop, what it does, or why it is not known to only read.
    pub(crate) fn why(&self, args: &[Arg]) -> String {
        // What it does beyond files tells more than where its output goes.
        let is_file = |effect: &&Effect| {
            matches!(effect, Effect::Reads(_) | Effect::Writes(_) | Effect::Destroys(_))
        };
        let is_act = |effect: &&Effect| !matches!(effect, Effect::Reads(_));
        let own = self.effects.iter().skip(self.redirected).filter(is_act);
        if (own.clone().next().is_some() || self.runs_more)
            && let Some(risk) = risk(args)
        {
            let beside: String = self.beside.iter().flat_map(|why| ["; ", &**why]).collect();
            return format!("it {risk}{beside}");
        }
        let acts = own.chain(self.effects.iter().filter(is_act));
        let acts = acts.clone().find(|effect| !is_file(effect)).or_else(|| acts.clone().next());
        match (self.faults.first(), acts) {
            (Some(fault), _) => fault.clone(),
            (None, Some(effect)) => told(effect),
            (None, None) => "it only reads".to_owned(),
        }
    }
}

/// What a command risks whose program is one that a name finds in the usual folders.
fn risk(args: &[Arg]) -> Option<String> {
    let (first, rest) = args.split_first()?;
    let name = first.known()?;
    risks::risk(FOLDERS.iter().find_map(|folder| name.strip_prefix(folder)).unwrap_or(name), rest)
}

/// An effect in words.
fn told(effect: &Effect) -> String {
    let place = |operand: &Operand| match operand {
        Operand::Path(path) => path.clone(),
        Operand::Below(path) => format!("files in {path}"),
        Operand::Unknown => "files that are known when it runs".to_owned(),
    };
    match effect {
        Effect::Reads(operand) => format!("it reads {}", place(operand)),
        Effect::Writes(operand) => format!("it writes {}", place(operand)),
        Effect::Destroys(operand) => format!("it removes {}", place(operand)),
        Effect::Network(Some(host)) => format!("it connects to {host}"),
        Effect::Network(None) => "it opens connections".to_owned(),
        Effect::Runs(what) => format!("{what} runs what the project says"),
        Effect::ChangesShell => "it changes the shell".to_owned(),
        Effect::Anything => "it may do anything".to_owned(),
    }
}
