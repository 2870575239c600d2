//! Judges one command: finds its program, reads its words by the table, and says what it does.

use std::ops::Range;

use super::{
    Effect, Operand, Part, Reading,
    flow::Depth,
    options::{self, Parsed},
    plain, programs,
    state::{State, Value},
    words::{self, Arg, Around, assigned, is_own},
};
use crate::{
    syntax::{Assignment, Command, Direction, Kind, Redirect},
    table::{self, Entry, Operands, Trait, Use},
};

pub(crate) use super::outcome::Outcome;

/// Folders whose programs are those that a name finds.
pub(crate) const FOLDERS: [&str; 8] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/usr/local/sbin/",
    "/opt/homebrew/bin/",
    "/opt/local/bin/",
];

/// Options with which a program goes through folders: [`Trait::HereRecursive`].
const RECURSIVE: [&str; 6] = ["r", "R", "d", "recursive", "dereference-recursive", "directories"];

/// Looks at the commands of one script.
pub(crate) struct Judge<'a, 'r> {
    pub around: Around<'a>,
    pub reading: &'r mut Reading,
    pub go_on: &'r mut dyn FnMut() -> bool,
    pub depth: &'r Depth,
    pub state: &'r State,
    /// The command whose output is the input of the one that is looked at.
    pub fed_by: Option<usize>,
    /// See [`Part::decides`].
    pub decides: bool,
}

/// Whether a name stands for a program that is known, or a builtin.
pub(crate) fn is_known(name: &str) -> bool {
    table::find(name).is_some() || programs::special(name).is_some()
}

impl<'a, 'r> Judge<'a, 'r> {
    pub(crate) fn new(
        around: Around<'a>,
        reading: &'r mut Reading,
        go_on: &'r mut dyn FnMut() -> bool,
        depth: &'r Depth,
        state: &'r State,
    ) -> Self {
        Self { around, reading, go_on, depth, state, fed_by: None, decides: false }
    }

    /// Adds the parts of one command.
    pub(crate) fn command(&mut self, command: &Command) {
        self.decides = command.place.decides && !self.depth.is_masked;
        self.fed_by = command.place.fed_by.filter(|_| command.redirects.is_empty());
        let mut out = Outcome::default();
        self.redirects(&command.redirects, &mut out);
        out.redirected = out.effects.len();
        let mut args: Vec<Arg> = Vec::new();
        for word in &command.words {
            match command.kind {
                Kind::Simple => args.extend(self.around.args(word, self.state)),
                _ => args.push(self.around.arg(word, self.state)),
            }
        }
        if command.kind == Kind::Loop {
            self.lists(&args, &mut out);
        }
        self.texts(command, &args);
        self.kind(command, &mut args, &mut out);
        let names = assignments(&command.assignments, &args);
        let shown: Vec<_> =
            command.assignments[..names].iter().map(|one| self.assignment(one, &mut out)).collect();
        if args.is_empty() {
            for one in &command.assignments {
                if !is_own(&one.name) {
                    out.effects.push(Effect::ChangesShell);
                    out.fault(format!("it sets {}, which programs look at", one.name));
                }
            }
            let is_silent = out.effects.is_empty() && out.faults.is_empty();
            if command.kind != Kind::Simple && is_silent {
                return;
            }
            self.add(&[], command.span.clone(), shown, Vec::new(), out);
            return;
        }
        self.prefixes(&command.assignments[..names], &args, &mut out);
        let wrappers = self.depth.wrappers.clone();
        self.run(&args, command.span.clone(), shown, wrappers, out);
    }

    /// What the shell itself reads to work out words: names in folders elsewhere.
    fn lists(&self, args: &[Arg], out: &mut Outcome) {
        for arg in args.iter().filter(|arg| arg.is_pattern) {
            if let Value::Files(start, _) = &arg.value
                && words::leads_out(start, self.state)
            {
                let all = words::operands(arg, self.state).into_iter().map(Effect::Reads);
                let more: Vec<_> = all.filter(|effect| !out.effects.contains(effect)).collect();
                out.effects.extend(more);
            }
        }
    }

