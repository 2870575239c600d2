//! `task_create`, `task_get`, `task_list` and `task_update`: tasks with dependencies, one list a
//! session.
//!
//! **Invariant:** all agents of a session have one list. A change is made by the list as it is at
//! that moment, and is in the log before it counts: no change is lost to another one.

mod list;

use haft_tool::{Cx, TaskFacts, Tool, WorkHooks, schema_of};
use haft_types::{
    Access, Env, Guideline, Kind, Loading, Outcome, Place, Plan, Shape, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::list::{Task, Tasks, key, listed, prefix, value};
use crate::checklist::{Status, checked, count, line};

/// Most characters of a description.
const DESCRIPTION: usize = 4_000;

/// Makes a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskCreate {}

/// Gives a task with all that belongs to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskGet {}

/// Lists the tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskList {}

/// Changes a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskUpdate {}

/// A task as programs read it.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskData {
    id: String,
    subject: String,
    description: String,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    /// Tasks that wait for this one.
    blocks: Vec<String>,
    /// Tasks that this one waits for, completed ones included.
    blocked_by: Vec<String>,
}

impl TaskData {
    fn of(task: &Task, tasks: &Tasks) -> Self {
        let texts = |ids: std::collections::BTreeSet<u64>| {
            ids.into_iter().map(|id| id.to_string()).collect()
        };
        Self {
            id: task.id.to_string(),
            subject: task.subject.clone(),
            description: task.description.clone(),
            status: task.status,
            owner: task.owner.clone(),
            blocks: texts(tasks.blocked(task.id)),
            blocked_by: texts(tasks.blockers(task.id)),
        }
    }
}

/// What programs read of one task.
#[derive(Debug, Serialize, JsonSchema)]
struct One {
    task: TaskData,
}

/// What programs read of all.
#[derive(Debug, Serialize, JsonSchema)]
struct All {
    /// Tasks that are completed.
    done: usize,
    /// Tasks in all.
    total: usize,
    tasks: Vec<TaskData>,
}

/// What the four tools have in common.
fn spec(
    name: &'static str,
    alias: &'static str,
    label: &'static str,
    about: &'static str,
) -> ToolSpec {
    ToolSpec {
        aliases: vec![alias.into()],
        hint: "task list plan steps dependencies blocked progress track".into(),
        kind: Kind::Think,
        loading: Loading::Deferred,
        ..ToolSpec::new(name, label, about)
    }
}

fn plan(place: &Place, title: String, access: Access) -> Plan {
    Plan::new(place, title).with(access, Target::State { name: "tasks".into() })
}

/// The tasks as they are now.
fn now(cx: &Cx) -> Result<Tasks, ToolError> {
    let values = cx.session().shared.beginning(&prefix());
    Tasks::of(values.iter().map(|(key, value)| (key, value)))
}

/// An answer about one task.
fn about(text: String, task: &Task, tasks: &Tasks) -> Outcome {
    let data = json!(One { task: TaskData::of(task, tasks) });
    let detail = Shape::Markdown { text: text.clone() };
    Outcome::text(text).with_data(data).with_detail(detail)
}

/// Arguments of `task_create`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CreateInput {
    /// A few words.
    subject: String,
    /// What is to be done, and how to tell that it is.
    description: Option<String>,
    /// Tasks that come first.
    blocked_by: Option<Vec<String>>,
}

impl Tool for TaskCreate {
    type Input = CreateInput;

    fn spec(&self, _: &Env) -> ToolSpec {
        let about = "Add a task to the list of this session, which the person sees.";
        ToolSpec {
            output_schema: schema_of::<One>(),
            snippet: "Add a task to the list".into(),
            guidelines: vec![Guideline {
                text: "Break work of three steps or more into tasks before the first change; keep \
                       one in_progress, and complete each when its check has passed (the person \
                       follows it)"
                    .into(),
                ..Guideline::default()
            }],
            primary: "subject".into(),
            ..spec("task_create", "TaskCreate", "Create task", about)
        }
    }

    fn plan(&self, input: &CreateInput, place: &Place) -> Result<Plan, ToolError> {
        let subject = line(&input.subject, "subject")?;
        checked(input.description.as_deref().unwrap_or_default(), "description", DESCRIPTION)?;
        Ok(plan(place, format!("New task: {subject}"), Access::Modify))
    }

