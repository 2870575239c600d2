//! One sample a tool, for the harness.

use haft_testkit::harness::Sample;
use haft_types::Hash;
use serde_json::{Value, json};

const FILES: &[(&str, &str)] = &[
    ("src/a.rs", "fn one() {}\nfn two() {}\n"),
    ("src/b.rs", "fn three() {}\n"),
    ("hidden.txt", "SECRET-BYTES\n"),
];

pub(crate) fn all() -> Vec<Sample> {
    let sample = |tool| Sample {
        tool,
        files: FILES.to_vec(),
        secret: Some("SECRET-BYTES"),
        ..Sample::default()
    };
    let mut samples = vec![
        ask_user(sample("ask_user")),
        enter_plan(sample("enter_plan")),
        exit_plan(sample("exit_plan")),
        read(sample("read")),
        bash(sample("bash")),
        edit(sample("edit")),
        write(sample("write")),
        notebook_edit(sample("notebook_edit")),
        job(sample("job")),
        skill(sample("skill")),
        snip(sample("snip")),
        todo(sample("todo")),
        tool_search(sample("tool_search")),
    ];
    samples.extend(tasks(sample));
    samples.extend([
        think(sample("think")),
        sleep(sample("sleep")),
        brief(sample("brief")),
        send_file(sample("send_file")),
        config(sample("config")),
        web_fetch(sample("web_fetch")),
    ]);
    samples.extend(searches(sample));
    samples
}

fn read(sample: Sample) -> Sample {
    Sample {
        good: vec![
            json!({"path": "src/a.rs"}),
            json!({"path": "src/a.rs", "offset": -1, "limit": 1}),
        ],
        bad: vec![
            (json!({"path": "src/c.rs"}), vec!["src/c.rs", "find"]),
            (json!({"path": "src"}), vec!["folder", "ls"]),
            (json!({"path": "src/a.rs", "offset": 9}), vec!["2 lines", "offset 9"]),
            (json!({"path": "src/a.rs", "limit": 0}), vec!["limit", "0"]),
            (json!({"path": "out://c99"}), vec!["out://c99"]),
            (json!({"path": "a\u{0}b"}), vec!["NUL"]),
        ],
        denied: Some(("Read(hidden.txt)", json!({"path": "hidden.txt"}))),
        ..sample
    }
}

fn job(sample: Sample) -> Sample {
    Sample {
        shell: true,
        good: vec![json!({"action": "list"})],
        bad: vec![
            (json!({"action": "output", "job": "j9"}), vec!["no job \"j9\"", "There are no jobs"]),
            (json!({"action": "wait"}), vec!["no job", "run_in_background"]),
            (json!({"action": "list", "port": 80}), vec!["port", "list", "wait"]),
            (json!({"action": "wait", "text": "x"}), vec!["text", "wait", "input"]),
            (json!({"action": "wait", "port": 1, "pattern": "x"}), vec!["port", "pattern"]),
            (json!({"action": "wait", "pattern": "("}), vec!["(", "regular expression"]),
            (json!({"action": "wait", "port": 0}), vec!["port", "0"]),
            (json!({"action": "input"}), vec!["text"]),
            (json!({"action": "stop", "job": "j9"}), vec!["j9"]),
        ],
        denied: Some(("Job", json!({"action": "list"}))),
        ..sample
    }
}

fn write(sample: Sample) -> Sample {
    Sample {
        good: vec![
            json!({"path": "new/deep/file.txt", "content": "text\n"}),
            json!({"path": "src/a.rs", "content": "fn other() {}\n"}),
        ],
        bad: vec![
            (json!({"path": "src", "content": "x"}), vec!["folder"]),
            (json!({"path": "src/a.rs/x", "content": "x"}), vec!["src/a.rs"]),
            (json!({"path": "src/a.rs", "content": "x", "expect": "12"}), vec!["expect", "12"]),
        ],
        denied: Some(("Edit(hidden.txt)", json!({"path": "hidden.txt", "content": "x"}))),
        ..sample
    }
}

const NOTEBOOK: &str = concat!(
    "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"id\": \"one\",\n",
    "   \"source\": [\n    \"1 + 1\"\n   ]\n  }\n ],\n \"metadata\": {},\n",
    " \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"
);

