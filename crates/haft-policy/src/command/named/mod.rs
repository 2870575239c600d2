//! Paths that the words of a program name, or may name, of which more is not known.
//!
//! **Invariant:** what a program does that is known counts by that; of any other each word that is a
//! path, or holds one, may be what it works on, seen from the folder that it runs in. What only the
//! running shell will know of a word may be anything there. Of a shell that lives on that is every word.
//!
//! **Does not know:** where links lead that nobody looked up: a word is judged as it is written, and as the
//! plan says that it leads.

mod discards;
mod reach;
pub(crate) mod said;
mod sweeps;
pub(crate) mod words;

use std::collections::BTreeSet;

use haft_types::{Access, HostPath, Origin, Place, Target};

use self::words::Named;
use super::{
    parts::Parts,
    script::{Part, Script, leads},
};
use crate::{
    Ask, CREDENTIALS, PROTECTED, Policy, ProtectedPath, Verdict,
    decide::{Judged, Placed, Remember, Ruling, doing},
    places::{partial_path::Shape, planned_links, protected::find},
    rules::{
        command_pattern::GAP,
        rule::{PathClass, Subject},
    },
};

/// The most words of one call that are looked at: what a nest of wrappers runs has all of its words.
const MOST_WORDS: usize = 20_000;

/// A part of a script, where there is one, with what its words name.
struct Spoken<'j> {
    part: Option<&'j Part>,
    named: Vec<Named>,
}

impl Policy {
    /// The question about a command of which not all can be looked at.
    pub(crate) fn endless(ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        let (one, why) = judged.iter().find_map(|one| Some((one, endless(one)?)))?;
        let what = doing(one.effect, None, ask);
        let reason = |what: &str| format!("not all of {what} can be looked at: {why}");
        Some(Ruling::ask(Remember::Session, None, &what, reason))
    }

    /// Keys or passwords that it names, and what they are.
    pub(crate) fn keys_of(
        &self,
        judged: &Judged<'_>,
        ask: &Ask<'_>,
    ) -> Option<(String, &'static str)> {
        let spoken = spoken(judged, ask, |_| true);
        let mut all =
            spoken.iter().flat_map(|one| one.named.iter().map(move |named| (one.part, named)));
        let found = all.find_map(|(part, named)| {
            let is_tame = part.is_some_and(|part| part.is_tame);
            let least = match part {
                Some(part) if is_tame && reach::tells_names(part) => 4,
                _ if is_tame => 3,
                _ => 1,
            };
            let spot = self.spot(CREDENTIALS, named, part, least);
            let what = spot.map(|spot| spot.what).or_else(|| {
                // Of what cannot be read anything may be done to it.
                let copies = part.map_or(ask.inside().is_none(), reach::copies_all);
                let holds = named.is_whole && copies;
                (holds && self.holds_keys(named)).then_some("a folder with keys")
            });
            let is_home = || {
                named.is_whole
                    && !is_tame
                    && ask.inside().is_none()
                    && self.holds_home(named)
                    && !part.is_some_and(reach::is_project)
            };
            let shown = named.shape.shown(ask.place);
            let home = match &*shown {
                "/" => "the whole file system with its keys",
                _ => "the home folder with its keys",
            };
            let what = what.or_else(|| is_home().then_some(home))?;
            Some((shown, what))
        });
        let handed = || {
            let part = spoken.iter().filter_map(|one| one.part);
            let (part, what) = { part }
                .find_map(|part| Some((part, reach::keys(part).filter(|_| !part.is_tame)?)))?;
            Some((part.text.trim().chars().take(80).collect(), what))
        };
        let text = || {
            let spot = self.in_texts(CREDENTIALS, judged, ask, Access::Observe)?;
            (ask.inside().is_none()).then_some(spot)
        };
        found.or_else(handed).or_else(|| self.keys_told(judged, ask)).or_else(text)
    }

