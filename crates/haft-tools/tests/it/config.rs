//! `config`: a setting is changed by the yes of a person to this one change, and by nothing else.

use std::sync::{Arc, Mutex};

use haft_testkit::world::World;
use haft_tool::{SettingAccess, SettingChange, SettingValue};
use haft_types::{Body, Mode, Outcome, Question, Reply, Status, ToolError};
use serde_json::{Value, json};

/// One setting, which remembers what was saved.
#[derive(Default)]
struct OneSetting(Mutex<Vec<Value>>);

impl SettingAccess for OneSetting {
    fn names(&self) -> Vec<String> {
        vec!["terminal.theme".into()]
    }
    fn get(&self, name: &str) -> Result<SettingValue, ToolError> {
        let found = SettingValue { value: json!("light"), from: "user settings".into() };
        (name == "terminal.theme").then_some(found).ok_or_else(|| ToolError::new("not yours"))
    }
    fn check(&self, name: &str, value: &Value) -> Result<SettingChange, ToolError> {
        Ok(SettingChange {
            name: name.to_owned(),
            old: self.get(name)?.value,
            new: value.clone(),
            then: if value.is_null() { json!("terminal") } else { value.clone() },
            file: "~/.haft/settings.toml".into(),
            note: Some("The project settings set it, too.".into()),
        })
    }
    fn save(&self, change: &SettingChange) -> Result<(), ToolError> {
        self.0.lock().unwrap().push(change.new.clone());
        Ok(())
    }
}

fn world(mode: Mode) -> (World, Arc<OneSetting>) {
    let world = World::memory(haft_tools::builtin(), [("a", "")]).unwrap();
    let setting = Arc::new(OneSetting::default());
    world.session.services.insert::<dyn SettingAccess>(setting.clone());
    world.mode(mode);
    (world, setting)
}

async fn set(world: &World, value: Value) -> Outcome {
    world.call("config", json!({"set": "terminal.theme", "value": value})).await
}

fn questions(world: &World) -> Vec<Question> {
    let bodies = world.recorder.bodies().into_iter();
    let asked = bodies.filter_map(|body| match body {
        Body::Asked { question } => Some(question),
        _ => None,
    });
    asked.collect()
}

#[tokio::test]
async fn each_change_is_a_question_in_whatever_mode() {
    for mode in [Mode::Ask, Mode::AcceptEdits, Mode::Auto, Mode::Bypass] {
        let (world, setting) = world(mode);
        world.answer([Reply::pick("yes"), Reply::pick("no"), Reply::pick("allow")]);
        let outcome = set(&world, json!("dark")).await;
        assert_eq!(outcome.status, Status::Done, "{outcome:?}");
        assert_eq!(outcome.data.as_ref().unwrap()["changed"], true);
        for _ in 0..2 {
            let outcome = set(&world, json!("none")).await;
            assert_eq!(outcome.data.as_ref().unwrap()["changed"], false, "{outcome:?}");
        }
        assert_eq!(*setting.0.lock().unwrap(), [json!("dark")], "{mode}");
        let asked = questions(&world);
        assert_eq!(asked.len(), 3);
        let wanted = "The model wants to change the setting terminal.theme.\nNow: \"light\"\n\
                      Then: \"dark\"\nIn: ~/.haft/settings.toml\nThe project settings set it, too.";
        assert_eq!(asked[0].text, wanted);
        assert!(asked[1].text.contains("Then: \"none\""), "{}", asked[1].text);
    }
}

#[tokio::test]
async fn a_reset_is_a_change_to_the_default() {
    let (world, setting) = world(Mode::Ask);
    world.answer([Reply::pick("yes")]);
    let reset = |more: Value| {
        let mut input = json!({"set": "terminal.theme", "reset": "true"});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    };
    let outcome = world.call("config", reset(json!({}))).await;
    let said = "terminal.theme is \"terminal\" (the default) from the next start on";
    assert!(outcome.joined_text().starts_with(said), "{outcome:?}");
    assert_eq!(outcome.data.as_ref().unwrap()["value"], "terminal");
    assert_eq!(*setting.0.lock().unwrap(), [Value::Null]);
    let asked = &questions(&world)[0].text;
    assert!(asked.contains("Now: \"light\"\nThen: \"terminal\" (the default)\n"), "{asked}");
    for (more, said) in [
        (json!({"value": "dark"}), "value and reset are both given"),
        (json!({"get": "terminal.theme", "set": null}), "do not belong to get"),
    ] {
        let outcome = world.call("config", reset(more)).await;
        assert!(outcome.joined_text().contains(said), "{outcome:?}");
    }
    // What is not wished is not done.
    let outcome = world.call("config", json!({"set": "terminal.theme", "reset": false})).await;
    assert!(outcome.joined_text().starts_with("terminal.theme is \"light\" (user"), "{outcome:?}");
}

#[tokio::test]
async fn without_a_person_and_in_modes_that_change_nothing_none_is_asked() {
    for (mode, somebody, said) in [
        (Mode::Bypass, false, "nobody is here"),
        (Mode::Plan, true, "in mode plan"),
        (Mode::DontAsk, true, "in mode dont-ask"),
    ] {
        let (world, setting) = world(mode);
        world.session.questions.set_somebody(somebody);
        let outcome = set(&world, json!("dark")).await;
        assert!(outcome.joined_text().contains(said), "{mode}: {outcome:?}");
        assert!(setting.0.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_is_set_already_or_only_seen_needs_no_question() {
    let (world, setting) = world(Mode::Ask);
    let outcome = set(&world, json!("light")).await;
    assert_eq!(outcome.joined_text(), "terminal.theme is \"light\" already.");
    for input in [json!({"get": "terminal.theme"}), json!({"setting": "terminal.theme"})] {
        let outcome = world.call("config", input).await;
        let text = outcome.joined_text();
        assert!(text.starts_with("terminal.theme is \"light\" (user settings)"), "{text}");
    }
    assert!(questions(&world).is_empty() && setting.0.lock().unwrap().is_empty());
}