    /// What is special about other commands than simple ones: of most no words are left.
    fn kind(&self, command: &Command, args: &mut Vec<Arg>, out: &mut Outcome) {
        match command.kind {
            Kind::Arithmetic => {
                let text = args.first().map_or("", |arg| &arg.text);
                // What it sets may be a variable that means something.
                let is_number = |name: &&str| is_own(name) && words::is_number(name, self.state);
                if !super::arithmetic::names(text).is_some_and(|all| all.iter().all(is_number)) {
                    out.fault("the arithmetic may run what is in data");
                }
                args.clear();
            }
            Kind::Loop => {
                let name = args.first().and_then(Arg::known).unwrap_or_default();
                if !is_own(name) {
                    out.fault(format!("the loop sets {name}, which programs look at"));
                }
                odd(args, out);
                args.clear();
            }
            Kind::Case | Kind::Compound => {
                odd(args, out);
                args.clear();
            }
            Kind::Test => {
                // Its operators are words of its own.
                let span = command.span.start..command.span.start;
                if args.first().and_then(Arg::known) != Some("[[") {
                    args.insert(0, Arg::of(super::state::Value::text("[["), "[[", span));
                }
            }
            Kind::Simple => {}
        }
    }

    fn assignment(&self, one: &Assignment, out: &mut Outcome) -> (String, Option<String>) {
        let (value, is_odd) = assigned(&self.around, &one.values, self.state);
        // A value of an array may name its index, which is evaluated.
        let is_indexed = one.is_indexed
            || one.is_array
                && (one.values.is_empty() || one.values.iter().any(|word| !is_element(word)));
        let is_changed = !one.is_array && is_odd;
        let is_element_odd =
            one.is_array && one.values.iter().any(|word| self.around.arg(word, self.state).is_odd);
        if is_indexed || is_changed || is_element_odd {
            out.anything(format!("what is set to {} may run what is in data", one.name));
        }
        let known = value.known().filter(|_| !one.is_array && !one.appends);
        (one.name.clone(), known.map(str::to_owned))
    }

    /// Looks at what is set for one command.
    fn prefixes(&self, all: &[Assignment], args: &[Arg], out: &mut Outcome) {
        let program = args.first().and_then(Arg::known).unwrap_or_default();
        for one in all {
            let (value, _) = assigned(&self.around, &one.values, self.state);
            let is_fine =
                !one.is_array && !one.appends && programs::is_harmless(&one.name, value.known())
                    || one.name == "IFS" && program == "read" && !one.is_array;
            if !is_fine {
                out.fault(format!("{} is set for it", one.name));
            }
        }
    }

    fn redirects(&mut self, all: &[Redirect], out: &mut Outcome) {
        for redirect in all {
            let arg = self.around.arg(&redirect.target, self.state);
            odd(std::slice::from_ref(&arg), out);
            if redirect.descriptor.as_deref().is_some_and(|name| name.starts_with('{')) {
                out.effects.push(Effect::ChangesShell);
                out.fault("a redirect sets a variable");
            }
            match redirect.how {
                Direction::Text => out.inputs.extend(arg.shapes()),
                Direction::Duplicate => {}
                _ => out.targets.extend(arg.shapes()),
            }
            if matches!(redirect.how, Direction::Text | Direction::Duplicate) {
                continue;
            }
            // A pattern leads to the file that it matches.
            let operands = if arg.is_split {
                vec![Operand::Unknown]
            } else {
                words::operands(&arg, self.state)
            };
            let may_connect = |text: &str| {
                let text: String = text.split('/').filter(|part| !part.is_empty()).collect();
                text.starts_with("devtcp") || text.starts_with("devudp")
            };
            let is_process = redirect
                .target
                .pieces
                .iter()
                .any(|piece| matches!(piece, crate::Piece::Process { .. }));
            let known = arg.known();
            match known {
                _ if is_process => continue,
                Some(text) if may_connect(text) => {
                    out.effects.push(Effect::Network(None));
                    continue;
                }
                None if arg.value.may_begin('/') || arg.is_split && !is_certain_start(&arg) => {
                    out.fault(format!("a redirect to {} may open a connection", arg.text));
                }
                _ => {}
            }
            let is_passing = self.is_passing(known);
            if redirect.how == Direction::Read {
                let is_input = matches!(known, Some("/dev/null" | "/dev/stdin" | "/dev/fd/0"));
                out.effects.extend(operands.into_iter().filter(|_| !is_input).map(Effect::Reads));
            } else if is_stream(known) && !is_passing {
                out.effects.push(Effect::Writes(Operand::Unknown));
            } else if !is_passing {
                out.effects.extend(operands.into_iter().map(Effect::Writes));
            }
        }
    }