    /// A place of a table that a text of a script names, where it works on files that only the running
    /// shell will know.
    fn in_texts(
        &self,
        table: &'static [ProtectedPath],
        judged: &Judged<'_>,
        ask: &Ask<'_>,
        least: Access,
    ) -> Option<(String, &'static str)> {
        let script = judged.script.as_ref()?;
        script.parts.iter().find(|part| is_open(part, least))?;
        let told = || script.parts.iter().filter(|part| reach::tells_names(part));
        let found = told().flat_map(|part| &part.effects).filter_map(|effect| {
            let path = effect.path()?;
            Some((ask.place.shown(path).into_owned(), find(table, path, &self.anchors.home)?.what))
        });
        let texts = texts(script, ask, least);
        let open = told().flat_map(|part| words::of_part(part, ask.place));
        let named = texts
            .chain(open.filter(|named| named.shape.is_open() && !named.is_guess))
            .filter_map(|named| {
                let spot = self.spot(table, &named, None, 2)?;
                Some((named.shape.shown(ask.place), spot.what))
            });
        found.chain(named).next()
    }

    /// Whether names of what is in the home folder are told to a program that reads them.
    fn keys_told(&self, judged: &Judged<'_>, ask: &Ask<'_>) -> Option<(String, &'static str)> {
        let script = judged.script.as_ref().filter(|_| ask.inside().is_none())?;
        let looked = script.parts.iter().filter(|part| reach::tells_names(part));
        let home = looked.flat_map(|part| &part.effects).filter_map(|effect| effect.path());
        let home = { home }.find(|path| self.anchors.home.is_within(path))?;
        let is_read = script.parts.iter().any(|part| reach::takes_names(part, ask.place));
        is_read.then(|| (ask.place.shown(home).into_owned(), "the home folder with its keys"))
    }