fn notebook_edit(sample: Sample) -> Sample {
    let expect = Hash::of(NOTEBOOK.as_bytes()).to_string();
    let known = |mut input: Value| {
        input["path"] = json!("a.ipynb");
        input["expect"] = json!(expect);
        input
    };
    Sample {
        files: [FILES, &[("a.ipynb", NOTEBOOK)]].concat(),
        good: vec![
            known(json!({"cell": 1, "new_source": "2 + 2\n"})),
            known(json!({"cell_id": "one", "cell_type": "markdown", "edit_mode": "insert",
                         "new_source": "# Text"})),
            known(json!({"cell_id": "one", "edit_mode": "delete"})),
        ],
        bad: vec![
            (known(json!({"cell": 2, "new_source": "x"})), vec!["1 cell", "no cell 2", "1 to 1"]),
            (known(json!({"cell_id": "two", "new_source": "x"})), vec!["\"two\"", "one (cell 1)"]),
            (known(json!({"new_source": "x"})), vec!["cell_id", "which cell"]),
            (known(json!({"cell": 1, "new_source": "1 + 1"})), vec!["already", "exactly"]),
            (known(json!({"cell": 1, "cell_type": "heading"})), vec!["cell_type", "heading"]),
            (json!({"path": "a.ipynb", "cell": 1, "new_source": "x"}), vec!["not read", "Read"]),
            (json!({"path": "none.ipynb", "cell": 1, "new_source": "x"}), vec!["none.ipynb"]),
            (json!({"path": "src", "cell": 1, "new_source": "x"}), vec!["folder"]),
        ],
        denied: Some((
            "Edit(hidden.txt)",
            json!({"path": "hidden.txt", "cell": 1, "new_source": "x"}),
        )),
        ..sample
    }
}

