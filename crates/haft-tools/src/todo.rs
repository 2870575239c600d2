//! todo: the list of steps of the work, which the model keeps and the person sees.
//!
//! **Invariant:** a list is taken as a whole or not at all. It is state of the conversation: it is
//! there again after a resume, goes back with a rewind, and is attached word for word where older
//! messages leave view.

use std::collections::HashSet;

use haft_tool::{Cx, StateNote, Tool, schema_of};
use haft_types::{
    Access, Env, Guideline, Kind, Loading, Outcome, Place, Plan, Shape, Target, TodoItem,
    ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::checklist::{Status, count, line, within};

/// The key of the state that has the list.
const KEY: &str = "todo";

/// What is said of a list without items.
const EMPTY: &str = "The list is empty.";

/// Keeps the list of steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Todo {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// The whole list, in order.
    items: Option<Vec<Item>>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    text: String,
    #[serde(default)]
    #[schemars(extend("default" = null))]
    status: Status,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// Items that are completed.
    done: usize,
    /// Items in all.
    total: usize,
    /// The list as it is now.
    items: Vec<Item>,
}

impl Tool for Todo {
    type Input = Input;

    fn spec(&self, env: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["TodoWrite".into()],
            snippet: "Keep the list of steps of the work".into(),
            guidelines: vec![Guideline {
                text: "Break work of three steps or more into todo items before the first change; \
                       keep one in_progress, and complete each when its check has passed (the \
                       person follows it)"
                    .into(),
                ..Guideline::default()
            }],
            hint: "todo list steps plan progress track checklist items done".into(),
            kind: Kind::Think,
            loading: if env.no_todo { Loading::Deferred } else { Loading::Normal },
            ..ToolSpec::new(
                "todo",
                "Todo list",
                "Keep the list of steps, which the person sees, with at most one in_progress. \
                 Without items it shows the list.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let state = Target::State { name: KEY.into() };
        let Some(items) = &input.items else {
            return Ok(Plan::new(place, "Todo list").with(Access::Observe, state));
        };
        taken(items)?;
        Ok(Plan::new(place, "Todo list").with(Access::Modify, state))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let Some(items) = input.items else {
            let items = kept(cx.conversation().value(KEY).as_ref())?;
            let text = match &items[..] {
                [] => EMPTY.to_owned(),
                items => format!("{}\n{}", summary(items), words(items)),
            };
            return Ok(outcome(text, items));
        };
        let items = taken(&items)?;
        let note = StateNote {
            heading: "Your todo list, word for word".to_owned(),
            words: words(&items),
            items: shown(&items),
            ..StateNote::default()
        };
        cx.record(KEY, json!({StateNote::FIELD: note, "items": items}))?;
        let text = if items.is_empty() { EMPTY.to_owned() } else { summary(&items) };
        Ok(outcome(text, items))
    }
}

/// The items as they are kept.
fn taken(written: &[Item]) -> Result<Vec<Item>, ToolError> {
    // Of a list that is much too long not every item is looked at.
    within(written.len(), written.iter().map(|item| item.text.len()).sum())?;
    let items: Vec<Item> = (0..)
        .zip(written)
        .map(|(at, Item { id, text, status })| {
            let text = line(text, &format!("items[{at}].text"))?;
            let id = id.as_deref().map(|id| line(id, &format!("items[{at}].id"))).transpose()?;
            Ok(Item { id, text, status: *status })
        })
        .collect::<Result<_, ToolError>>()?;
    let mut ids = HashSet::new();
    if let Some(twice) =
        items.iter().filter_map(|item| item.id.as_ref()).find(|id| !ids.insert(*id))
    {
        let error = ToolError::new(format!("two items have the id {twice:?}"));
        return Err(error.hint("Give each item another id, or none."));
    }
    let mut begun = items.iter().filter(|item| item.status == Status::InProgress);
    if let (Some(one), Some(other)) = (begun.next(), begun.next()) {
        let text = format!("two items are in_progress: {:?} and {:?}", one.text, other.text);
        return Err(ToolError::new(text).hint("Keep one in_progress; the others are pending."));
    }
    Ok(items)
}

/// The items that the log holds.
fn kept(value: Option<&Value>) -> Result<Vec<Item>, ToolError> {
    let Some(items) = value.and_then(|value| value.get("items")) else { return Ok(Vec::new()) };
    serde_json::from_value(items.clone()).map_err(|error| {
        let error = ToolError::new(format!("the list in the log cannot be read: {error}"));
        error.hint("Give all items anew.")
    })
}

fn shown(items: &[Item]) -> Vec<TodoItem> {
    let one = |item: &Item| TodoItem { text: item.text.clone(), state: item.status.state() };
    items.iter().map(one).collect()
}

/// One line for each item.
fn words(items: &[Item]) -> String {
    let one = |Item { id, text, status }: &Item| match id {
        Some(id) => format!("{} {id}: {text}", status.mark()),
        None => format!("{} {text}", status.mark()),
    };
    items.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// How far the work is, in a line.
fn summary(items: &[Item]) -> String {
    let (done, total) = count(&shown(items));
    let begun = items.iter().find(|item| item.status == Status::InProgress);
    let begun = begun.map(|item| format!("; in progress: {}", item.text)).unwrap_or_default();
    format!("{done} of {total} done{begun}.")
}

fn outcome(text: String, items: Vec<Item>) -> Outcome {
    let shown = shown(&items);
    let (done, total) = count(&shown);
    let detail = match total {
        0 => Shape::Markdown { text: text.clone() },
        _ => Shape::Todo { items: shown },
    };
    Outcome::text(text).with_data(json!(Data { done, total, items })).with_detail(detail)
}
