//! The commands of an everyday's work in five kinds of project, in mode auto: no question, no failure.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    mcp_client::{self, Client},
    world::World,
};

const COMMANDS: &str = include_str!("../../../../haft-policy/tests/commands/auto.txt");

/// The commands below the heading that begins so.
fn commands(kind: &str) -> Vec<String> {
    let text = |line: &str| {
        let quoted = format!("\"{}\"", line.replace('"', "\\\""));
        serde_json::from_str(&quoted).unwrap()
    };
    let mut here = false;
    let mut found = Vec::new();
    for line in COMMANDS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("# ") {
            Some(heading) => here = heading.starts_with(&format!("{kind}:")),
            None if here => found.push(text(line)),
            None => {}
        }
    }
    assert_eq!(found.len(), 20, "{kind}");
    found
}

/// Runs all of them in a repository with these files.
fn runs(kind: &str, files: &[(&str, &str)], path: Option<&Path>) {
    let world = World::new();
    for (name, text) in files {
        world.file(name, text);
    }
    let home = world.root().join("home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join(".gitconfig"), "[user]\nname = A\nemail = a@b.c\n").unwrap();
    for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "Begin"]] {
        assert!(world.program("git").args(words).status().unwrap().success(), "{words:?}");
    }
    let mut command = world.haft(&["mcp", "--mode", "auto"]);
    toolchains(&mut command, path);
    let mut client = Client::of(command);
    client.greet(&json!({}));
    for command in commands(kind) {
        let answer = client.call("bash", &json!({"command": command, "cwd": "."}));
        let said = mcp_client::text(&answer);
        assert_ne!(answer["result"]["isError"], Value::Bool(true), "{command}: {said}");
        assert!(!said.contains("sandbox") && !said.contains("[exit code"), "{command}: {said}");
    }
    client.ends_well();
}

/// The toolchains of whoever runs the tests, whose home is another here.
fn toolchains(command: &mut Command, path: Option<&Path>) {
    let home = std::env::home_dir().unwrap();
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        command.env(name, std::env::var_os(name).unwrap_or(home.join(folder).into()));
    }
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folders = path.into_iter().map(Path::to_owned).chain(std::env::split_paths(&before));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    // npm asks the network for a newer npm otherwise, of which the first answer would tell.
    command.env("npm_config_update_notifier", "false");
}

#[test]
fn of_rust() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("Cargo.lock", "version = 4\n\n[[package]]\nname = \"demo\"\nversion = \"0.1.0\"\n"),
        (
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3)\n}\n",
        ),
        ("src/main.rs", "fn main() {\n    println!(\"{}\", demo::add(1, 2));\n}\n"),
        ("tests/it.rs", "#[test]\nfn it() {\n    assert_eq!(demo::add(2, 2), 4)\n}\n"),
        ("examples/demo.rs", "fn main() {\n    println!(\"hi\")\n}\n"),
        (".gitignore", "target\n"),
    ];
    runs("Rust", &files, None);
}

#[test]
fn of_python() {
    let test = "import unittest\nimport app.main\n\n\nclass Test(unittest.TestCase):\n    def test_it(self):\n        \
                self.assertTrue(app.main.__doc__)\n\n\nif __name__ == '__main__':\n    unittest.main()\n";
    let files = [
        ("app/__init__.py", ""),
        (
            "app/main.py",
            "\"\"\"Main.\"\"\"\nold_name = 1\nif __name__ == '__main__':\n    print('hi')\n",
        ),
        ("tests/__init__.py", ""),
        ("tests/test_app.py", test),
        ("data.json", "{}\n"),
    ];
    runs("Python", &files, None);
}

#[test]
fn of_node() {
    let build = "const fs = require('fs');\nfs.mkdirSync('dist', { recursive: true });\n\
                 fs.copyFileSync('src/index.js', 'dist/index.js');\n";
    let package = r#"{"name": "demo", "version": "1.0.0", "scripts": {"build": "node src/build.js",
        "test": "node --test", "lint": "node --check src/index.js"}}"#;
    let files = [
        ("package.json", package),
        ("src/index.js", "console.log('hi');\n"),
        ("src/build.js", build),
        ("test/index.test.js", "require('node:test')('it', () => {});\n"),
    ];
    runs("Node", &files, None);
}

#[test]
fn of_go() {
    // A package of Python brings it.
    let python = haft_testkit::machine::python();
    let place = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let found = Command::new(python).args(["-c", place]).output().unwrap();
    let folder = Path::new(String::from_utf8(found.stdout).unwrap().trim()).join("go/bin");
    assert!(folder.join("gofmt").exists(), "{} has no go: run cargo xtask test", folder.display());
    let main = "package main\n\nimport \"fmt\"\n\n//go:generate echo hi\nfunc main() { fmt.Println(\"hi\") }\n";
    let test = "package config\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { X() }\n\n\
                func BenchmarkX(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t\tX()\n\t}\n}\n";
    let files = [
        ("go.mod", "module demo\n\ngo 1.20\n"),
        ("main.go", main),
        (
            "main_test.go",
            "package main\n\nimport \"testing\"\n\nfunc TestMainly(t *testing.T) {}\n",
        ),
        (
            "internal/config/config.go",
            "// Package config is.\npackage config\n\nfunc X() int { return 1 }\n",
        ),
        ("internal/config/config_test.go", test),
    ];
    runs("Go", &files, Some(&folder));
}

#[test]
fn of_c() {
    let make = "CC ?= gcc\nCFLAGS ?= -Wall\nall: build/app\nbuild/app: src/main.c src/util.c\n\t\
                mkdir -p build && $(CC) $(CFLAGS) -Iinclude -o $@ $^\ntest: all\n\t./build/app\n\
                clean:\n\trm -rf build\n.PHONY: all test clean\n";
    let main = "#include <stdio.h>\n#include <util.h>\nint main(void) {\n    puts(\"hi\");\n    return util();\n}\n";
    let diff = "--- a/src/util.c\n+++ b/src/util.c\n@@ -1,2 +1,3 @@\n #include <util.h>\n+/* x */\n int old_limit = 3;\n";
    let files = [
        ("Makefile", make),
        ("include/util.h", "int util(void);\n"),
        ("src/util.c", "#include <util.h>\nint old_limit = 3;\nint util(void) { return 0; }\n"),
        ("src/main.c", main),
        ("fix.diff", diff),
        ("build/.keep", ""),
    ];
    runs("C", &files, None);
}
