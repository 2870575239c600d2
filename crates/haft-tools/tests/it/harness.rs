//! Every built-in tool stands what every tool has to stand.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use haft_testkit::{
    harness::{self, Make},
    world::World,
};
use haft_tool::{
    Gate, History, SettingAccess, SettingChange, SettingValue, SnipReport, Web, WebError,
    WebRequest, WebResponse, WithHistory,
};
use haft_tools::{Catalogue, FrontMatter, Options, SkillEntry, SkillOrigin, SkillSource, Skills};
use haft_types::{HostPath, Reply, Style, ToolError, TurnId};
use serde_json::{Value, json};

use crate::samples;

/// A conversation that has one call.
struct OneCall;

impl History for OneCall {
    fn snip(&self, _: TurnId, from: &str, _: &str, _: &str) -> Result<SnipReport, String> {
        let report = SnipReport { messages: 2, calls: 1, saved: 900, uncached: 100 };
        (from == "out://c1").then_some(report).ok_or_else(|| format!("{from:?} is no place"))
    }
}

/// A theme, which is light and may be dark.
struct OneSetting;

impl SettingAccess for OneSetting {
    fn names(&self) -> Vec<String> {
        vec!["terminal.theme".into()]
    }
    fn get(&self, name: &str) -> Result<SettingValue, ToolError> {
        let found = SettingValue { value: json!("light"), from: "user settings".into() };
        (name == "terminal.theme").then_some(found).ok_or_else(|| ToolError::new(name))
    }
    fn check(&self, name: &str, value: &Value) -> Result<SettingChange, ToolError> {
        let old = self.get(name)?.value;
        if value != "dark" {
            return Err(ToolError::new(value.to_string()));
        }
        let (name, new, file) = (name.to_owned(), value.clone(), "settings.toml".to_owned());
        Ok(SettingChange { name, old, then: new.clone(), new, file, note: None })
    }
    fn save(&self, _: &SettingChange) -> Result<(), ToolError> {
        Ok(())
    }
}

/// One skill, which stands in no file.
struct OneSkill;

impl SkillSource for OneSkill {
    fn catalogue(&self) -> Arc<Catalogue> {
        let at = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
        let entry = SkillEntry {
            name: "steps".into(),
            is_command: false,
            file: at("/steps"),
            folder: at("/steps"),
            text: Some("---\ndescription: Steps\n---\nTake $1."),
            origin: SkillOrigin::Shipped,
            head: FrontMatter { description: "Steps to take".into(), ..FrontMatter::default() },
            withheld: None,
            is_nested: false,
        };
        Arc::new(Catalogue::new([entry], Vec::new()))
    }

    fn refresh(&self) -> Arc<Catalogue> {
        self.catalogue()
    }

    fn project(&self) -> String {
        "/".into()
    }
}

/// A web of one page; a host named slow answers nothing.
struct OnePage;

impl Web for OnePage {
    fn send<'a>(
        &'a self,
        request: &'a WebRequest,
        gate: &'a dyn Gate,
    ) -> BoxFuture<'a, Result<WebResponse, WebError>> {
        async move {
            let url = haft_tool::WebUrl::read(&request.url)?;
            assert!(gate.admits(url.host()), "{}", request.url);
            if url.host().to_string() == "slow.example" {
                return std::future::pending().await;
            }
            Ok(WebResponse {
                url: request.url.clone(),
                status: 200,
                content_type: Some("text/html".into()),
                body: "<title>Tea</title><h1>Tea</h1><p>Steep for three minutes.".into(),
                ..WebResponse::default()
            })
        }
        .boxed()
    }
}

/// Gives the calls of a world a conversation that they are part of, a task, and a person who answers.
fn with_history(world: World) -> World {
    let reply = Reply { input: Some(json!({"q1": "A"})), ..Reply::pick("answer") };
    world.answer([reply]);
    world.dispatcher.conversation.map.get::<WithHistory>().set(Arc::new(OneCall));
    let task = json!({"task": {"id": 1, "subject": "Mend it"}});
    let shared = &world.dispatcher.session.shared;
    shared.restore([("shared task 0001".to_owned(), task)].into());
    world.session.services.insert::<dyn SettingAccess>(Arc::new(OneSetting));
    world.session.services.insert::<dyn Web>(Arc::new(OnePage));
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_tool_passes_on_both_hosts() {
    let memory: Make<'_> =
        &|tools, files| with_history(World::memory(tools, files.iter().copied()).unwrap());
    let local: Make<'_> =
        &|tools, files| with_history(World::local(tools, files.iter().copied()).unwrap());
    let worlds = [("memory", memory), ("local", local)];
    let options = Options { skills: Skills(Some(Arc::new(OneSkill))), ..Options::default() };
    let tools = haft_tools::with(&options);
    let problems = harness::run(&tools, &samples::all(), &worlds).await;
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn a_tool_without_a_sample_fails() {
    let memory: Make<'_> = &|tools, files| World::memory(tools, files.iter().copied()).unwrap();
    let problems = harness::run(&haft_tools::builtin(), &[], &[("memory", memory)]).await;
    assert!(problems.iter().any(|problem| problem.contains("read: has no sample")), "{problems:?}");
}
