//! `enter_plan` and `exit_plan`: the model goes into mode plan by itself, and out of it with a plan
//! that a person approves.
//!
//! **Invariant:** only a person widens the mode. The plan that was approved is the one that was
//! shown, or what the person made of it; it is attached word for word where older messages leave
//! view.

use std::{
    borrow::Cow,
    fmt::Write as _,
    sync::{Mutex, PoisonError},
};

use haft_text::diff;
use haft_tool::{Cx, StateNote, Tool, WithHistory, schema_of};
use haft_types::{
    Access, Answerer, Choice, Effect, Env, Kind, Loading, Mode, Outcome, Place, Plan, Question,
    QuestionKind, Reply, Shape, Status, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the model is told when mode plan begins.
const PLAN_BEGINS: &str = "Mode plan is on: change nothing until the person approves a plan. Explore first: read, search, \
     and run what shows how things work. Commands run without a network where they can change \
     nothing; builds and tests run there, and what they make is thrown away. Ask only what cannot be found out. \
     Then present the plan with exit_plan, or as your answer where that tool is missing: what \
     changes in which file, in which order, and how each is checked. Leave nothing to decide.";

/// How the model is told that it is over; the mode follows.
pub const PLAN_ENDS: &str = "Mode plan is off: changes are no longer denied for it. The mode is ";

/// Most bytes of a plan: all of it stands behind every summary.
pub const PLAN_MAX: usize = 20_000;

/// The file that the plan of a session is written to: a service of the session.
pub trait PlanFile: Send + Sync {
    /// Its path.
    fn path(&self) -> &str;

    /// Its text; none where there is no such file.
    ///
    /// # Errors
    /// Says why it cannot be read.
    fn read(&self) -> Result<Option<String>, String>;

    /// Makes it possible to write it.
    ///
    /// # Errors
    /// Says why that failed.
    fn prepare(&self) -> Result<(), String>;
}

/// What the model is told when mode plan begins, with the file for the plan if there is one.
pub fn plan_begins(file: Option<&dyn PlanFile>) -> String {
    let mut text = PLAN_BEGINS.to_owned();
    if let Some(file) = file.filter(|file| file.prepare().is_ok()) {
        let path = file.path();
        let _ = write!(
            text,
            " A long plan may grow in {path}, the only file that may change: exit_plan without a \
             plan presents what stands there."
        );
    }
    text
}
/// The key of the state that has the approved plan.
const KEY: &str = "plan";
/// The answer that leaves the mode as it is.
const GO_ON: &str = "plan";
/// How much of what a person changed in a plan is shown.
const CHANGED: diff::Limits = diff::Limits { context: 2, lines: 200, width: 500 };

/// The mode that mode plan took the place of.
#[derive(Default)]
struct ModeBefore(Mutex<Option<Mode>>);

impl ModeBefore {
    fn set(&self, mode: Option<Mode>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    fn get(&self) -> Option<Mode> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusal where no model is there.
fn needs_conversation(cx: &Cx, name: &str) -> Result<(), ToolError> {
    if cx.conversation().map.get::<WithHistory>().get().is_some() {
        return Ok(());
    }
    let text = format!(
        "there is no conversation here whose mode could change: {name} is for agents of haft"
    );
    Err(ToolError::new(text))
}

/// What both of them change.
fn the_mode() -> Target {
    Target::State { name: Effect::MODE.into() }
}

/// Goes into mode plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnterPlan {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct EnterInput {}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct ModeData {
    /// The mode from now on.
    mode: String,
}

impl Tool for EnterPlan {
    type Input = EnterInput;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<ModeData>(),
            aliases: vec!["EnterPlanMode".into()],
            snippet: "Go into mode plan: change nothing until the person approves a plan".into(),
            hint: "plan mode design approach before change approve".into(),
            kind: Kind::Think,
            asks: true,
            unattended: "nobody is here who could approve a plan and so end mode plan, which is \
                         left off: give the plan as your answer, and change nothing"
                .into(),
            ..ToolSpec::new(
                "enter_plan",
                "Plan first",
                "Change nothing until the person approves a plan (mode plan). For big or open work.",
            )
        }
    }

    fn plan(&self, _: &EnterInput, place: &Place) -> Result<Plan, ToolError> {
        Ok(Plan::new(place, "Going into mode plan").with(Access::Modify, the_mode()))
    }

    async fn run(&self, _: EnterInput, cx: &Cx) -> Result<Outcome, ToolError> {
        needs_conversation(cx, "enter_plan")?;
        let before = cx.session().permissions().mode;
        let text: Cow<'_, str> = if before == Mode::Plan {
            "Mode plan is on already: explore, then present the plan with exit_plan.".into()
        } else {
            cx.set_mode(Mode::Plan, "enter_plan")?;
            cx.session().map.get::<ModeBefore>().set(Some(before));
            plan_begins(cx.service::<dyn PlanFile>().as_deref()).into()
        };
        let detail = Shape::Markdown { text: "mode plan".into() };
        let data = json!(ModeData { mode: Mode::Plan.to_string() });
        Ok(Outcome::text(text).with_data(data).with_detail(detail))
    }
}

