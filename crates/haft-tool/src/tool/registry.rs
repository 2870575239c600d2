//! The registry of tools, and the pinned set that one stretch of a session works with.
//!
//! **Invariant:** a [`ToolSet`] never changes. So prompt, schemas and dispatch of the answer cannot
//! disagree, and its definitions are the same bytes from request to request.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, OnceLock},
};

use haft_types::{Env, Kind, Loading, Place, Text, ToolError, ToolSpec, ToolUse};

use super::repair;
use crate::{AnyTool, Prepared, call::ask::nobody_is_here, validate::Validator};

/// Most names that the error for an unknown tool lists.
const MOST_NAMES: usize = 50;

/// A source of tools: built in, from MCP servers, from a folder of executables.
pub trait Source: Send + Sync {
    /// The tools of the source now, in the order in which the model should see them.
    fn tools(&self) -> Vec<Arc<dyn AnyTool>>;
}

impl Source for Vec<Arc<dyn AnyTool>> {
    fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        self.clone()
    }
}

/// Removes a tool by returning none, or changes its description.
pub type Filter = Arc<dyn Fn(ToolSpec, &Env) -> Option<ToolSpec> + Send + Sync>;

/// Assembles [`ToolSet`]s.
#[derive(Clone, Default)]
pub struct Registry {
    sources: Vec<Arc<dyn Source>>,
    filters: Vec<Filter>,
    absent: Vec<AbsentTool>,
}

/// A tool that a run could have and has not.
#[derive(Clone, Debug)]
pub struct AbsentTool {
    /// Its name and its aliases.
    pub names: &'static [&'static str],
    /// Why it is not there.
    pub why: String,
    /// What to do instead.
    pub hint: String,
}

impl Registry {
    /// Adds a source; of two tools with the same name the one from the earlier source is taken.
    #[must_use]
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds a filter: deny rules, a chosen list, a model's dialect.
    #[must_use]
    pub fn filter(
        mut self,
        filter: impl Fn(ToolSpec, &Env) -> Option<ToolSpec> + Send + Sync + 'static,
    ) -> Self {
        self.filters.push(Arc::new(filter));
        self
    }

    /// Adds a tool that is not there: a call of it is told why.
    #[must_use]
    pub fn absent(mut self, tool: AbsentTool) -> Self {
        self.absent.push(tool);
        self
    }

    /// Assembles the tools that are enabled in `env`. The tool that finds deferred ones stands last, and
    /// is there only where it can find some.
    pub fn assemble(&self, env: &Env) -> ToolSet {
        let absent = self.absent.clone();
        let mut set = ToolSet { vision: env.vision, absent, ..ToolSet::default() };
        let mut finder: Option<(ToolSpec, Arc<dyn AnyTool>)> = None;
        for tool in self.sources.iter().flat_map(|source| source.tools()) {
            let spec = self.filters.iter().try_fold(tool.spec(env), |spec, keep| keep(spec, env));
            // Only another real name is in the way: an alias gives way to it.
            let free = |spec: &ToolSpec| {
                set.specs.iter().all(|other| other.name != spec.name)
                    && finder.as_ref().is_none_or(|(other, _)| other.name != spec.name)
            };
            match spec.filter(|spec| !spec.off) {
                Some(spec) if spec.asks && !env.interactive => set.asking.push(spec),
                Some(spec) if spec.finds && free(&spec) => finder = Some((spec, tool)),
                Some(spec) if free(&spec) => set.add(spec, tool),
                Some(spec) => set.hidden.push(spec),
                None => {}
            }
        }
        if let Some((spec, tool)) = finder.filter(|_| set.deferred().next().is_some()) {
            set.add(spec, tool);
        }
        set
    }
}

/// How many different tools a name may mean.
enum Candidates {
    Nothing,
    One(usize),
    Several,
}

impl Candidates {
    const fn one(self) -> Option<usize> {
        if let Self::One(index) = self { Some(index) } else { None }
    }
}

fn only(hits: impl Iterator<Item = usize>) -> Candidates {
    hits.fold(Candidates::Nothing, |found, hit| match found {
        Candidates::Nothing => Candidates::One(hit),
        Candidates::One(before) if before == hit => Candidates::One(hit),
        _ => Candidates::Several,
    })
}

/// A set of tools, fixed from one break of the session to the next.
#[derive(Default)]
pub struct ToolSet {
    specs: Vec<Arc<ToolSpec>>,
    tools: Vec<Arc<dyn AnyTool>>,
    validators: Vec<OnceLock<Result<Validator, String>>>,
    names: HashMap<String, usize>,
    /// True where whom the set is for takes images.
    pub(crate) vision: bool,
    /// Tools whose names others have.
    hidden: Vec<ToolSpec>,
    /// Tools that ask a person, where nobody can answer.
    asking: Vec<ToolSpec>,
    /// Tools that it could have.
    absent: Vec<AbsentTool>,
}

impl ToolSet {
    fn add(&mut self, spec: ToolSpec, tool: Arc<dyn AnyTool>) {
        let index = self.specs.len();
        // A real name always beats an alias, whichever came first.
        self.names.insert(spec.name.to_string(), index);
        for alias in &spec.aliases {
            self.names.entry(alias.to_string()).or_insert(index);
        }
        self.specs.push(Arc::new(spec));
        self.tools.push(tool);
        self.validators.push(OnceLock::new());
    }

