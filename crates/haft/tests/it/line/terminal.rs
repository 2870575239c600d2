//! `haft --line` in a real terminal: tmux types, and shows what a person would see.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use haft_testkit::machine;
use serde_json::json;

use crate::world::{
    PATIENCE, World, all_calls_ended, gone, runs, signal_all, unique_seconds, until,
};

/// A terminal with a shell in it.
pub struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    pub fn start(world: &World) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("tmux-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let tmux = Self { socket: world.root().join(name) };
        let settings = world.root().join("tmux.conf");
        std::fs::write(&settings, "set -g history-limit 100000\n").unwrap();
        let mut command = world.program(machine::program("tmux"));
        command.arg("-S").arg(&tmux.socket).arg("-f").arg(settings).args(["new-session", "-d"]);
        command.args(["-x", "100", "-y", "50", "sh"]).env("TERM", "xterm-256color");
        command.env("PS1", "$ ");
        let started = command.stdout(Stdio::null()).stderr(Stdio::inherit()).status();
        assert!(started.unwrap().success());
        tmux
    }

    pub fn tmux(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types a text as it is.
    pub fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key by its name.
    pub fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }

    /// Pastes a text as a terminal does: marked where the program asked for that.
    pub fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", text]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    pub fn line(&self, text: &str) {
        self.types(text);
        self.key("Enter");
    }

    /// What stands on the screen, with what was scrolled away.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// What stands on the screen now.
    pub fn visible(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J"])
    }

    /// Waits until a text stands on the screen.
    pub fn sees(&self, text: &str) -> String {
        let seen = until(PATIENCE, || self.screen().contains(text));
        let screen = self.screen();
        assert!(seen, "{text:?} did not come:\n{screen}");
        screen
    }

    /// Makes the terminal so wide, and waits until the programs in it can see that.
    pub fn resize(&self, columns: u32) {
        self.resize_to(columns, 50);
    }

    /// Gives the terminal this size, and waits until the programs in it can see that.
    pub fn resize_to(&self, columns: u32, rows: u32) {
        self.ask_for_size(columns, rows);
        let tty = self.tmux(&["display-message", "-p", "#{pane_tty}"]);
        let seen = || {
            let size = Command::new("stty").args(["-F", tty.trim(), "size"]).output().unwrap();
            String::from_utf8_lossy(&size.stdout).trim() == format!("{rows} {columns}")
        };
        assert!(until(PATIENCE, seen), "the terminal stays as it was");
    }

    /// Gives the terminal this size, whenever the programs in it see that.
    pub fn ask_for_size(&self, columns: u32, rows: u32) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Starts haft from the shell; how the terminal was set goes into a file before and after.
    pub fn haft(&self, arguments: &str) {
        let haft = env!("CARGO_BIN_EXE_haft");
        self.line(&format!(
            "stty -a > ../before; '{haft}' {arguments}; echo ended with $?; stty -a > ../after"
        ));
    }

    /// A terminal with `haft --line` in it, which is ready.
    pub fn talk(world: &World, model: &str, flags: &str) -> Self {
        let tmux = Self::start(world);
        tmux.haft(&format!("--line {flags} --model '{model}'"));
        tmux.sees("/help");
        tmux
    }

    /// Fails unless the terminal is as it was.
    pub fn is_sane(&self, world: &World) {
        // An empty line first: what was typed may be shown before the prompt of the shell is.
        self.line("echo; echo shell; echo again");
        self.sees("\nshell\nagain");
        let read = |name| std::fs::read_to_string(world.root().join(name)).unwrap();
        assert_eq!(read("before"), read("after"));
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).arg("kill-server");
        // It may have ended by itself.
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[test]
fn one_key_answers_a_question() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let edit = |old: &str, new: &str| {
        json!({"name": "edit", "input": {"path": "a.txt", "edits": [
            {"old_text": old, "new_text": new}]}})
    };
    let model = world.script(&[
        json!({"text": "I edit it.", "calls": [edit("alpha", "beta")]}),
        json!({"text": "Once more.", "calls": [edit("beta", "gamma")]}),
        json!({"text": "Both were asked."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("please edit a.txt");
    let screen = tmux.sees("key:");
    assert!(screen.contains("I edit it.") && screen.contains("+ beta"), "{screen}");
    tmux.key("Up");
    tmux.types("x");
    tmux.sees("> x");
    tmux.key("BSpace");
    assert!(until(PATIENCE, || tmux.screen().matches("key:").count() == 2));
    tmux.types("y");
    tmux.sees("Once more.");
    assert!(until(PATIENCE, || tmux.screen().matches("key:").count() == 3));
    assert_eq!(world.read("a.txt"), "beta\n");
    tmux.types("n");
    let screen = tmux.sees("Both were asked.");
    assert_eq!(screen.matches("please edit a.txt").count(), 1, "said twice:\n{screen}");
    assert_eq!(world.read("a.txt"), "beta\n");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
    println!("{screen}");
}

#[test]
fn an_interrupt_stops_a_command_and_the_talk_goes_on() {
    let world = World::new();
    let seconds = unique_seconds();
    let call =
        json!({"name": "bash", "input": {"command": format!("echo begun; sleep {seconds}")}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "I am still here."})]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("run it");
    assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    tmux.key("C-c");
    tmux.sees("interrupted");
    gone(&format!("sleep\0{seconds}"));
    tmux.line("are you there?");
    tmux.sees("I am still here.\n\n>");
    tmux.key("C-c");
    let screen = tmux.sees("ended with 0");
    tmux.is_sane(&world);
    all_calls_ended(&world.events());
    println!("{screen}");
}

#[test]
fn an_interrupt_at_a_question_answers_it_with_no() {
    let world = World::new();
    let call = json!({"name": "bash", "input": {"command": "touch made"}});
    let model = world.script(&[json!({"calls": [call]}), json!({"text": "I am still here."})]);
    let tmux = Tmux::talk(&world, &model, "");
    tmux.line("run it");
    tmux.sees("key:");
    tmux.key("C-c");
    tmux.sees("interrupted");
    assert!(!world.work().join("made").exists());
    // Lines are typed again, and seen.
    tmux.line("are you there?");
    tmux.sees("I am still here.");
    tmux.key("C-d");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
    all_calls_ended(&world.events());
}

/// A talk in which a command sleeps, its model, and how many seconds.
fn sleeping(world: &World) -> (Tmux, String, String) {
    let seconds = unique_seconds();
    let call = json!({"name": "bash", "input": {"command": format!("sleep {seconds}; echo")}});
    let model = world.script(&[json!({"calls": [call]})]);
    let tmux = Tmux::talk(world, &model, "--mode bypass");
    tmux.line("run it");
    assert!(until(PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    (tmux, model, seconds)
}

#[test]
fn a_terminal_that_goes_leaves_nothing_behind() {
    let world = World::new();
    let (tmux, model, seconds) = sleeping(&world);
    tmux.tmux(&["kill-server"]);
    gone(&seconds);
    gone(&model);
    all_calls_ended(&world.events());
}

#[test]
fn a_terminated_talk_ends_with_what_it_runs() {
    let world = World::new();
    let (tmux, model, seconds) = sleeping(&world);
    signal_all("TERM", &model);
    tmux.sees("ended with 0");
    gone(&seconds);
    tmux.is_sane(&world);
}

#[test]
fn a_line_typed_meanwhile_is_passed_on_at_the_next_step() {
    let world = World::new();
    let wait = "touch begun; until [ -e go ]; do sleep 0.02; done";
    let model = world.script(&[
        json!({"text": "I wait.", "calls": [{"name": "bash", "input": {"command": wait}}]}),
        json!({"text": "I have heard you."}),
    ]);
    let tmux = Tmux::talk(&world, &model, "--mode bypass");
    tmux.line("wait for me");
    assert!(until(PATIENCE, || world.work().join("begun").exists()));
    tmux.line("look at b.txt too");
    tmux.sees("look at b.txt too");
    world.file("go", "");
    tmux.sees("I have heard you.");
    tmux.line("/quit");
    tmux.sees("ended with 0");
    tmux.is_sane(&world);
    // Behind the result of the call, before the next answer, in one turn.
    let log: Vec<String> =
        world.events().iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let place = |part: &str| log.iter().position(|line| line.contains(part)).unwrap();
    let queued = place("agent.queue");
    let said = place("\"parts\":[{\"type\":\"text\",\"text\":\"look at b.txt too");
    assert!(queued < said && log[queued].contains("look at b.txt too"), "{log:#?}");
    let answers = log.iter().filter(|line| line.contains("\"answer_ended\"")).count();
    let last = log.iter().rposition(|line| line.contains("\"answer_ended\"")).unwrap();
    assert_eq!(answers, 2, "{log:#?}");
    assert!(place("\"call_ended\"") < said && said < last, "{log:#?}");
    assert!(log.last().unwrap().contains("\"turn\":1"), "{log:#?}");
}

#[test]
fn a_tool_asks_at_the_terminal() {
    let world = World::new();
    let tmux = Tmux::start(&world);
    tmux.haft("tool bash --input '{\"command\": \"echo it ran; touch made\"}'");
    tmux.sees("key:");
    assert!(!world.work().join("made").exists());
    tmux.types("y");
    tmux.sees("ended with 0");
    assert!(world.work().join("made").exists());
    tmux.is_sane(&world);
}