/// Presents a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExitPlan {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ExitInput {
    /// Markdown; without it the plan's file counts.
    plan: Option<String>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct PlanData {
    /// Whether the person approved the plan.
    approved: bool,
    /// The mode from now on.
    mode: String,
    /// The plan as it is to be carried out; as it was presented where it was not approved.
    plan: String,
    /// What the person said to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<String>,
}

impl Tool for ExitPlan {
    type Input = ExitInput;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<PlanData>(),
            aliases: vec!["ExitPlanMode".into()],
            snippet: "Present the plan; the person approves it or sends it back".into(),
            hint: "plan mode present approve leave exit".into(),
            kind: Kind::Think,
            loading: Loading::Deferred,
            known_in: Some(Mode::Plan),
            ..ToolSpec::new(
                "exit_plan",
                "Present the plan",
                "Present the whole plan; it leaves nothing to decide. The person approves or \
                 returns it.",
            )
        }
    }

    fn plan(&self, input: &ExitInput, place: &Place) -> Result<Plan, ToolError> {
        if let Some(plan) = &input.plan {
            check("plan", plan)?;
        }
        // One plan at a time stands before a person, and what the plan is for comes after it.
        let person = Target::State { name: "person".into() };
        let plan = Plan::new(place, "Presenting the plan").with(Access::Modify, person);
        Ok(plan.with(Access::Modify, the_mode()))
    }

    async fn run(&self, input: ExitInput, cx: &Cx) -> Result<Outcome, ToolError> {
        needs_conversation(cx, "exit_plan")?;
        let mode = cx.session().permissions().mode;
        let plan = presented(input.plan, cx, mode == Mode::Plan)?;
        if mode != Mode::Plan {
            let text = format!(
                "Mode plan is not on, so nobody has to approve: go on. The mode is {mode}."
            );
            let data =
                json!(PlanData { approved: false, mode: mode.to_string(), plan, words: None });
            let detail = Shape::Markdown { text: format!("mode {mode}") };
            return Ok(Outcome::text(text).with_data(data).with_detail(detail));
        }
        let (reply, by) = cx.put(question(cx, &plan), None).await;
        match by {
            Answerer::Person(_) => answered(cx, plan, &reply),
            Answerer::Cancelled => {
                Ok(Outcome::ended(Status::Cancelled, "cancelled before anybody answered"))
            }
            Answerer::Nobody => {
                let id = &cx.session().id;
                Err(ToolError::new("nobody is here who could approve the plan").hint(format!(
                    "Give the whole plan as your answer, and end there. Who reads it goes on by: \
                     haft -r {id} --mode ask"
                )))
            }
        }
    }
}

/// Checks a plan.
fn check(what: &str, plan: &str) -> Result<(), ToolError> {
    if plan.trim().is_empty() {
        let text = format!("{what} is empty");
        return Err(ToolError::new(text).hint("Give the whole plan as Markdown."));
    }
    if plan.len() > PLAN_MAX {
        let text = format!("{what} has {} bytes; at most {PLAN_MAX} are taken", plan.len());
        return Err(ToolError::new(text).hint("Leave out what the files say already."));
    }
    Ok(())
}

