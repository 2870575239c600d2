//! The system prompt over a set of made-up tools.

use std::sync::Arc;

use haft_agent::{ContextFile, Surroundings, system};
use haft_tool::{AnyTool, Cx, Registry, Tool, ToolSet};
use haft_types::{Env, Guideline, Kind, Outcome, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

struct NamedTool(ToolSpec);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

impl Tool for NamedTool {
    type Input = Nothing;

    fn spec(&self, _: &Env) -> ToolSpec {
        self.0.clone()
    }

    async fn run(&self, _: Nothing, _: &Cx) -> Result<Outcome, ToolError> {
        Ok(Outcome::text("unused"))
    }
}

fn spec(name: &'static str, kind: Kind, guidelines: Vec<Guideline>) -> ToolSpec {
    let snippet = if name == "silent" { "" } else { "does what its name says" };
    ToolSpec { kind, guidelines, snippet: snippet.into(), ..ToolSpec::new(name, name, "text") }
}

fn line(text: &'static str, with: &[&'static str], without: &[&'static str]) -> Guideline {
    let names = |names: &[&'static str]| names.iter().map(|name| (*name).into()).collect();
    Guideline { text: text.into(), with: names(with), without: names(without) }
}

fn all() -> Vec<ToolSpec> {
    let read = vec![
        line("read before you edit", &["edit"], &[]),
        line("shared", &[], &[]),
        line("use bash for searches", &["bash"], &["grep"]),
    ];
    let grep = vec![line("prefer grep over bash", &["bash"], &[]), line("shared", &[], &[])];
    vec![
        spec("read", Kind::Read, read),
        spec("bash", Kind::Execute, vec![]),
        spec("edit", Kind::Edit, vec![line("shared", &[], &[])]),
        spec("grep", Kind::Search, grep),
        spec("silent", Kind::Other, vec![]),
    ]
}

fn set(names: &[&str]) -> ToolSet {
    let tools: Vec<Arc<dyn AnyTool>> = all()
        .into_iter()
        .filter(|spec| names.contains(&&*spec.name))
        .map(|spec| Arc::new(NamedTool(spec)) as Arc<dyn AnyTool>)
        .collect();
    Registry::default().source(tools).assemble(&Env::default())
}

fn around() -> Surroundings {
    Surroundings {
        date: "2026-01-31".into(),
        folder: "/w".into(),
        added: Vec::new(),
        platform: "linux x86_64, shell /bin/sh".into(),
        git: None,
    }
}

fn parts(tools: &ToolSet, context: &[ContextFile], around: &Surroundings) -> Vec<String> {
    system(tools, context, around, Vec::new()).parts
}

fn prompt(names: &[&str]) -> String {
    parts(&set(names), &[], &around()).concat()
}

#[test]
fn the_layers_stand_in_order_and_what_moves_stands_last() {
    let context = [
        ContextFile { path: "AGENTS.md".into(), text: "root rules\n\n".into() },
        ContextFile { path: "sub/AGENTS.md".into(), text: "sub rules".into() },
    ];
    let parts = parts(&set(&["read", "bash", "edit", "grep", "silent"]), &context, &around());
    assert_eq!(parts.len(), 2);
    let text = parts.concat();
    let landmarks = [
        "You are an expert",
        "# Tools",
        "- read: ",
        "- bash: ",
        "- edit: ",
        "- grep: ",
        "# Guidelines",
        "- read before you edit",
        "- shared",
        "- prefer grep over bash",
        "- Verify a change",
        "# Project context",
        "## AGENTS.md\n\nroot rules\n",
        "## sub/AGENTS.md\n\nsub rules\n",
        "Date: 2026-01-31\nWorking folder: /w\nPlatform: linux x86_64, shell /bin/sh",
    ];
    let mut from = 0;
    for landmark in landmarks {
        let at = text[from..].find(landmark).unwrap_or_else(|| panic!("{landmark}: {text}"));
        from += at + landmark.len();
    }
    assert_eq!(from, text.len(), "nothing comes behind the platform");
    assert!(!text.contains("silent"), "a tool without a snippet is not listed");
    assert!(!parts[0].contains("2026") && !parts[0].contains("/w"), "the first part never moves");
}

#[test]
fn every_folder_of_the_workspace_is_named() {
    let added = vec!["/x".to_owned(), "/y z".to_owned()];
    let text = parts(&set(&[]), &[], &Surroundings { added, ..around() }).concat();
    let end = "Working folder: /w\nFurther folder (give its path to search or list it): /x\n\
               Further folder (give its path to search or list it): /y z\nPlatform: ";
    assert!(text.contains(end), "{text}");
}

#[test]
fn a_guideline_stands_once_and_only_under_its_conditions() {
    let text = prompt(&["read", "bash", "edit", "grep"]);
    assert_eq!(text.matches("- shared").count(), 1);
    assert!(!text.contains("use bash for searches"), "grep is on");
    let text = prompt(&["read", "bash"]);
    assert!(text.contains("use bash for searches"));
    assert!(!text.contains("read before you edit"), "edit is off");
}

#[test]
fn a_tool_that_is_off_is_never_named() {
    let names = ["read", "bash", "edit", "grep"];
    for off in names {
        let on: Vec<&str> = names.into_iter().filter(|name| *name != off).collect();
        let text = prompt(&on);
        assert!(!text.contains(&format!("- {off}:")), "{text}");
        let said = match off {
            "edit" => "change files",
            "bash" => "run commands",
            "grep" => "search the project",
            _ => "read files",
        };
        assert!(!text.contains(said), "{off}: {text}");
    }
    let text = prompt(&[]);
    assert!(!text.contains("# Tools") && text.contains("You answer from what you are told."));
}

#[test]
fn the_same_tools_give_the_same_bytes_and_the_frame_is_small() {
    let names = ["read", "bash", "edit", "grep"];
    assert_eq!(prompt(&names), prompt(&names));
    let frame = prompt(&[]).len();
    assert!(frame < 900, "{frame} bytes without any tool leave no room for tools");
    let text = prompt(&names);
    for word in ["must", "always", "never", "IMPORTANT"] {
        assert!(!text.contains(word), "{word} dilutes");
    }
}

#[test]
fn a_prompt_is_the_same_on_another_day_and_nowhere_else() {
    let tools = Registry::default().assemble(&Env::default());
    let file = |text: &str| [ContextFile { path: "AGENTS.md".into(), text: text.into() }];
    let around = |date: &str, folder: &str| Surroundings {
        date: date.into(),
        folder: folder.into(),
        added: Vec::new(),
        platform: "linux".into(),
        git: None,
    };
    let of =
        |text: &str, date: &str, folder: &str| parts(&tools, &file(text), &around(date, folder));
    let same = haft_agent::same_but_date;
    let pinned = of("Date: one", "2026-01-31", "/a");
    assert!(same(&pinned, &of("Date: one", "2026-02-01", "/a")));
    for other in [
        of("Date: two", "2026-01-31", "/a"),
        of("Date: one", "2026-01-31", "/b"),
        of("Date: one", "2026-01-31", "/a/Date: x"),
    ] {
        assert!(!same(&pinned, &other));
    }
    assert!(same(&parts(&tools, &[], &around("1", "/a")), &parts(&tools, &[], &around("2", "/a"))));
    assert!(same(&[], &[]) && !same(&pinned, &[]));

    // What git says changes like the date, and may come and go.
    let says = |git: Option<&str>, folder: &str| {
        let git = git.map(str::to_owned);
        parts(
            &tools,
            &file("Git, when this began: x"),
            &Surroundings { git, ..around("1", folder) },
        )
    };
    let pinned = says(Some("branch main, 2 changed files"), "/a");
    assert!(pinned[1].ends_with("\nGit, when this began: branch main, 2 changed files"));
    for git in [None, Some("branch main"), Some("branch other, 1 changed file")] {
        assert!(same(&pinned, &says(git, "/a")) && same(&says(git, "/a"), &pinned));
        assert!(!same(&pinned, &says(git, "/b")));
    }
}

#[test]
fn sections_give_the_bytes_that_sessions_have_pinned() {
    let file = |path: &str, text: &str| ContextFile { path: path.into(), text: text.into() };
    let parts = parts(&set(&[]), &[file("A.md", "one\n\n"), file("B.md", "two")], &around());
    assert_eq!(
        parts[1],
        "# Project context\n\nThe project gives these instructions:\n\n## A.md\n\none\n\n\
         ## B.md\n\ntwo\n\nDate: 2026-01-31\nWorking folder: /w\n\
         Platform: linux x86_64, shell /bin/sh"
    );
    assert!(
        parts[0].contains("You answer from what you are told.\n\n# Guidelines\n\n- "),
        "{}",
        parts[0]
    );
}