    /// Adds a command of known words, and what it runs.
    pub(crate) fn run(
        &mut self,
        args: &[Arg],
        span: Range<usize>,
        assignments: Vec<(String, Option<String>)>,
        wrappers: Vec<String>,
        mut out: Outcome,
    ) -> bool {
        let at = self.reading.parts.len();
        self.reading.parts.push(Part::default());
        odd(args, &mut out);
        out.beside.clone_from(&out.faults);
        self.program(args, &wrappers, &mut out);
        self.add(args, span, assignments, wrappers, out);
        let Some(part) = self.reading.parts.pop() else { return false };
        let read_only = part.read_only;
        self.reading.parts[at] = part;
        read_only
    }

    /// Adds a part.
    fn add(
        &mut self,
        args: &[Arg],
        span: Range<usize>,
        mut assignments: Vec<(String, Option<String>)>,
        wrappers: Vec<String>,
        mut out: Outcome,
    ) {
        assignments.append(&mut out.assignments);
        self.lists(args, &mut out);
        let name = args.first().and_then(Arg::known);
        let word = |arg: &Arg| {
            if arg.is_pattern && !arg.is_split && !arg.is_odd {
                Some(arg.text.to_string())
            } else {
                arg.known().map(str::to_owned)
            }
        };
        let is_act = |effect: &Effect| !matches!(effect, Effect::Reads(_));
        let why = out.why(args);
        // What these find may stand behind links.
        let is_found =
            wrappers.iter().any(|name| ["find", "fd", "fdfind", "xargs"].contains(&&**name));
        let program = name.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
        let entry = program.as_deref().and_then(table::find);
        let text = self.around.source.get(span.clone()).unwrap_or_default().to_owned();
        self.reading.parts.push(Part {
            words: args.iter().map(word).collect(),
            shapes: args.iter().skip(1).flat_map(Arg::shapes).collect(),
            targets: out.targets,
            inputs: out.inputs,
            folders: self.state.folders.as_deref().cloned(),
            text,
            span: self.depth.span.clone().unwrap_or(span),
            program,
            lists: entry.is_some_and(|entry| entry.is(Trait::Lists)),
            follows: is_found || out.follows,
            decides: self.decides,
            wrappers,
            assignments,
            passes: out.passes,
            is_odd: args.iter().any(|arg| arg.is_odd),
            splits: args.iter().any(|arg| arg.is_split),
            is_known: out.faults.is_empty(),
            read_only: out.faults.is_empty() && !out.effects.iter().any(is_act),
            redirected: out.redirected,
            effects: out.effects,
            why,
        });
    }

    /// Finds the program and looks at its words.
    pub(crate) fn program(&mut self, args: &[Arg], wrappers: &[String], out: &mut Outcome) {
        let Some((first, rest)) = args.split_first() else { return };
        let Some(name) = first.known() else {
            if programs::version_of_each(self, args, wrappers, out) {
                return;
            }
            return out.anything(format!("the program {} is known when it runs", first.text));
        };
        // Some shells take a path for a file whatever functions there are.
        let is_call = self.state.functions.contains(name) && !name.contains('/');
        if is_call && wrappers == self.depth.wrappers {
            return;
        }
        let folder = FOLDERS.iter().find(|folder| name.starts_with(**folder));
        let name = match folder {
            Some(folder) => &name[folder.len()..],
            None => name,
        };
        if name.contains('/') {
            return out.anything(format!("it runs {name}, which may do anything"));
        }
        match (programs::special(name), table::find(name)) {
            (Some(special), _) => {
                special(self, &programs::Call { name, args: rest, wrappers }, out);
            }
            (None, Some(entry)) => self.table(name, entry, rest, out),
            (None, None) => out.anything(format!("it runs {name}, which may do anything")),
        }
        plain::add(self, name, rest, out);
    }