    async fn run(&self, input: CreateInput, cx: &Cx) -> Result<Outcome, ToolError> {
        let subject = line(&input.subject, "subject")?;
        let description = input.description.unwrap_or_default().trim().to_owned();
        let (made, outcome) = cx.change_shared(|values| {
            let mut tasks = Tasks::of(values)?;
            let blocked_by = tasks.numbers(&input.blocked_by.unwrap_or_default())?;
            let id = tasks.next()?;
            let task = Task { id, subject, description, blocked_by, ..Task::default() };
            tasks.put(task.clone())?;
            let text = format!("Created {}", tasks.line(&task));
            let outcome = about(text, &task, &tasks);
            Ok((key(id), value(&task), (task, outcome)))
        })?;
        let Some(hooks) = cx.service::<dyn WorkHooks>() else { return Ok(outcome) };
        let Some(why) = hooks.task_created(&facts(&made)).await else { return Ok(outcome) };
        // It goes as it came: others may have seen it, so its number stays taken.
        cx.change_shared(|values| {
            let mut tasks = Tasks::of(values)?;
            let gone = Task { is_deleted: true, ..tasks.get(made.id).unwrap_or(&made).clone() };
            tasks.put(gone.clone())?;
            Ok((key(made.id), value(&gone), ()))
        })?;
        Err(ToolError::new(format!("a hook took the task back: {why}"))
            .hint("Do not make it again unchanged."))
    }
}

/// Arguments of `task_get`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct GetInput {
    /// Its number.
    task: String,
}

impl Tool for TaskGet {
    type Input = GetInput;

    fn spec(&self, _: &Env) -> ToolSpec {
        let about = "Show a task with its description and dependencies.";
        ToolSpec {
            output_schema: schema_of::<One>(),
            snippet: "Show a task as a whole".into(),
            primary: "task".into(),
            ..spec("task_get", "TaskGet", "Show task", about)
        }
    }

    fn plan(&self, input: &GetInput, place: &Place) -> Result<Plan, ToolError> {
        let shown: String = input.task.chars().take(60).collect();
        Ok(plan(place, format!("Task {shown}"), Access::Observe))
    }

    async fn run(&self, input: GetInput, cx: &Cx) -> Result<Outcome, ToolError> {
        let tasks = now(cx)?;
        let id = tasks.number(&input.task)?;
        let task = tasks.get(id).ok_or_else(|| ToolError::new(format!("there is no task {id}")))?;
        let mut text = tasks.line(task);
        if let Some(ids) = listed(&tasks.blocked(id)) {
            text = format!("{text}\nBlocks {ids}");
        }
        if !task.description.is_empty() {
            text = format!("{text}\n\n{}", task.description);
        }
        Ok(about(text, task, &tasks))
    }
}

/// Arguments of `task_list`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListInput {}

impl Tool for TaskList {
    type Input = ListInput;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<All>(),
            snippet: "List the tasks".into(),
            ..spec("task_list", "TaskList", "List tasks", "List the tasks and what blocks them.")
        }
    }

    fn plan(&self, _: &ListInput, place: &Place) -> Result<Plan, ToolError> {
        Ok(plan(place, "Tasks".to_owned(), Access::Observe))
    }

    async fn run(&self, _: ListInput, cx: &Cx) -> Result<Outcome, ToolError> {
        let tasks = now(cx)?;
        let items = tasks.items();
        let (done, total) = count(&items);
        let mut text = format!("{done} of {total} done");
        if total == 0 {
            "There are no tasks.".clone_into(&mut text);
        }
        for task in tasks.live() {
            text = format!("{text}\n{}", tasks.line(task));
        }
        let all = tasks.live().map(|task| TaskData::of(task, &tasks)).collect();
        let data = json!(All { done, total, tasks: all });
        Ok(Outcome::text(text).with_data(data).with_detail(Shape::Todo { items }))
    }
}

// How far a task is to be, or that it is to go: the field says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NewStatus {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

/// Arguments of `task_update`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UpdateInput {
    /// Its number.
    task: String,
    /// deleted takes it off the list.
    status: Option<NewStatus>,
    /// New words.
    subject: Option<String>,
    /// A new description.
    description: Option<String>,
    /// Who does it; empty for nobody.
    owner: Option<String>,
    /// Tasks that wait for it.
    add_blocks: Option<Vec<String>>,
    /// Tasks that it waits for.
    add_blocked_by: Option<Vec<String>>,
}

impl UpdateInput {
    /// The task with what is to be changed.
    fn changed(&self, task: &Task, tasks: &Tasks) -> Result<Task, ToolError> {
        let mut task = task.clone();
        match self.status {
            Some(NewStatus::Pending) => task.status = Status::Pending,
            Some(NewStatus::InProgress) => task.status = Status::InProgress,
            Some(NewStatus::Completed) => task.status = Status::Completed,
            Some(NewStatus::Deleted) => task.is_deleted = true,
            None => {}
        }
        if let Some(subject) = &self.subject {
            task.subject = line(subject, "subject")?;
        }
        if let Some(description) = &self.description {
            description.trim().clone_into(&mut task.description);
        }
        if let Some(owner) = self.owner.as_deref().map(str::trim) {
            task.owner = if owner.is_empty() { None } else { Some(line(owner, "owner")?) };
        }
        task.blocks.extend(tasks.numbers(self.add_blocks.as_deref().unwrap_or_default())?);
        task.blocked_by.extend(tasks.numbers(self.add_blocked_by.as_deref().unwrap_or_default())?);
        Ok(task)
    }