    /// The specs, in the order in which the model sees them.
    pub fn specs(&self) -> &[Arc<ToolSpec>] {
        &self.specs
    }

    /// The specs that the model sees from its first request on.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<ToolSpec>> {
        self.specs.iter().filter(|spec| spec.loading != Loading::Deferred)
    }

    /// The specs of tools that can be called, and that the model sees only once they are found.
    pub fn deferred(&self) -> impl Iterator<Item = &Arc<ToolSpec>> {
        self.specs.iter().filter(|spec| spec.loading == Loading::Deferred)
    }

    /// The tools that nobody can call because a tool of an earlier source has the same name, each
    /// with that tool.
    pub fn hidden(&self) -> impl Iterator<Item = (&ToolSpec, &ToolSpec)> {
        self.hidden.iter().filter_map(|spec| {
            let by = self.specs.iter().find(|other| other.name == spec.name)?;
            Some((spec, &**by))
        })
    }

    /// Tools that ask a person, which are not in the set because nobody can answer.
    pub fn unattended(&self) -> &[ToolSpec] {
        &self.asking
    }

    /// The one of these with a name or alias.
    pub fn unattended_spec(&self, name: &str) -> Option<&ToolSpec> {
        let folded = |other: &Text| other.eq_ignore_ascii_case(name);
        let is_named = |spec: &&ToolSpec| folded(&spec.name) || spec.aliases.iter().any(folded);
        self.asking.iter().find(is_named)
    }

    /// The spec of a tool by name or alias: exactly, then without regard to case.
    pub fn spec(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.index(name).map(|index| &self.specs[index])
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied().or_else(|| {
            let folded = |other: &str| other.eq_ignore_ascii_case(name);
            let real = |index: &usize| folded(&self.specs[*index].name);
            // Two tools that differ only in case are not guessed between.
            match only((0..self.specs.len()).filter(real)) {
                Candidates::Nothing => {
                    let aliases = self.names.iter().filter(|(other, _)| folded(other));
                    only(aliases.map(|(_, index)| *index)).one()
                }
                found => found.one(),
            }
        })
    }

    /// The error for a tool name that nothing here has.
    pub fn unknown(&self, name: &str) -> ToolError {
        match self.unattended_spec(name) {
            Some(spec) if spec.unattended.is_empty() => return nobody_is_here(),
            Some(spec) => return ToolError::new(&*spec.unattended),
            None => {}
        }
        let is_named =
            |tool: &&AbsentTool| tool.names.iter().any(|other| other.eq_ignore_ascii_case(name));
        if let Some(tool) = self.absent.iter().find(is_named) {
            return ToolError::new(tool.why.clone()).hint(tool.hint.clone());
        }
        let names: Vec<&str> = self.specs.iter().map(|spec| &*spec.name).collect();
        let name: String = name.chars().take(100).collect();
        let near = names
            .iter()
            .map(|other| (strsim::jaro_winkler(&name.to_lowercase(), other), other))
            .filter(|(score, _)| *score > 0.7)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let mut listed = names[..names.len().min(MOST_NAMES)].join(", ");
        if names.len() > MOST_NAMES {
            let _ = write!(listed, " and {} more", names.len() - MOST_NAMES);
        }
        let error = ToolError::new(format!("there is no tool named {name:?}"));
        match near {
            Some((_, near)) => error.hint(format!("Did you mean {near}? The tools are: {listed}.")),
            None => error.hint(format!("Call one of these tools: {listed}.")),
        }
    }

    /// Finds the tool, repairs and validates the arguments, and plans the call.
    ///
    /// `place` gives where a tool of a kind acts. The second value says what was repaired.
    pub(crate) fn prepare(
        &self,
        request: &ToolUse,
        place: impl FnOnce(Kind) -> Arc<Place>,
    ) -> (Result<Prepared, ToolError>, Vec<String>) {
        let mut notes = Vec::new();
        let prepared = self.prepare_noting(request, place, &mut notes);
        (prepared, notes)
    }

    fn prepare_noting(
        &self,
        request: &ToolUse,
        place: impl FnOnce(Kind) -> Arc<Place>,
        notes: &mut Vec<String>,
    ) -> Result<Prepared, ToolError> {
        let index = self.index(&request.name).ok_or_else(|| self.unknown(&request.name))?;
        let spec = &self.specs[index];
        let mut raw = Cow::Borrowed(&*request.raw);
        let mut input = if let Some(input) = &request.input {
            input.clone()
        } else {
            raw = Cow::Owned(repair::escape_controls(&raw));
            repair::parse(&raw, &spec.name)?
        };
        if let Some((text, object)) = repair::within_text(&input) {
            (raw, input) = (Cow::Owned(text), object);
        }
        repair::refuse_duplicates(&raw, &spec.name)?;
        repair::take_texts(&raw, &mut input, &spec.input_schema, notes);
        repair::imply(&request.name, &mut input, &spec.input_schema);
        let input = repair::repair(input, &spec.input_schema, &spec.name, notes)?;
        let validator = self.validators[index]
            .get_or_init(|| Validator::of_arguments(&spec.input_schema))
            .as_ref()
            .map_err(|why| {
                ToolError::new(format!("the tool {} has a broken input schema: {why}", spec.name))
                    .hint("Use another tool; this one cannot be called.")
            })?;
        validator.check(&spec.name, &input)?;
        self.tools[index].clone().prepare(spec.clone(), input, &place(spec.kind))
    }
}