    /// Reads words by the table.
    pub(crate) fn table(&mut self, name: &str, entry: &Entry, args: &[Arg], out: &mut Outcome) {
        if entry.operands == Operands::Loose {
            return self.note(name, entry, &Parsed::default(), out);
        }
        let from_file = args.iter().find(|arg| arg.may_begin('@'));
        if let Some(arg) = from_file.filter(|_| entry.is(Trait::AtFiles)) {
            out.anything(format!("{} may name a file of options", arg.text));
        }
        let parsed = options::parse(entry, args);
        if entry.is(Trait::Sub) {
            let rest = &args[parsed.count..];
            self.note(name, entry, &parsed, out);
            let shows = parsed.options.iter().any(|(_, what, _)| *what == Use::Shows);
            // What it shows it shows without a subcommand.
            if !shows || !rest.is_empty() {
                self.subcommand(name, entry, rest, out);
            }
            return;
        }
        self.parsed(name, entry, &parsed, out);
    }

    /// Reads what stands behind the options of a program that has subcommands.
    pub(crate) fn subcommand(
        &mut self,
        name: &str,
        entry: &Entry,
        rest: &[Arg],
        out: &mut Outcome,
    ) {
        let Some((first, rest)) = rest.split_first() else {
            // Without one most show their help.
            if entry.operands == Operands::Any {
                out.anything(format!("{name} may do anything"));
            }
            return;
        };
        let Some(sub) = first.known() else {
            return out.anything(format!("what {name} does is known when it runs"));
        };
        let whole = format!("{name} {sub}");
        if let Some(special) = programs::special(&whole) {
            let call = programs::Call { name: &whole, args: rest, wrappers: &[] };
            return special(self, &call, out);
        }
        match table::find(&whole) {
            Some(entry) => self.table(&whole, entry, rest, out),
            None => out.anything(format!("{whole} may do anything")),
        }
    }

    /// Adds what a program does with options and operands.
    pub(crate) fn parsed(&mut self, name: &str, entry: &Entry, parsed: &Parsed, out: &mut Outcome) {
        let shows = parsed.options.iter().any(|(_, what, _)| *what == Use::Shows);
        let in_place = parsed.options.iter().any(|(_, what, _)| *what == Use::InPlace);
        self.note(name, entry, parsed, out);
        if shows {
            return;
        }
        let skipped = match entry.operands {
            Operands::TextReads if !parsed.has("e") && !parsed.has("f") => {
                let is_given = ["regexp", "file", "files", "type-list", "from-file", "expression"];
                usize::from(!is_given.iter().any(|name| parsed.has(name)))
            }
            _ => 0,
        };
        let operands = parsed.operands.get(skipped..).unwrap_or_default();
        let many = operands.len() > 1 || operands.iter().any(|arg| arg.is_split || arg.is_pattern);
        let shows_names = shows_names(entry, parsed);
        let read = |arg: &Arg| {
            if shows_names && is_of_here(arg) { self.below() } else { self.reads(arg) }
        };
        match entry.operands {
            Operands::None if !operands.is_empty() => {
                out.anything(format!("{name} is not known to take {}", operands[0].text));
            }
            Operands::ReadsOne | Operands::TextOne if many => {
                out.anything(format!("{name} is only known with one operand"));
            }
            Operands::None | Operands::Text | Operands::TextOne | Operands::Loose => {}
            Operands::Reads | Operands::TextReads | Operands::ReadsOne => {
                out.effects.extend(operands.iter().flat_map(read));
                if in_place {
                    self.each(operands, Effect::Writes, out);
                }
            }
            Operands::Writes => {
                let is_file = |arg: &&Arg| name != "tee" || !self.is_passing(arg.known());
                let all: Vec<Arg> = operands.iter().filter(is_file).cloned().collect();
                if all.iter().any(|arg| is_stream(arg.known())) {
                    out.effects.push(Effect::Writes(Operand::Unknown));
                }
                self.each(&all, Effect::Writes, out);
            }
            Operands::Destroys => self.each(operands, Effect::Destroys, out),
            Operands::Copies | Operands::Moves => self.transfer(name, entry, parsed, out),
            Operands::Any => {
                out.anything(format!("{name} may do anything"));
                if entry.is(Trait::Rights) {
                    self.rights(parsed, operands, out);
                }
            }
        }
        let unknown = Effect::Reads(Operand::Unknown);
        let names_files = !matches!(entry.operands, Operands::Text | Operands::None);
        if parsed.is_open && names_files && !out.effects.contains(&unknown) {
            out.effects.push(unknown);
        }
        self.unnamed(entry, parsed, operands, out);
    }

