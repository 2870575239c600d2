//! Calls that may be the subject of a rule that could not be parsed.
//!
//! **Invariant:** unknown means unsafe: a denial or question that cannot be read lets no call go
//! on; the call is asked about.

use super::rule::Subject;
use crate::{
    Ask, Policy, RuleProblem, Verdict,
    decide::{Judged, Remember, Ruling, class_touches, names_call},
};

impl Policy {
    /// A denial or question that could not be understood asks for all that it may have meant.
    pub(crate) fn misread(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        let meant = |problem: &&RuleProblem| {
            let Some(tool) = problem.tool.as_ref().filter(|_| problem.verdict != Verdict::Allow)
            else {
                return false;
            };
            let subject = Subject::Tool(tool.clone());
            names_call(&subject, ask, true) || judged.iter().any(|j| class_touches(tool, j.effect))
        };
        let problem = self.problems.iter().find(meant)?;
        Some(Ruling::ask(Remember::Session, None, "", |_| problem.to_string()))
    }
}
