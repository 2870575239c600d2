//! Programs that want an editor where nobody can edit.

use haft_testkit::world::World;
use haft_types::Status;
use serde_json::json;

use crate::changed_git::GIT;

/// What every command begins with.
fn git(command: &str) -> String {
    format!("git() {{ command {GIT} \"$@\"; }}; {command}")
}

/// A repository with commits, branches that are in each other's way, and nothing in between.
const REPOSITORY: &str = "set -e; git init -qb main; echo 1 > a; git add a; git commit -qm one; \
    git checkout -qb other; echo 2 > a; git commit -qam other; git checkout -q main; echo 3 > a; \
    git commit -qam two; git checkout -qb beside HEAD~1; echo b > b; git add b; \
    git commit -qm beside; git checkout -q main; echo 4 > c; git add c; git commit -qm three";

async fn runs(world: &World, input: serde_json::Value, wanted: (Status, &str)) {
    let outcome = world.call("bash", input.clone()).await;
    let text = outcome.joined_text();
    assert_eq!(outcome.status, wanted.0, "{input}: {text}");
    assert!(text.contains(wanted.1), "{input}: {text}");
}

#[tokio::test]
async fn what_wants_an_editor_ends_at_once_and_says_what_to_do() {
    let message = "haft: no editor can be used here: give the message with -m TEXT or -F FILE";
    let todo = "haft: no editor can be used here: set GIT_SEQUENCE_EDITOR to a command";
    let other = "or call with pty: true";
    for (command, said) in [
        ("echo 5 >> a; git commit -a", message),
        ("git commit --amend", message),
        ("git commit --amend --author='x <x@y>' --allow-empty", message),
        ("git tag -a v1", message),
        ("git notes add", message),
        ("git rebase -i HEAD~1", todo),
        ("git rebase --interactive --root", todo),
        ("git branch --edit-description", other),
        ("git config --edit; false", other),
        ("git config core.editor vi; git config sequence.editor vi; git rebase -i HEAD~1", todo),
        ("touch it; $EDITOR it", other),
        ("touch it; sh -c '${VISUAL:-vi} +3 it'", other),
        ("printf x > 'it is'; \"${SHELL:-sh}\" -c \"$VISUAL 'it is'\"", "it is is not changed"),
        // What stops in the middle tells how it goes on.
        (
            "GIT_SEQUENCE_EDITOR='sed -i s/^pick/reword/' git rebase -i HEAD~1",
            "for the new message: git commit --amend -m TEXT, then git rebase --continue",
        ),
    ] {
        let world = World::local(haft_tools::builtin(), [("x", "")]).unwrap();
        runs(&world, json!({"command": git(REPOSITORY)}), (Status::Done, "")).await;
        let input = json!({"command": git(command), "timeout_ms": 20_000});
        runs(&world, input, (Status::Failed, said)).await;
        let log = if command.contains("GIT_SEQ") {
            "git commit -q --amend -m four && git rebase --continue 2>&1; git log --format=%s -1"
        } else {
            "test ! -d .git/rebase-merge && git log --format=%s -1"
        };
        let subject = if command.contains("GIT_SEQ") { "four" } else { "three" };
        runs(&world, json!({"command": git(log)}), (Status::Done, subject)).await;
    }
}

#[tokio::test]
async fn a_message_that_git_has_made_ready_is_taken() {
    let taken = "haft: the message was taken as it is";
    for (command, said, subject) in [
        ("git merge beside", "", "Merge branch 'beside'"),
        ("git merge --edit beside", taken, "Merge branch 'beside'"),
        ("git pull --no-rebase . beside", "", "Merge branch 'beside'"),
        ("git revert HEAD", "", "Revert \"three\""),
        ("git revert --edit HEAD", taken, "Revert \"three\""),
        ("git cherry-pick -e beside", taken, "beside"),
        ("git merge other; echo 6 > a; git add a; git commit", taken, "Merge branch 'other'"),
        (
            "git merge other; echo 6 > a; git add a; git merge --continue",
            taken,
            "Merge branch 'other'",
        ),
        ("git cherry-pick other; echo 6 > a; git add a; git cherry-pick --continue", "", "other"),
        ("git rebase other; echo 6 > a; git add a; git rebase --continue", taken, "three"),
        ("GIT_SEQUENCE_EDITOR='sed -i 2s/^pick/squash/' git rebase -i HEAD~2", taken, "two"),
        // What the command says itself stands.
        ("GIT_EDITOR='echo five >' git commit --amend", "", "five"),
        ("export EDITOR='echo six >'; unset GIT_EDITOR VISUAL; git commit --amend", "", "six"),
    ] {
        let world = World::local(haft_tools::builtin(), [("x", "")]).unwrap();
        runs(&world, json!({"command": git(REPOSITORY)}), (Status::Done, "")).await;
        let input = json!({"command": git(command), "timeout_ms": 20_000});
        runs(&world, input, (Status::Done, said)).await;
        let log = "test ! -d .git/rebase-merge && git log --format=%s -1";
        runs(&world, json!({"command": git(log)}), (Status::Done, subject)).await;
    }
}

#[tokio::test]
async fn sessions_and_jobs_have_no_editor_and_terminals_have_that_of_the_person() {
    let world = World::local(haft_tools::builtin(), [("x", "")]).unwrap();
    runs(&world, json!({"command": git(REPOSITORY)}), (Status::Done, "")).await;
    let command = git("git commit --amend");
    let input = json!({"command": command, "session": "s", "timeout_ms": 20_000});
    runs(&world, input, (Status::Failed, "no editor can be used here")).await;
    let input = json!({"command": command, "run_in_background": true});
    runs(&world, input, (Status::Done, "j1")).await;
    let ended = world.call("job", json!({"action": "wait", "job": "j1"})).await.joined_text();
    assert!(ended.contains("no editor can be used here") && ended.contains("exit"), "{ended}");
    let input = json!({"command": "echo \"<$EDITOR$VISUAL$GIT_EDITOR>\"", "pty": true});
    let shown = world.call("bash", input).await.joined_text();
    assert!(!shown.contains("--no-editor"), "{shown}");
}
