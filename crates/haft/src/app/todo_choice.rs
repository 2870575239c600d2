//! Which list of things to do a model has: the tool `todo`, the tools for tasks, or none.
//!
//! **Invariant:** a model never has both. What a person names by itself comes before the setting, and
//! the setting before what is known of the model.

use haft_config::TodoKind;

/// The tool for a list that is given as a whole.
const TODO: &str = "todo";
/// The tools for tasks with dependencies.
const TASKS: [&str; 4] = ["task_create", "task_get", "task_list", "task_update"];

/// The choice of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TodoChoice {
    kind: TodoKind,
    /// Whether somebody named tools of this kind, or the setting does.
    is_named: bool,
    /// True where no model has the tools: a person calls them.
    is_all: bool,
}

impl TodoChoice {
    /// The choice by the setting and by the names that somebody asked for; `is_all` where no model
    /// has the tools.
    ///
    /// # Errors
    /// Where both kinds are named.
    pub fn new<'a>(
        setting: TodoKind,
        mut named: impl Iterator<Item = &'a str> + Clone,
        is_all: bool,
    ) -> Result<Self, String> {
        let task = named.clone().find(|name| TASKS.contains(name));
        let kind = match (named.any(|name| name == TODO), task) {
            (true, Some(task)) if !is_all => {
                return Err(format!(
                    "todo and {task} are two kinds of one list, and a model has one: name todo, or \
                     the tools for tasks"
                ));
            }
            (true, _) => TodoKind::Todo,
            (false, Some(_)) => TodoKind::Tasks,
            (false, None) => setting,
        };
        let is_named = !matches!(kind, TodoKind::Auto | TodoKind::Off);
        Ok(Self { kind, is_named, is_all })
    }

    /// Whether the run may have a tool.
    pub fn may_have(self, tool: &str) -> bool {
        let kinds: &[TodoKind] = if tool == TODO {
            &[TodoKind::Auto, TodoKind::Todo]
        } else if TASKS.contains(&tool) {
            &[TodoKind::Tasks]
        } else {
            return true;
        };
        self.is_all || kinds.contains(&self.kind)
    }

    /// The tools that are on by this choice, whatever is known of the model.
    pub fn on(self) -> impl Iterator<Item = String> {
        let on: &[&str] = match self.kind {
            TodoKind::Todo => &[TODO],
            TodoKind::Tasks => &TASKS,
            TodoKind::Auto | TodoKind::Off => &[],
        };
        on.iter().filter(move |_| self.is_named).map(|name| (*name).to_owned())
    }
}

/// Whether a search may find a tool that is not on: a model has the list that was chosen, or none.
pub fn may_be_found(tool: &str) -> bool {
    tool != TODO && !TASKS.contains(&tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(setting: TodoKind, named: &[&str], is_all: bool) -> (Vec<&'static str>, Vec<String>) {
        let choice = TodoChoice::new(setting, named.iter().copied(), is_all).unwrap();
        let all = [TODO].into_iter().chain(TASKS).filter(|tool| choice.may_have(tool));
        assert!(choice.may_have("read"));
        (all.collect(), choice.on().collect())
    }

    #[test]
    fn a_model_never_has_both() {
        let none: [&str; 0] = [];
        let on = |setting, named: &[&str]| has(setting, named, false);
        assert_eq!(on(TodoKind::Auto, &[]), (vec![TODO], vec![]));
        assert_eq!(on(TodoKind::Todo, &["read"]), (vec![TODO], vec![TODO.to_owned()]));
        for (setting, named) in
            [(TodoKind::Tasks, vec!["read"]), (TodoKind::Auto, vec!["task_list"])]
        {
            let tasks = TASKS.map(str::to_owned).to_vec();
            assert_eq!(on(setting, &named), (TASKS.to_vec(), tasks));
        }
        // What is named by itself comes before the setting.
        assert_eq!(on(TodoKind::Tasks, &[TODO]).0, [TODO]);
        assert_eq!(on(TodoKind::Off, &[TODO]).0, [TODO]);
        assert_eq!(on(TodoKind::Off, &[]).0, none);
        let both = ["todo", "read", "task_get"];
        let error = TodoChoice::new(TodoKind::Auto, both.into_iter(), false).unwrap_err();
        assert!(error.contains("todo and task_get"), "{error}");
        // Where no model has them, a person can call them all.
        assert_eq!(has(TodoKind::Off, &both, true).0.len(), 5);
    }
}