fn searches(sample: impl Fn(&'static str) -> Sample) -> Vec<Sample> {
    vec![
        Sample {
            good: vec![json!({"pattern": "fn t"}), json!({"pattern": "fn", "path": "src/a.rs"})],
            bad: vec![
                (json!({"pattern": "fn ("}), vec!["fn ("]),
                (json!({"pattern": "x", "path": "nowhere"}), vec!["nowhere"]),
                (json!({"pattern": "x", "type": "klingon"}), vec!["klingon"]),
            ],
            denied: Some(("Read(hidden.txt)", json!({"pattern": "SECRET", "path": "hidden.txt"}))),
            ..sample("grep")
        },
        Sample {
            good: vec![json!({"pattern": "*.rs"}), json!({"pattern": "src/**", "limit": 1})],
            bad: vec![
                (json!({"pattern": "a[b"}), vec!["a[b"]),
                (json!({"pattern": "x", "path": "nowhere"}), vec!["nowhere"]),
            ],
            denied: Some(("Find", json!({"pattern": "*"}))),
            ..sample("find")
        },
        Sample {
            good: vec![json!({}), json!({"path": "src", "long": true})],
            bad: vec![(json!({"path": "nowhere"}), vec!["nowhere"])],
            denied: Some(("LS", json!({}))),
            ..sample("ls")
        },
    ]
}

fn edit(sample: Sample) -> Sample {
    let one = |old: &str, new: &str| json!([{"old_text": old, "new_text": new}]);
    Sample {
        good: vec![json!({"path": "src/a.rs", "edits": one("fn one", "fn first")})],
        bad: vec![
            (json!({"path": "src/c.rs", "edits": one("a", "b")}), vec!["src/c.rs"]),
            (json!({"path": "src/a.rs", "edits": []}), vec!["edits"]),
            (json!({"path": "src/a.rs", "edits": one("fn six", "x")}), vec!["Edit 1", "not found"]),
            (json!({"path": "src/a.rs", "edits": one("fn ", "x")}), vec!["2 places", "lines 1, 2"]),
            (json!({"path": "src/a.rs", "edits": one("", "x")}), vec!["old_text", "empty"]),
            (json!({"path": "src/a.rs", "edits": [{"old_text": "fn"}]}), vec!["new_text"]),
        ],
        denied: Some((
            "Edit(hidden.txt)",
            json!({"path": "hidden.txt", "edits": one("SECRET", "x")}),
        )),
        ..sample
    }
}

fn ask_user(sample: Sample) -> Sample {
    let of = |options: &[&str]| {
        let options: Vec<Value> = options.iter().map(|label| json!({ "label": label })).collect();
        json!({"questions": [{"question": "Which one?", "options": options}]})
    };
    Sample {
        good: vec![of(&["A", "B"])],
        bad: vec![
            (json!({"questions": []}), vec!["questions", "empty"]),
            (of(&["A"]), vec!["questions.0.options", "one option"]),
        ],
        denied: Some(("AskUserQuestion", of(&["A", "B"]))),
        ..sample
    }
}

fn enter_plan(sample: Sample) -> Sample {
    let (good, denied) = (vec![json!({})], Some(("EnterPlanMode", json!({}))));
    Sample { good, bad: vec![(json!(7), vec![])], denied, ..sample }
}

fn exit_plan(sample: Sample) -> Sample {
    let of = |plan: &str| json!({ "plan": plan });
    let large = "x".repeat(1 << 20);
    Sample {
        good: vec![of("1. Mend a.rs")],
        bad: vec![(of(" "), vec!["plan", "empty"]), (of(&large), vec!["1048576 bytes", "20000"])],
        denied: Some(("ExitPlanMode", of("1. Mend a.rs"))),
        ..sample
    }
}

fn tool_search(sample: Sample) -> Sample {
    let of = |query: &str| json!({ "query": query });
    let large = "x".repeat(1 << 20);
    Sample {
        good: vec![
            of("change a notebook"),
            of("select:notebook_edit,task_list"),
            json!({"query": "task", "max_results": 2}),
        ],
        bad: vec![
            (of(" "), vec!["query", "empty"]),
            (of("zebra"), vec!["no tool fits", "zebra"]),
            (of("select:notebok_edit"), vec!["notebok_edit", "nearest", "notebook_edit"]),
            (of("select:,"), vec!["no name"]),
            (of(&large), vec!["1048576 bytes", "2000"]),
            (json!({"query": "task", "limit": 0}), vec!["limit", "0"]),
        ],
        denied: Some(("ToolSearch", of("change a notebook"))),
        ..sample
    }
}

fn snip(sample: Sample) -> Sample {
    let of = |from: &str, why: &str| json!({"from": from, "to": "out://c1", "why": why});
    Sample {
        good: vec![of("out://c1", "it led nowhere")],
        bad: vec![
            (of("nowhere", "it led nowhere"), vec!["nowhere", "no place"]),
            (of("out://c1", " "), vec!["why", "empty"]),
        ],
        denied: Some(("Snip", of("out://c1", "it led nowhere"))),
        ..sample
    }
}

/// In worlds with one, `steps`.
fn skill(sample: Sample) -> Sample {
    let of = |name: &str| json!({"skill": name});
    Sample {
        good: vec![of("steps"), json!({"skill": "steps", "args": "two 'at once'"})],
        bad: vec![
            (of("step-by-step"), vec!["no skill named", "- steps: Steps to take"]),
            (of("zebra"), vec!["no skill named", "None of the 1 skills"]),
            (of(" "), vec!["skill", "empty"]),
        ],
        denied: Some(("Skill(steps)", of("steps"))),
        ..sample
    }
}

fn todo(sample: Sample) -> Sample {
    let of = |first: &str, second: &str| json!({"items": [{"text": "Read it", "status": first}, {"text": "Mend it", "status": second}]});
    Sample {
        good: vec![of("completed", "in_progress"), json!({}), json!({"items": []})],
        bad: vec![
            (of("in_progress", "in_progress"), vec!["two items are in_progress", "Mend it"]),
            (of("pending", "cancelled"), vec!["cancelled", "status"]),
            (json!({"items": [{"text": " "}]}), vec!["items[0].text", "empty"]),
        ],
        denied: Some(("TodoWrite", of("pending", "pending"))),
        ..sample
    }
}

/// In worlds with one task.
fn tasks(sample: impl Fn(&'static str) -> Sample) -> [Sample; 4] {
    let of = |name, rule, good: Value, bad: Vec<(Value, Vec<&'static str>)>| Sample {
        denied: Some((rule, good.clone())),
        good: vec![good],
        bad,
        ..sample(name)
    };
    let missing = || vec!["no task \"7\"", "The only task is #1"];
    let create = |subject: &str, after: &str| json!({"subject": subject, "blocked_by": [after]});
    [
        of(
            "task_create",
            "TaskCreate",
            create("Test it", "1"),
            vec![(create("Test it", "7"), missing()), (create(" ", "1"), vec!["subject", "empty"])],
        ),
        of("task_get", "TaskGet", json!({"task": "1"}), vec![(json!({"task": "7"}), missing())]),
        of("task_list", "TaskList", json!({}), vec![(json!(7), vec!["task_list", "object"])]),
        of(
            "task_update",
            "TaskUpdate",
            json!({"task": "1", "status": "completed"}),
            vec![
                (json!({"task": "7", "status": "completed"}), missing()),
                (json!({"task": "1"}), vec!["nothing of the task", "status"]),
                (json!({"task": "1", "add_blocks": ["1"]}), vec!["#1 \"Mend it\" blocks #1"]),
            ],
        ),
    ]
}

fn think(sample: Sample) -> Sample {
    let of = |thought: &str| json!({ "thought": thought });
    let large = "x".repeat(1 << 20);
    Sample {
        good: vec![of("The test fails before the parser runs.")],
        bad: vec![(of(" "), vec!["thought", "empty"]), (of(&large), vec!["1048576", "50000"])],
        denied: Some(("Think", of("x"))),
        ..sample
    }
}

fn sleep(sample: Sample) -> Sample {
    let until = |until: &str| json!({ "until": until });
    Sample {
        good: vec![json!({"seconds": 0})],
        bad: vec![
            (json!({}), vec!["seconds", "until"]),
            (json!({"seconds": 1, "until": "14:30"}), vec!["both"]),
            (json!({"seconds": -1}), vec!["seconds is -1", "3600"]),
            (until("soon"), vec!["soon", "14:30"]),
            (until("2001-01-01T00:00:00Z"), vec!["over"]),
        ],
        denied: Some(("Sleep", json!({"seconds": 0}))),
        endless: Some(json!({"seconds": 60})),
        ..sample
    }
}

fn web_fetch(sample: Sample) -> Sample {
    let of = |url: &str| json!({ "url": url });
    let large = format!("https://tea.example/{}", "x".repeat(1 << 20));
    Sample {
        good: vec![
            of("https://tea.example/"),
            json!({"url": "https://tea.example/", "offset": 3}),
            json!({"uri": "http://tea.example:8080/a?b#c"}),
            json!({"url": "https://tea.example/", "prompt": "How long?"}),
        ],
        bad: vec![
            (of("tea.example"), vec!["tea.example", "https://"]),
            (of("ftp://tea.example/"), vec!["ftp:", "http"]),
            (of("https://me:pw@tea.example/"), vec!["password", "Leave them out"]),
            (of("http://127.1/"), vec!["127.0.0.1", "this machine itself", "web.private"]),
            (of(&large), vec!["1048596", "8000"]),
            (json!({"url": "https://tea.example/", "offset": 900}), vec!["offset 900", "past"]),
            (json!({"url": "https://tea.example/", "question": " "}), vec!["question", "empty"]),
        ],
        denied: Some(("WebFetch(domain:tea.example)", of("https://TEA.example./"))),
        endless: Some(of("https://slow.example/")),
        ..sample
    }
}

fn brief(sample: Sample) -> Sample {
    let of = |text: &str| json!({ "text": text });
    let large = "x".repeat(1 << 20);
    Sample {
        good: vec![of("Half of it is *done*.")],
        bad: vec![(of(" "), vec!["text", "empty"]), (of(&large), vec!["1048576", "4000"])],
        denied: Some(("SendUserMessage", of("x"))),
        ..sample
    }
}

fn send_file(sample: Sample) -> Sample {
    Sample {
        good: vec![
            json!({"path": "src/a.rs"}),
            json!({"path": "src/a.rs", "caption": "What was asked for"}),
        ],
        bad: vec![
            (json!({"path": "src/c.rs"}), vec!["src/c.rs"]),
            (json!({"path": "src"}), vec!["folder"]),
            (json!({"path": "out://c99"}), vec!["out://c99"]),
            (json!({"path": " "}), vec!["path", "blank"]),
            (json!({"path": "src/a.rs", "caption": "x".repeat(501)}), vec!["caption", "501"]),
        ],
        denied: Some(("Read(hidden.txt)", json!({"path": "hidden.txt"}))),
        ..sample
    }
}

fn config(sample: Sample) -> Sample {
    let set = |name: &str, value: Value| json!({"set": name, "value": value});
    Sample {
        good: vec![json!({"get": "terminal.theme"}), set("terminal.theme", json!("dark"))],
        bad: vec![
            (json!({}), vec!["no setting", "get"]),
            (json!({"get": "hooks"}), vec!["hooks"]),
            (set("terminal.theme", json!("pink")), vec!["pink"]),
            (json!({"get": "a", "set": "b"}), vec!["both"]),
            (json!({"get": "a", "value": 1}), vec!["value"]),
            (set("terminal.theme", json!("x".repeat(1 << 20))), vec!["1048578", "500"]),
        ],
        denied: Some(("Config", json!({"get": "terminal.theme"}))),
        ..sample
    }
}

fn bash(sample: Sample) -> Sample {
    Sample {
        good: vec![json!({"command": "echo hello; echo made > made.txt"})],
        bad: vec![(json!({"command": "true", "cwd": "nowhere"}), vec!["nowhere"])],
        denied: Some(("Bash(cat:*)", json!({"command": "cat hidden.txt"}))),
        endless: Some(json!({"command": "echo begun; sleep 60"})),
        shell: true,
        ..sample
    }
}