    /// The first spot that a path is at, or may be, where so many letters of a name say so; what is settled
    /// is judged by itself.
    fn spot(
        &self,
        table: &'static [ProtectedPath],
        named: &Named,
        part: Option<&Part>,
        least: usize,
    ) -> Option<&'static ProtectedPath> {
        let home = &self.anchors.home;
        match named.shape.exact() {
            Some(path) if part.is_some_and(|part| is_settled(part, &path)) => None,
            Some(path) => find(table, &path, home),
            None => {
                let least = if named.is_guess { 3 } else { least };
                named.shape.spot(table, home, least, named.is_guess)
            }
        }
    }

    /// Whether it is a folder in which keys lie in the home folder, or in the system's.
    fn holds_keys(&self, named: &Named) -> bool {
        let Some(path) = named.shape.exact() else { return false };
        let holds = |spot: &ProtectedPath| {
            let root = HostPath::root(path.style());
            let is_system = spot.names.starts_with("etc/");
            let top = if is_system { &root } else { &self.anchors.home };
            let place = top.join(spot.names).ok();
            place.is_some_and(|place| place != path && place.is_within(&path))
        };
        CREDENTIALS.iter().any(holds)
    }

    /// Whether it may be the home folder, or one above.
    fn holds_home(&self, named: &Named) -> bool {
        let home = &self.anchors.home;
        match named.shape.exact() {
            Some(path) => home.is_within(&path),
            None if named.is_guess => false,
            None => named.shape.may_be(home) && !named.shape.is_any(),
        }
    }

    /// A protected place that it names and may change, outside of a sandbox, which keeps those.
    pub(crate) fn protected_in(&self, judged: &Judged<'_>, ask: &Ask<'_>) -> Option<Ruling> {
        // A program that a person made a tool is where they put it.
        if ask.inside().is_some() || ask.tool.origin != Origin::Builtin {
            return None;
        }
        let what = &doing(judged.effect, None, ask);
        if let Some((path, spot)) = self.in_texts(PROTECTED, judged, ask, Access::Modify) {
            let reason =
                |run: &str| format!("{run} names {path}, and needs a yes, to protect {spot}");
            return Some(Ruling::ask(Remember::Session, None, what, reason));
        }
        let parts = judged.script.as_ref().map_or(&[][..], |script| &script.parts);
        let told = sweeps::told(parts, ask.place);
        if let Some(folder) = told.iter().find(|folder| holds(folder, ask.place)) {
            return Some(anything(&folder.shown(ask.place), what));
        }
        let all = spoken(judged, ask, |part| !part.read_only);
        for Spoken { part, named } in &all {
            // Of what its words name it changes nothing.
            let keeps = part.is_some_and(reach::keeps);
            let is_tame = part.is_some_and(|part| part.is_tame);
            let acts = |part: &Part| {
                let own = part.effects.iter().skip(part.redirected);
                !part.is_tame
                    || part.open > Some(Access::Observe)
                    || own.into_iter().any(|effect| effect.access != Access::Observe)
            };
            let least = if part.is_none_or(acts) { 1 } else { 3 };
            let own = |named: &Named| {
                let path = named.shape.exact().filter(|_| !is_tame)?;
                self.is_own(&path).then_some("haft's own state")
            };
            let mut meant = named.iter().filter(|named| !keeps || named.is_target);
            let found = meant.find_map(|named| {
                let spot = || self.spot(PROTECTED, named, *part, least).map(|spot| spot.what);
                Some((named.shape.shown(ask.place), own(named).or_else(spot)?))
            });
            if let Some((path, spot)) = found {
                let reason =
                    |run: &str| format!("{run} names {path}, and needs a yes, to protect {spot}");
                return Some(Ruling::ask(Remember::Session, None, what, reason));
            }
            let Some(part) = part.filter(|_| !keeps) else { continue };
            if let Some(spot) = reach::settings(part).filter(|_| !is_tame) {
                let reason = |run: &str| {
                    format!(
                        "{run} changes what no word of it names, and needs a yes, to protect {spot}"
                    )
                };
                return Some(Ruling::ask(Remember::Session, None, what, reason));
            }
            if let Some(folder) = reached(part, named, ask.place) {
                return Some(anything(&folder, what));
            }
        }
        None
    }

    /// The question about what git throws away for good, where nothing else is asked about it.
    pub(crate) fn discarded(ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        ask.inside()?;
        judged.iter().find_map(|one| {
            let parts = &one.script.as_ref()?.parts;
            let thrown = parts.iter().find_map(discards::of)?;
            let what = doing(one.effect, None, ask);
            let reason = |run: &str| format!("{run} throws away {thrown}");
            Some(Ruling::ask(Remember::Session, None, &what, reason))
        })
    }

    /// The question about what it names of which a rule speaks; a rule that allows just this command
    /// has answered it.
    pub(crate) fn ruled_words(&self, judged: &Judged<'_>, ask: &Ask<'_>) -> Option<Ruling> {
        let Target::Command { text, .. } = &judged.effect.target else { return None };
        let speaks = |placed: &&Placed| {
            placed.rule.verdict != Verdict::Allow
                && matches!(&placed.rule.subject, Subject::Path { class, .. } if !matches!(class, PathClass::Of(_)))
                && !(ask.inside().is_some() && Self::is_walled(placed))
        };
        let rules: Vec<&Placed> = self.rules.iter().filter(speaks).collect();
        if rules.is_empty() || ask.tool.origin != Origin::Builtin {
            return None;
        }
        let all = spoken(judged, ask, |part| !part.is_tame && !part.read_only);
        let (path, rule) = all.iter().find_map(|one| touched(one, &rules, ask.place))?;
        if self.rule_of(ask, |pattern| pattern.is_literal() && pattern.allows(text)).is_some() {
            return None;
        }
        let what = doing(judged.effect, None, ask);
        Some(Ruling::ask(Remember::Session, Some(&rule.rule), &what, |what| {
            let (verdict, text) = (rule.rule.verdict, &rule.rule.text);
            format!("{what} names {path}, of which the {verdict} rule {text} speaks")
        }))
    }
}

