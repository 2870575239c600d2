//! What git throws away for good is asked about in mode auto; what its reflog still has is not.

use haft_policy::{Grants, Mode, Rules, SandboxScope, Verdict};
use haft_types::Target;

use crate::world::{Call, at, policy};

fn verdict(command: &str, mode: Mode) -> (Verdict, String) {
    let mut call = Call::parse("run x", mode);
    let target = Target::Command { text: command.to_owned(), fresh_in: Some(at("/w")) };
    call.plan.effects[0].target = target;
    let walls = SandboxScope { write: vec![at("/w")], ..SandboxScope::default() };
    let (policy, grants) = (policy(&Rules::default()), Grants::default());
    let ruling = call
        .with_ask(&grants, |ask| policy.decide(&haft_policy::Ask { walls: Some(&walls), ..*ask }));
    (ruling.verdict, ruling.reason)
}

#[test]
fn what_git_throws_away_for_good_is_asked_about() {
    for command in [
        "git gc --prune=now",
        "git gc --aggressive --prune=all -q",
        "git gc --prun=1.second.ago",
        "git -c gc.pruneExpire=now gc",
        "git -C sub -c gc.reflogExpire=now gc --auto",
        "git -c gc.refs/stash.reflogExpireUnreachable=now maintenance run",
        "git repack -a -d --unpack-unreachable=now",
        "git repack --cruft --cruft-expiration=now -d",
        "git prune",
        "git prune --expire now",
        "git prune -v",
        "git reflog expire --expire=now --all",
        "git reflog delete HEAD@{1}",
        "git --no-pager reflog expire --all",
        "git update-ref -d HEAD",
        "git update-ref -d refs/heads/x",
        "git for-each-ref --format='delete %(refname)' | git update-ref --stdin",
        "git stash clear",
        "git filter-branch --tree-filter true HEAD",
        "git filter-repo --path x",
        "git-filter-repo --path x",
        "true && sh -c 'git prune'",
        "git for-each-ref | xargs -n1 git update-ref -d",
    ] {
        let (found, reason) = verdict(command, Mode::Auto);
        assert_eq!(found, Verdict::Ask, "{command}: {reason}");
        assert!(reason.contains("throws away"), "{command}: {reason}");
        assert_eq!(verdict(command, Mode::Bypass).0, Verdict::Allow, "{command}");
    }
}

#[test]
fn what_git_can_bring_back_is_not() {
    for command in [
        "git gc",
        "git gc --auto",
        "git gc --prune",
        "git gc --no-prune",
        "git repack -a -d",
        "git prune -n",
        "git prune --dry-run",
        "git prune-packed",
        "git reflog",
        "git reflog show",
        "git reflog expire -n --all",
        "git update-ref refs/heads/x HEAD",
        "git stash",
        "git stash drop",
        "git stash pop",
        "git reset --hard HEAD~1",
        "git branch -D x",
        "git branch -m a b",
        "git tag -d v1",
        "git commit --amend -m x",
        "git rebase main",
        "git checkout --orphan x",
        "git worktree prune",
    ] {
        let (found, reason) = verdict(command, Mode::Auto);
        assert_eq!(found, Verdict::Allow, "{command}: {reason}");
    }
}