    /// Adds the folder that a program reads where it is given none.
    fn unnamed(&mut self, entry: &Entry, parsed: &Parsed, operands: &[Arg], out: &mut Outcome) {
        let is_given = operands.iter().any(|arg| arg.known() != Some("-"));
        let is_recursive =
            entry.is(Trait::HereRecursive) && RECURSIVE.iter().any(|name| parsed.has(name));
        if (entry.is(Trait::Here) || is_recursive) && !is_given {
            out.effects.extend(self.here().into_iter().map(Effect::Reads));
        }
    }

    /// Adds what changes where rights are given, which stand first or in an option: `chmod -x f`.
    fn rights(&self, parsed: &Parsed, operands: &[Arg], out: &mut Outcome) {
        let is_given = |of: &str| of == "reference" || (of.len() == 1 && "rwxXst".contains(of));
        let skipped = usize::from(!parsed.options.iter().any(|(of, ..)| is_given(of)));
        self.each(operands.get(skipped..).unwrap_or_default(), Effect::Writes, out);
    }

    /// Adds the effect of each operand.
    fn each(&self, operands: &[Arg], make: fn(Operand) -> Effect, out: &mut Outcome) {
        // Nothing is in it.
        let is_empty = |effect: &Effect| matches!(effect, Effect::Reads(Operand::Path(path)) if path == "/dev/null");
        for arg in operands {
            let all = words::operands(arg, self.state).into_iter().map(make);
            out.effects.extend(all.filter(|effect| !is_empty(effect)));
        }
    }

    /// Copies and moves: the last operand is made, unless an option names the folder.
    fn transfer(&self, name: &str, entry: &Entry, parsed: &Parsed, out: &mut Outcome) {
        let is_named = parsed.has("t") || parsed.has("target-directory");
        let (from, to) = match parsed.operands.split_last() {
            Some((last, rest)) if !is_named && !rest.is_empty() => (rest, Some(last)),
            _ => (&parsed.operands[..], None),
        };
        let make = if entry.operands == Operands::Moves { Effect::Destroys } else { Effect::Reads };
        let is_soft = name == "ln" && (parsed.has("s") || parsed.has("symbolic"));
        match to.filter(|_| is_soft) {
            Some(to) => self.linked(from, to, out),
            None => self.each(from, make, out),
        }
        let whole = ["r", "R", "a", "recursive", "archive"].iter().any(|name| parsed.has(name));
        let folders = match to {
            Some(to) => {
                self.each(std::slice::from_ref(to), Effect::Writes, out);
                words::operands(to, self.state)
            }
            None if is_named => {
                let named = |(name, _, value): &(String, Use, Option<Arg>)| {
                    let is_it = name == "t" || name == "target-directory";
                    value.clone().filter(|_| is_it)
                };
                let named: Vec<Arg> = parsed.options.iter().filter_map(named).collect();
                named.iter().flat_map(|arg| words::operands(arg, self.state)).collect()
            }
            // `ln -s a` makes a link here.
            None => {
                out.effects.extend(self.here().into_iter().map(Effect::Writes));
                self.here()
            }
        };
        let sources = from.iter().flat_map(|arg| words::operands(arg, self.state));
        for source in sources {
            out.effects.extend(folders.iter().map(|to| Effect::Writes(within(to, &source, whole))));
        }
    }

    /// Adds what a soft link leads to: that is seen from the folder of the link.
    fn linked(&self, from: &[Arg], to: &Arg, out: &mut Outcome) {
        let links = words::operands(to, self.state);
        for source in from {
            let text = source.known().filter(|text| !text.starts_with('/'));
            for link in &links {
                out.effects.extend(match (text, link) {
                    (Some(text), Operand::Path(link)) => {
                        let folder = link.rsplit_once('/').map_or("/", |(folder, _)| folder);
                        vec![Effect::Reads(Operand::Path(super::state::folder(folder, text)))]
                    }
                    _ => self.reads(source),
                });
            }
        }
    }