/// Whether a part works on files that only the running shell will know.
fn is_open(part: &Part, least: Access) -> bool {
    let is_open = || part.names_unknown() || words::is_told(part);
    let any = || !part.is_tame && !reach::keeps(part) && is_open();
    part.open.map_or_else(any, |access| access >= least)
}

/// What texts of a script may name, where it works on files that only the running shell will know.
fn texts(script: &Script, ask: &Ask<'_>, least: Access) -> impl Iterator<Item = Named> {
    let is_open = script.parts.iter().any(|part| is_open(part, least));
    let texts = script.texts.iter().filter(move |_| is_open);
    texts.flat_map(|text| words::of_text(text, ask.place)).take(MOST_WORDS)
}

/// Why not all of a command can be looked at, where that is so.
fn endless(one: &Judged<'_>) -> Option<String> {
    let Target::Command { text, .. } = &one.effect.target else { return None };
    let rough = one.rough(text);
    let count = match one.script.as_ref().filter(|script| script.fault.is_none()) {
        Some(script) => {
            script.parts.iter().map(|part| part.shapes.len() + part.targets.len()).sum()
        }
        None => each(rough).len(),
    };
    let instead = "put it into a script in a file and run that";
    let many = || format!("it has over {MOST_WORDS} words; {instead}");
    let is_endless = one.script.as_ref().is_some_and(|script| script.is_endless);
    let much = || is_endless.then(|| format!("it takes too much work to read; {instead}"));
    rough.cut.clone().or_else(much).or_else(|| (count > MOST_WORDS).then(many))
}

/// Whether a path that a word of a part says is among its effects, if it is one. Where not all are known,
/// a number in it may stand for another one.
fn is_settled(part: &Part, path: &HostPath) -> bool {
    part.is_tame && (part.open.is_none() || !path.text().contains(words::NUMBER))
}

/// What a part names, or reaches, of which one of the rules speaks.
fn touched<'r>(
    Spoken { part, named }: &Spoken<'_>,
    rules: &[&'r Placed],
    place: &Place,
) -> Option<(String, &'r Placed)> {
    let keeps = part.is_some_and(reach::keeps);
    let is_project = part.is_some_and(reach::is_project);
    let formats = part.is_some_and(reach::formats);
    let is_nameless = part.is_some_and(reach::is_nameless);
    let meant = |placed: &&&'r Placed| {
        !(keeps && matches!(&placed.rule.subject, Subject::Path { class: PathClass::Writes, .. }))
    };
    let rule = |holds: &dyn Fn(&Placed) -> bool| {
        rules.iter().filter(meant).find(|placed| holds(placed)).copied()
    };
    let named = named.iter().filter(|named| !(is_nameless && named.is_blank));
    let found = { named }.find_map(|Named { shape, is_whole, .. }| {
        let hit = |placed: &Placed| {
            let reads =
                matches!(&placed.rule.subject, Subject::Path { class: PathClass::Reads, .. });
            let is_above = *is_whole && !is_project && !(formats && reads);
            placed.globs.iter().any(|glob| match shape.exact() {
                Some(path) => glob.touches(&path) || is_above && glob.lies_below(&path),
                None => glob.may_meet(shape) || is_above && glob.may_be_held(shape),
            })
        };
        Some((shape.shown(place), rule(&hit)?))
    });
    found.or_else(|| {
        let part = part.as_ref()?;
        let folders = [reach::of_part(part, place), reach::patched(part, place)].concat();
        folders.iter().find_map(|folder| {
            let hit = |placed: &Placed| {
                placed.globs.iter().any(|glob| match folder.exact() {
                    Some(path) => glob.may_lie_below(&path),
                    None => glob.may_meet(folder) || glob.may_be_held(folder),
                })
            };
            Some((folder.shown(place), rule(&hit)?))
        })
    })
}