    const fn is_empty(&self) -> bool {
        let Self { task: _, status, subject, description, owner, add_blocks, add_blocked_by } =
            self;
        status.is_none()
            && subject.is_none()
            && description.is_none()
            && owner.is_none()
            && add_blocks.is_none()
            && add_blocked_by.is_none()
    }
}

/// What came of a change, in words.
fn told(before: &Task, task: &Task, tasks: &Tasks) -> String {
    if task.is_deleted {
        return format!("Deleted #{} {}", task.id, task.subject);
    }
    let mut text = tasks.line(task);
    if before.status == task.status {
        return text;
    }
    if task.status == Status::InProgress && !tasks.open_blockers(task.id).is_empty() {
        text.push_str("\nWhat blocks it is not completed.");
    }
    if task.status == Status::Completed {
        let free = tasks.blocked(task.id).into_iter().filter_map(|id| tasks.get(id));
        let free = free.filter(|task| {
            task.status == Status::Pending && tasks.open_blockers(task.id).is_empty()
        });
        for task in free {
            text = format!("{text}\nNothing blocks {}", tasks.line(task));
        }
    }
    text
}

/// A task as hooks get it.
fn facts(task: &Task) -> TaskFacts {
    TaskFacts {
        id: task.id.to_string(),
        subject: task.subject.clone(),
        description: task.description.clone(),
    }
}

/// Asks hooks whether a task may be completed.
async fn completes(input: &UpdateInput, cx: &Cx) -> Result<(), ToolError> {
    if input.status != Some(NewStatus::Completed) {
        return Ok(());
    }
    let Some(hooks) = cx.service::<dyn WorkHooks>() else { return Ok(()) };
    let tasks = now(cx)?;
    let id = tasks.number(&input.task)?;
    let open = tasks.get(id).filter(|task| task.status != Status::Completed);
    let Some(before) = open else { return Ok(()) };
    let task = input.changed(before, &tasks)?;
    match hooks.task_completed(&facts(&task)).await {
        None => Ok(()),
        Some(why) => Err(ToolError::new(format!("a hook keeps the task open: {why}"))
            .hint("Nothing was changed. Do what it wants, then complete the task.")),
    }
}

impl Tool for TaskUpdate {
    type Input = UpdateInput;

    fn spec(&self, _: &Env) -> ToolSpec {
        let about = "Change a task: its status, words, owner, or what it waits for.";
        ToolSpec {
            output_schema: schema_of::<One>(),
            snippet: "Change a task: status, words, dependencies".into(),
            primary: "task".into(),
            ..spec("task_update", "TaskUpdate", "Update task", about)
        }
    }

    fn plan(&self, input: &UpdateInput, place: &Place) -> Result<Plan, ToolError> {
        if input.is_empty() {
            let error = ToolError::new("nothing of the task is to be changed");
            return Err(error.hint("Give status, subject, description, owner or dependencies."));
        }
        input.subject.as_deref().map(|text| line(text, "subject")).transpose()?;
        checked(input.description.as_deref().unwrap_or_default(), "description", DESCRIPTION)?;
        let shown: String = input.task.chars().take(60).collect();
        let to = match input.status {
            Some(NewStatus::Pending) => ": pending",
            Some(NewStatus::InProgress) => ": in progress",
            Some(NewStatus::Completed) => ": completed",
            Some(NewStatus::Deleted) => ": deleted",
            None => "",
        };
        Ok(plan(place, format!("Task {shown}{to}"), Access::Modify))
    }

    async fn run(&self, input: UpdateInput, cx: &Cx) -> Result<Outcome, ToolError> {
        completes(&input, cx).await?;
        cx.change_shared(|values| {
            let mut tasks = Tasks::of(values)?;
            let id = tasks.number(&input.task)?;
            let missing = || ToolError::new(format!("there is no task {id}"));
            let before = tasks.get(id).ok_or_else(missing)?.clone();
            let task = input.changed(&before, &tasks)?;
            tasks.put(task.clone())?;
            let text = told(&before, &task, &tasks);
            Ok((key(id), value(&task), about(text, &task, &tasks)))
        })
    }
}
