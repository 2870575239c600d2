//! How other agents name the tools that haft has, as rules and agent definitions write them.

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
    ("NotebookEdit", "notebook_edit"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("AskUserQuestion", "ask_user"),
    ("EnterPlanMode", "enter_plan"),
    ("ExitPlanMode", "exit_plan"),
    ("ToolSearch", "tool_search"),
    ("TaskStop", "job"),
    ("TaskOutput", "job"),
    ("BashOutput", "job"),
    ("KillShell", "job"),
];

/// Our name for an exactly written one; a name that is in no table is its own.
pub fn own_name(name: &str) -> &str {
    ALIASES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours)
}

/// The name that was probably meant where only the letter case is wrong; none when it is right.
pub(crate) fn case_slip(name: &str) -> Option<&'static str> {
    let known = |wanted: &str| ALIASES.iter().any(|(a, b)| *a == wanted || *b == wanted);
    if known(name) {
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
}
