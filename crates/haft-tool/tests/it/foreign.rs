//! Tools that are not built in: what their specs, plans and outcomes say counts for them as for the
//! built-in ones, and names of their fields say nothing.

use std::{io, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{
    Attack, Caps, Cell, Fs, Host, Level, Memory, Probe as LevelProbe, Running, Search, Shell, Spawn,
};
use haft_policy::{Around, Mode, Rules, Scope, Script, Verdict};
use haft_testkit::world::World;
use haft_tool::{AnyTool, Registry};
use haft_types::{
    Access, Env, Follow, HostPath, Outcome, Plan, Reply, Status, Style, Target, ToolSpec,
};
use serde_json::{Value, json};

use crate::support::{Probe, at, tools, world};

/// A host in memory that says that it confines programs, and starts none.
struct Confining(Memory);

impl Host for Confining {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn style(&self) -> Style {
        self.0.style()
    }
    fn home(&self) -> &HostPath {
        self.0.home()
    }
    fn temp(&self) -> &HostPath {
        self.0.temp()
    }
    fn caps(&self) -> Caps {
        self.0.caps()
    }
    fn fs(&self) -> &dyn Fs {
        &self.0
    }
    fn shell(&self) -> Option<&dyn Shell> {
        Some(self)
    }
    fn search(&self) -> Option<&dyn Search> {
        None
    }
}

impl Shell for Confining {
    fn spawn(&self, _: Spawn) -> BoxFuture<'_, io::Result<Running>> {
        std::future::ready(Err(io::ErrorKind::Unsupported.into())).boxed()
    }
    fn levels(&self) -> BoxFuture<'_, Vec<LevelProbe>> {
        let found = Attack::ALL.map(|attack| (attack, Cell::Stopped)).to_vec();
        let (level, failed) = (Level::Namespaces, None);
        std::future::ready(vec![LevelProbe { level, failed, found, counts: false }]).boxed()
    }
}

/// A world whose programs are confined to the workspace, and where a person says yes.
fn confining(probes: impl IntoIterator<Item = Probe>) -> World {
    let host = Memory::new();
    host.add_folder("/w").unwrap();
    host.add_folder("/other").unwrap();
    let world = World::on(Arc::new(Confining(host)), at("/w"), tools(probes).0);
    world.mode(Mode::Auto);
    world.answer(vec![Reply::pick("allow"); 8]);
    world
}

/// A tool whose command makes a file outside of the workspace that is not there yet.
fn maker(name: &str, outcome: Outcome) -> Probe {
    let text = format!("echo x > /other/{name}");
    Probe::new(name)
        .plan(move |_, place| {
            let script = Script::read(&text, &place.cwd, &place.home, Around::PLAIN);
            let fresh_in = Some(place.cwd.clone());
            let plan = Plan::new(place, "Making")
                .with(Access::Destroy, Target::Command { text: text.clone(), fresh_in });
            let effects = script.effects().into_iter();
            effects.fold(plan, |plan, effect| plan.with(effect.access, effect.target))
        })
        .run(move |_, _| std::future::ready(Ok(outcome.clone())))
}

async fn is_there(world: &World, name: &str) -> bool {
    let file = at(&format!("/other/{name}"));
    world.host.fs().locate(&file, Follow::No).await.unwrap().stamp.is_some()
}

#[tokio::test]
async fn what_was_set_up_is_kept_for_what_goes_on_and_for_nothing_else() {
    let done = || Outcome::text("done");
    let data = Some(json!({"job_id": "j1"}));
    let world = confining([
        maker("ends", done()),
        maker("goes_on", Outcome { keeps: true, ..done() }),
        maker("names_a_job", Outcome { data, ..done() }),
    ]);
    for (name, stays) in [("ends", false), ("goes_on", true), ("names_a_job", false)] {
        let outcome = world.call(name, json!({"session": "s"})).await;
        assert_eq!(outcome.status, Status::Done, "{name}: {outcome:?}");
        assert_eq!(is_there(&world, name).await, stays, "{name}");
    }
}

/// A tool whose command is refused a file.
fn refused(name: &str, lives_on: bool) -> Probe {
    let text = "cp: /other/x: Permission denied";
    let outcome = Outcome { status: Status::Failed, ..Outcome::text(text) };
    Probe::new(name)
        .plan(move |_, place| {
            let plan = Plan::new(place, "Copying");
            let plan = plan.with(Access::Destroy, Target::command("cp a b".into()));
            if lives_on { plan.living_on() } else { plan }
        })
        .run(move |_, _| std::future::ready(Ok(outcome.clone())))
}

#[tokio::test]
async fn only_a_plan_says_that_a_process_lives_on() {
    let world = confining([refused("shell", true), refused("other", false)]);
    for (name, input, lives_on) in [
        ("shell", json!({}), true),
        ("other", json!({}), false),
        ("other", json!({"session": "s"}), false),
    ] {
        let text = world.call(name, input).await.joined_text();
        assert!(text.contains("with needs {\"write\":[\"/other\"]}"), "{name}: {text}");
        assert_eq!(text.contains("without session"), lives_on, "{name}: {text}");
    }
}

/// The tools that a denial leaves.
fn left(rule: &str) -> Vec<String> {
    let (world, _) = world([]);
    world.rule(Verdict::Deny, rule);
    let judge = world.session.permissions();
    let hide = move |spec: ToolSpec, _: &Env| (!judge.policy.hides(&spec)).then_some(spec);
    let names = ["edit", "write", "plain"].map(Probe::new);
    let patch = Probe::new("patch").spec(|spec| spec.rules_of = vec!["edit".into()]);
    let probes = names.into_iter().chain([patch]);
    let all = probes.map(|probe| Arc::new(probe) as Arc<dyn AnyTool>).collect::<Vec<_>>();
    let set = Registry::default().source(all).filter(hide).assemble(&Env::default());
    set.specs().iter().map(|spec| spec.name.to_string()).collect()
}

#[test]
fn a_tool_goes_with_those_whose_rules_it_names() {
    assert_eq!(left("Edit"), ["plain"]);
    assert_eq!(left("Write"), ["edit", "plain", "patch"]);
    assert_eq!(left("patch"), ["edit", "write", "plain"]);
}

#[tokio::test]
async fn its_calls_are_judged_as_those_of_edit() {
    let call = |rule: &'static str, verdict: Verdict| async move {
        let patch = Probe::new("patch").changes().spec(|spec| spec.rules_of = vec!["edit".into()]);
        let (world, _) = world([Probe::new("edit").changes(), patch]);
        world.mode(Mode::Ask);
        let rules = Rules::default().with(verdict, Scope::User, rule);
        world.session.set_permissions(|judge| judge.policy.extend(&rules));
        let input: Value = json!({"path": "a"});
        let of = |name: &'static str| world.call(name, input.clone());
        (of("edit").await.status, of("patch").await.status)
    };
    let (denied, done) = (Status::Denied, Status::Done);
    assert_eq!(call("Edit(a)", Verdict::Deny).await, (denied, denied));
    assert_eq!(call("Edit", Verdict::Deny).await, (denied, denied));
    assert_eq!(call("Edit(a)", Verdict::Allow).await, (done, done));
    assert_eq!(call("Edit(b)", Verdict::Allow).await, (denied, denied));
}
