//! The names that other agents use for haft's tools, as rules and agent definitions write them.

use haft_types::ToolSpec;

/// Names that other agents use, with ours.
pub const ALIASES: &[(&str, &str)] = &[
    ("Read", "read"),
    ("Write", "write"),
    ("Edit", "edit"),
    ("MultiEdit", "edit"),
    ("Bash", "bash"),
    ("PowerShell", "powershell"),
    ("Grep", "grep"),
    ("Glob", "find"),
    ("LS", "ls"),
    ("Task", "agent"),
    ("Agent", "agent"),
    ("Skill", "skill"),
    ("TodoWrite", "todo"),
    ("TaskCreate", "task_create"),
    ("TaskGet", "task_get"),
    ("TaskList", "task_list"),
    ("TaskUpdate", "task_update"),
    ("NotebookEdit", "notebook_edit"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("AskUserQuestion", "ask_user"),
    ("EnterPlanMode", "enter_plan"),
    ("ExitPlanMode", "exit_plan"),
    ("ToolSearch", "tool_search"),
    ("Think", "think"),
    ("Sleep", "sleep"),
    ("SendUserMessage", "brief"),
    ("Brief", "brief"),
    ("SendUserFile", "send_file"),
    ("Config", "config"),
    ("NotebookRead", "read"),
    ("Snip", "snip"),
    ("TaskStop", "job"),
    ("TaskOutput", "job"),
    ("BashOutput", "job"),
    ("KillShell", "job"),
];

/// Tools that rules for another one are about too: a tool, then that of the rules.
const COVERED: &[(&str, &str)] = &[("write", "edit"), ("notebook_edit", "edit")];

/// Reports whether rules for the tool `rules` are about a tool too, as far as its name tells, or are
/// its own.
pub(crate) fn stands_for(rules: &str, tool: &str) -> bool {
    rules == tool || COVERED.contains(&(tool, rules))
}

/// The same for a tool whose spec is known: one that is not built in says it there.
pub(crate) fn is_under(tool: &ToolSpec, rules: &str) -> bool {
    stands_for(rules, &tool.name) || tool.rules_of.iter().any(|of| of == rules)
}

/// Our name for an exactly written one; a name that is in no table is its own.
pub fn own_name(name: &str) -> &str {
    ALIASES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours)
}

/// Reports whether a name is one of those that haft has or will have a tool for.
pub(crate) fn is_known(name: &str) -> bool {
    ALIASES.iter().any(|(theirs, ours)| *theirs == name || *ours == name)
}

/// The one of our, others' and some more names that is nearest to a misspelled one, if any is.
pub(crate) fn nearest<'a>(name: &str, more: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let known =
        ALIASES.iter().flat_map(|(theirs, ours)| [*theirs, *ours]).chain(more.iter().copied());
    known
        .map(|other| (strsim::damerau_levenshtein(&lower, &other.to_lowercase()), other))
        .filter(|(far, other)| *far <= 2 && far * 3 <= other.len())
        .min_by_key(|(far, _)| *far)
        .map(|(_, other)| other)
}

/// The name that was probably meant where only the letter case is wrong; none when it is right.
pub(crate) fn case_slip(name: &str) -> Option<&'static str> {
    if is_known(name) {
        return None;
    }
    ALIASES
        .iter()
        .find(|(theirs, ours)| theirs.eq_ignore_ascii_case(name) || ours.eq_ignore_ascii_case(name))
        .map(|(theirs, _)| *theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_exactly() {
        assert_eq!(own_name("Glob"), "find");
        assert_eq!(own_name("glob"), "glob");
        assert_eq!(case_slip("BASH"), Some("Bash"));
        assert_eq!(case_slip("Bash"), None);
        assert_eq!(case_slip("bash"), None);
        assert_eq!(case_slip("deploy"), None);
    }

    #[test]
    fn the_nearest_name_is_found() {
        for (name, near) in [("Raed", "Read"), ("bsh", "Bash"), ("WebFetsh", "WebFetch")] {
            assert_eq!(nearest(name, &[]), Some(near));
        }
        assert_eq!(nearest("deplyo", &["deploy"]), Some("deploy"));
        for name in ["Shell", "x", "", "deploy"] {
            assert_eq!(nearest(name, &[]), None, "{name}");
        }
    }
}
