//! Paths that the words of a program name of which more is not known.
//!
//! **Invariant:** what a program does that is known counts by that; of any other each word that is a
//! path, or holds one, may be what it works on. Of a shell that lives on that is every word.
//!
//! **Does not know:** where links lead: a word is judged as it is written.

use haft_types::{HostPath, Origin, Place, Target};

use crate::{
    Ask, CREDENTIALS, PROTECTED, Policy, Spot, Verdict,
    command::GAP,
    decide::{Judged, Placed, Remember, Ruling, doing},
    lexer::{EXPANDS, QUOTED},
    parts::Parts,
    protected::find,
    rule::{PathClass, Subject},
    script::Part,
};

/// Programs whose words are programs that may name files in them.
const INTERPRETERS: &[&str] =
    &["awk", "gawk", "mawk", "node", "perl", "php", "python", "python3", "ruby", "sed"];

impl Policy {
    /// Keys or passwords that it names.
    pub(crate) fn keys_of(
        &self,
        judged: &Judged<'_>,
        ask: &Ask<'_>,
    ) -> Option<(HostPath, &'static Spot)> {
        named(judged, ask, |part| !part.is_tame).find_map(|path| {
            let spot = find(CREDENTIALS, &path, &self.anchors.home)?;
            Some((path, spot))
        })
    }

    /// A protected place that it names and may change, outside of a sandbox, which keeps those.
    pub(crate) fn protected_in(&self, judged: &Judged<'_>, ask: &Ask<'_>) -> Option<Ruling> {
        // A program that a person made a tool is where they put it.
        if ask.inside().is_some() || ask.tool.origin != Origin::Builtin {
            return None;
        }
        let mut all = named(judged, ask, |part| !part.is_tame && !part.read_only);
        let (path, what) = all.find_map(|path| {
            let spot = || find(PROTECTED, &path, &self.anchors.home).map(|spot| spot.what);
            let what = if self.is_own(&path) { Some("haft's own state") } else { spot() }?;
            Some((path, what))
        })?;
        let reason = |run: &str| {
            format!("{run} names {}, and needs a yes, to protect {what}", ask.place.shown(&path))
        };
        Some(Ruling::ask(Remember::Session, None, &doing(judged.effect, None, ask), reason))
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
        let mut all = named(judged, ask, |part| !part.is_tame && !part.read_only);
        let (path, rule) = all.find_map(|path| {
            let meant = |placed: &&&Placed| placed.globs.iter().any(|glob| glob.touches(&path));
            let rule = &rules.iter().find(meant)?.rule;
            Some((path, rule))
        })?;
        if self.rule_of(ask, |pattern| pattern.is_literal() && pattern.allows(text)).is_some() {
            return None;
        }
        let what = doing(judged.effect, None, ask);
        Some(Ruling::ask(Remember::Session, Some(rule), &what, |what| {
            let (verdict, text, path) = (rule.verdict, &rule.text, ask.place.shown(&path));
            format!("{what} names {path}, of which the {verdict} rule {text} speaks")
        }))
    }
}

/// The paths that words name of those parts of a script that are meant.
fn named<'j>(
    judged: &'j Judged<'_>,
    ask: &Ask<'_>,
    meant: impl Fn(&Part) -> bool,
) -> impl Iterator<Item = HostPath> + 'j {
    let (words, place) = match (&judged.effect.target, &judged.script) {
        (Target::Command { fresh_in: Some(cwd), .. }, Some(script)) => {
            let parts = script.parts.iter().filter(|part| meant(part));
            let words = parts.flat_map(pieces).map(str::to_owned).collect();
            (words, Place { cwd: cwd.clone(), ..ask.place.clone() })
        }
        (Target::Command { text, .. }, _) => {
            let read = judged.parts.is_none().then(|| Parts::of(text));
            let lines = judged.parts.iter().chain(&read).flat_map(|parts| &parts.runs);
            let words = lines.flat_map(|line| line.joined.split(GAP));
            let words = words.map(|word| word.replace([EXPANDS, QUOTED], ""));
            (
                words
                    .flat_map(|word| halves(&word).map(str::to_owned).collect::<Vec<_>>())
                    .collect(),
                ask.place.clone(),
            )
        }
        _ => (Vec::new(), ask.place.clone()),
    };
    words.into_iter().filter_map(move |word: String| place.path(&word).ok())
}

/// The words of a part beside its program, and what they hold.
fn pieces(part: &Part) -> impl Iterator<Item = &str> {
    let program = part.words.iter().flatten().next();
    let program = program.and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let is_read = INTERPRETERS.contains(&program);
    part.known_words().flat_map(move |word| {
        let inner = is_read.then(|| {
            let ends = |c: char| c.is_whitespace() || "'\"`();<>|".contains(c);
            word.split(ends).filter(|piece| !piece.is_empty())
        });
        halves(word).chain(inner.into_iter().flatten())
    })
}

/// A word, and its parts: of `--file=/x` the second half is meant.
fn halves(word: &str) -> impl Iterator<Item = &str> {
    word.split(['=', ':', '@', ',']).chain([word]).filter(|word| !word.is_empty())
}