    /// The folders that the command may run in.
    pub(crate) fn here(&self) -> Vec<Operand> {
        match &self.state.folders {
            Some(folders) => folders.iter().cloned().map(Operand::Path).collect(),
            None => vec![Operand::Unknown],
        }
    }

    /// What reading names in these folders is.
    fn below(&self) -> Vec<Effect> {
        let below = |operand| match operand {
            Operand::Path(folder) => Operand::Below(folder),
            other => other,
        };
        self.here().into_iter().map(below).map(Effect::Reads).collect()
    }

    /// Whether what is written there is no file.
    pub(crate) fn is_passing(&self, path: Option<&str>) -> bool {
        path == Some("/dev/null") || is_stream(path) && !self.depth.redirects_streams
    }

    /// What is written where a word leads.
    pub(crate) fn written(&self, arg: &Arg) -> Vec<Operand> {
        if is_stream(arg.known()) {
            return vec![Operand::Unknown];
        }
        words::operands(arg, self.state)
    }

    /// What reading an operand is; `-` and the like are the input, or nothing.
    pub(crate) fn reads(&self, arg: &Arg) -> Vec<Effect> {
        let inputs = ["-", "/dev/fd/63", "/dev/null", "/dev/stdin", "/dev/fd/0"];
        if arg.known().is_some_and(|text| inputs.contains(&text)) {
            return Vec::new();
        }
        words::operands(arg, self.state).into_iter().map(Effect::Reads).collect()
    }

    /// Adds what options and the nature of a program do.
    fn note(&mut self, name: &str, entry: &Entry, parsed: &Parsed, out: &mut Outcome) {
        out.faults.extend(parsed.faults.iter().cloned());
        if !parsed.faults.is_empty() {
            out.effects.push(Effect::Anything);
        }
        out.follows |= !parsed.faults.is_empty();
        for (option, what, value) in &parsed.options {
            out.follows |= *what == Use::Follows;
            let shown =
                if option.len() == 1 { format!("-{option}") } else { format!("--{option}") };
            match (what, value) {
                (Use::Bad, _) => out.anything(format!("{name} {shown} may do anything")),
                (Use::Reads, Some(value)) => out.effects.extend(self.reads(value)),
                (Use::Writes, Some(value)) => {
                    let operands = words::operands(value, self.state);
                    out.effects.extend(operands.into_iter().map(Effect::Writes));
                }
                (Use::Format, Some(value)) if !programs::is_plain_format(value) => {
                    out.fault(format!("the format {} may run programs", value.text));
                }
                (Use::Key, Some(value)) if !programs::is_plain_key(value) => {
                    out.fault(format!("what goes by {} may run programs", value.text));
                }
                _ => {}
            }
        }
        let runs = |what: &str| Effect::Runs(what.to_owned());
        for what in &entry.traits {
            match what {
                Trait::Net => out.effects.push(Effect::Network(None)),
                Trait::Runs => out.effects.push(runs(name)),
                Trait::Shell => out.effects.push(Effect::ChangesShell),
                Trait::Acts => out.effects.push(Effect::Anything),
                Trait::Toolchain => self.toolchain(name, out),
                Trait::GoChain if !self.has("GO") => {
                    out.fault("go may fetch the toolchain that go.mod names");
                }
                Trait::PipCheck if !self.has("PIP_") => {
                    out.fault("pip looks for a newer pip");
                }
                Trait::NpmState if !self.has("npm_") => {
                    out.fault("npm keeps logs, and looks for a newer npm");
                }
                Trait::Manifest => {
                    let arg = Arg::of(super::state::Value::text("Cargo.toml"), "Cargo.toml", 0..0);
                    out.effects.extend(self.reads(&arg));
                }
                Trait::WritesHere => {
                    out.effects.extend(self.here().into_iter().map(Effect::Writes));
                }
                _ => {}
            }
        }
    }
}

impl Judge<'_, '_> {
    /// Whether the variables of [`crate::LOOKING`] that begin so are known to be set.
    fn has(&self, start: &str) -> bool {
        let known = &self.around.setting.variables;
        let mut all = crate::LOOKING.iter().filter(|(name, _)| name.starts_with(start));
        all.all(|(name, value)| known.get(*name).is_some_and(|known| known == value))
    }