/// The question about what may change anything in a folder.
fn anything(folder: &str, what: &str) -> Ruling {
    Ruling::ask(Remember::Session, None, what, |run: &str| {
        format!(
            "{run} may change anything in {folder}, and needs a yes, to protect files there that make \
             programs run"
        )
    })
}

/// Whether a folder is, or holds, a folder of the workspace or the home folder.
fn holds(folder: &Shape, place: &Place) -> bool {
    match folder.exact() {
        Some(path) => place.roots.iter().chain([&place.home]).any(|root| root.is_within(&path)),
        None => place.roots.iter().any(|root| folder.may_be(root)) && !folder.is_any(),
    }
}

/// The folder that holds the workspace, or the home folder, in which it may change anything.
fn reached(part: &Part, named: &[Named], place: &Place) -> Option<String> {
    let swept = sweeps::of_part(part, place);
    if let Some(folder) = swept.iter().find(|folder| holds(folder, place)) {
        return Some(folder.shown(place));
    }
    if part.is_tame {
        let mut whole = named.iter().filter(|one| reach::removes(part) && one.is_whole);
        return whole.find(|one| holds(&one.shape, place)).map(|one| one.shape.shown(place));
    }
    let folders = reach::of_part(part, place);
    folders.iter().find(|folder| holds(folder, place)).map(|folder| folder.shown(place))
}

/// The words of a text that may be run, each once, as far as they are looked at: in an order that is
/// always the same.
fn each(parts: &Parts) -> BTreeSet<&str> {
    let mut all = BTreeSet::new();
    for word in parts.runs.iter().flat_map(|line| line.joined.split(GAP)) {
        if all.len() > MOST_WORDS {
            break;
        }
        all.insert(word);
    }
    all
}

/// What words name of those parts of a script that are meant.
fn spoken<'j>(
    judged: &'j Judged<'_>,
    ask: &Ask<'_>,
    meant: impl Fn(&Part) -> bool,
) -> Vec<Spoken<'j>> {
    match (&judged.effect.target, &judged.script) {
        (Target::Command { .. }, Some(script)) if script.fault.is_none() => {
            let parts = script.parts.iter().filter(|part| meant(part));
            let leads = leads(ask.plan);
            let spoken = |part| {
                let mut named = words::of_part(part, ask.place);
                let behind = |one: &Named| {
                    let path = one.shape.exact();
                    let leads = leads.iter().filter(|(written, _)| Some(written) == path.as_ref());
                    let named = |(_, real): &_| Named { shape: Shape::known(real), ..one.clone() };
                    leads.map(named).collect::<Vec<_>>()
                };
                let made = |one: &Named| {
                    let shapes = one.shape.behind(&script.made);
                    let named = |shape| Named { shape, ..one.clone() };
                    shapes.into_iter().map(named).collect::<Vec<_>>()
                };
                let mut more: Vec<Named> = Vec::new();
                if !leads.is_empty() {
                    more.extend(named.iter().flat_map(behind));
                }
                if !script.made.is_empty() && !planned_links::makes(part) {
                    more.extend(named.iter().flat_map(made));
                }
                named.extend(more);
                Spoken { part: Some(part), named }
            };
            parts.map(spoken).collect()
        }
        (Target::Command { text, .. }, _) => {
            let words = each(judged.rough(text)).into_iter().map(words::of_rough);
            let words = words.flat_map(|word| words::of_word(&word, ask.place));
            // A session's folder and variables are its own: what a whole word of it is is not known.
            let is_read = judged.script.is_some();
            let named = |one: Named| Named { is_whole: one.is_whole && is_read, ..one };
            let mut named: Vec<Named> = words.map(named).collect();
            // Where redirects lead is not among the words.
            let files = words::redirected(text).take(MOST_WORDS);
            let files = files.flat_map(|file| words::of_word(file, ask.place));
            named.extend(files.map(|one| Named { is_whole: false, ..one }));
            vec![Spoken { part: None, named }]
        }
        _ => Vec::new(),
    }
}