/// The plan that is presented: the argument, otherwise the plan's file.
fn presented(plan: Option<String>, cx: &Cx, is_wanted: bool) -> Result<String, ToolError> {
    if let Some(plan) = plan {
        return Ok(plan.trim().to_owned());
    }
    let Some(file) = cx.service::<dyn PlanFile>() else {
        return if is_wanted {
            check("plan", "").map(|()| String::new())
        } else {
            Ok(String::new())
        };
    };
    let path = file.path();
    match file.read() {
        Ok(Some(text)) => {
            check(path, &text)?;
            Ok(text.trim().to_owned())
        }
        Ok(None) if !is_wanted => Ok(String::new()),
        Ok(None) => {
            let text = format!("plan is missing, and there is no file {path}");
            Err(ToolError::new(text).hint("Give the whole plan as Markdown."))
        }
        Err(why) => Err(ToolError::new(format!("{path} cannot be read: {why}"))
            .hint("Give the whole plan as Markdown, in plan.")),
    }
}

fn question(cx: &Cx, plan: &str) -> Question {
    let choice = |id: &str, key, label: String| Choice { id: id.into(), key, label };
    let mut options = vec![
        choice("ask", 'y', "yes, and ask before changes (mode ask)".into()),
        choice("accept-edits", 'e', "yes, and changes of files need no question".into()),
    ];
    let before = cx.session().map.get::<ModeBefore>().get();
    if let Some(mode) =
        before.filter(|mode| !matches!(mode, Mode::Ask | Mode::AcceptEdits | Mode::Plan))
    {
        options.push(choice(mode.name(), 'b', format!("yes, and back to mode {mode}")));
    }
    options.push(choice(GO_ON, 'n', "no, go on planning".into()));
    Question {
        id: cx.session().questions.next_id(),
        call: Some(cx.call.clone()),
        agent: cx.agent().clone(),
        kind: QuestionKind::Plan,
        text: "The model presents its plan. Shall it be carried out?".into(),
        command: None,
        preview: Some(Shape::Markdown { text: plan.to_owned() }.into()),
        options,
        form: None,
        if_nobody: Reply::pick(GO_ON),
    }
}

/// What a person made of the plan; none where it is as it was, or no plan.
fn edited(plan: &str, reply: &Reply) -> Option<String> {
    let edited = reply.input.as_ref()?.get("plan").and_then(Value::as_str)?.trim();
    (!edited.is_empty() && edited != plan).then(|| edited.to_owned())
}

fn answered(cx: &Cx, plan: String, reply: &Reply) -> Result<Outcome, ToolError> {
    let words = reply.text.clone().filter(|words| !words.trim().is_empty());
    let changed = edited(&plan, reply);
    if let Some(changed) = &changed {
        check("the plan as the person changed it", changed)?;
    }
    let mut text = String::new();
    let chosen: Mode = reply.option.parse().unwrap_or(Mode::Plan);
    let approved = chosen != Mode::Plan;
    if approved {
        cx.set_mode(chosen, "exit_plan")?;
        cx.session().map.get::<ModeBefore>().set(None);
    }
    // The person may have set another one while the plan stood before them.
    let mode = cx.session().permissions().mode;
    if approved {
        text.push_str("The person approved the plan. ");
        text.push_str(PLAN_ENDS);
        text.push_str(mode.name());
        text.push('.');
    } else if mode == Mode::Plan {
        text.push_str("The person sent the plan back. Mode plan is still on.");
    } else {
        let _ = write!(text, "The person sent the plan back. {PLAN_ENDS}{mode}.");
    }
    if let Some(words) = &words {
        text.push_str("\nThe person said: ");
        text.push_str(words);
    }
    if let Some(changed) = &changed {
        let shown = diff::diff(&format!("{plan}\n"), &format!("{changed}\n"), CHANGED);
        text.push_str(
            "\nThe person changed the plan; what counts is the plan with these changes:\n",
        );
        text.push_str(&shown.unified());
    }
    let plan = changed.unwrap_or(plan);
    if approved {
        let note = StateNote {
            heading: "The plan that the person approved, word for word".to_owned(),
            words: plan.clone(),
            ..StateNote::default()
        };
        cx.record(KEY, json!({StateNote::FIELD: note}))?;
    }
    let detail = Shape::Markdown { text: plan.clone() };
    let mode = mode.name().to_owned();
    let data = json!(PlanData { approved, mode, plan, words });
    Ok(Outcome::text(text).with_data(data).with_detail(detail))
}