    /// Asks for what is known of toolchain files where the command runs.
    fn toolchain(&mut self, name: &str, out: &mut Outcome) {
        let folders = self.state.folders.as_deref().map_or(&[][..], Vec::as_slice);
        let plain = &self.around.setting.plain_toolchains;
        if folders.is_empty() || !folders.iter().all(|folder| plain.contains(folder)) {
            out.fault(format!("a toolchain file may say which program {name} is"));
        } else if !self.has("RUSTUP_") {
            out.fault(format!("rustup may install the toolchain whose {name} it is"));
        }
        self.reading.toolchain_folders.extend(folders.iter().cloned());
    }
}

/// What is made of a source where the destination is a folder: the file of its name in there, which may be a
/// link, and with `whole` what is below it, too.
fn within(folder: &Operand, source: &Operand, whole: bool) -> Operand {
    let (Operand::Path(folder), Operand::Path(source)) = (folder, source) else {
        return match folder {
            Operand::Path(folder) => Operand::Below(folder.clone()),
            other => other.clone(),
        };
    };
    let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let path = format!("{}/{name}", folder.trim_end_matches('/'));
    match name {
        "" | "." | ".." => Operand::Below(folder.clone()),
        _ if whole => Operand::Below(path),
        _ => Operand::Path(path),
    }
}

/// How many assignments stand before the first word: those of a declaration are words, too.
fn assignments(all: &[Assignment], args: &[Arg]) -> usize {
    let is_declared = args
        .first()
        .and_then(Arg::known)
        .is_some_and(|name| ["declare", "export", "local", "readonly", "typeset"].contains(&name));
    if is_declared { 0 } else { all.len() }
}

/// Whether a word is a value of an array and names no index: that begins with a bracket that stands in
/// the script itself, and what a command answers is text.
fn is_element(word: &crate::Word) -> bool {
    let start = word.start();
    let is_put = |piece: &crate::Piece| matches!(piece, crate::Piece::Output { .. });
    (!start.is_empty() || word.pieces.first().is_some_and(is_put)) && !start.starts_with('[')
}

/// Whether only the names of operands are shown, of folders, too.
fn shows_names(entry: &Entry, parsed: &Parsed) -> bool {
    let is_flat = parsed.has("d") || parsed.has("directory") || !entry.is(Trait::Here);
    entry.is(Trait::Lists) && entry.is(Trait::Mild) && is_flat
}

/// Whether it is a pattern of names in the folder that the command runs in, perhaps `.` and `..`.
fn is_of_here(arg: &Arg) -> bool {
    arg.is_pattern && !arg.is_split && !arg.is_odd && !arg.text.contains('/')
}

/// Whether the one word that is left of a value without quotes begins as it does: blanks at its
/// start are none of it.
fn is_certain_start(arg: &Arg) -> bool {
    arg.value.start().starts_with(|c: char| !c.is_whitespace())
}

/// Whether a path leads to what the command is given to write to, whatever that is.
fn is_stream(path: Option<&str>) -> bool {
    matches!(path, Some("/dev/stdout" | "/dev/stderr" | "/dev/fd/1" | "/dev/fd/2"))
}

/// Whether a script has a redirect by which what is written to `/dev/stderr` or the like may become a
/// file: the system opens that file anew there, and empties it.
pub(crate) fn redirects_streams(script: &crate::Script) -> bool {
    let leads = |redirect: &Redirect| {
        let target = redirect.target.known();
        match redirect.how {
            Direction::Text => false,
            // What is read from may be written to, once it stands for a stream.
            _ if matches!(redirect.target.pieces[..], [crate::Piece::Process { .. }]) => false,
            Direction::Duplicate => !matches!(target.as_deref(), Some("" | "1" | "2")),
            Direction::Read if matches!(redirect.descriptor.as_deref(), None | Some("0")) => false,
            _ => target.as_deref() != Some("/dev/null") && !is_stream(target.as_deref()),
        }
    };
    script.commands.iter().flat_map(|command| &command.redirects).any(leads)
}

/// Notes words whose working out runs what they hold.
fn odd(args: &[Arg], out: &mut Outcome) {
    for arg in args.iter().filter(|arg| arg.is_odd) {
        out.anything(format!("{} may run what is in data", arg.text));
    }
}
