//! Between haft's words and the protocol's.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use haft_render::file_address;
use haft_tool::Blobs;
use haft_types::{Detail, Kind, Outcome, Part, Shape, ToolSpec};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Resource, Tool, ToolAnnotations};
use serde_json::Value;

use crate::structured;

/// A tool's definition. Annotations are hints of the kind; what a call does is decided by its plan.
pub(crate) fn tool(spec: &ToolSpec, structured: bool) -> Tool {
    let mut tool = Tool::new(spec.name.clone(), spec.description.clone(), open(&spec.input_schema));
    tool.title = Some(spec.label.to_string());
    if structured {
        tool.output_schema = structured::schema(spec).map(Arc::new);
    }
    let reads = matches!(spec.kind, Kind::Read | Kind::Search | Kind::Fetch | Kind::Think);
    let mut hints = ToolAnnotations::default();
    hints.title.clone_from(&tool.title);
    hints.read_only_hint = Some(reads);
    hints.destructive_hint = Some(!reads);
    hints.open_world_hint = Some(matches!(spec.kind, Kind::Execute | Kind::Fetch));
    tool.annotations = Some(hints);
    tool
}

/// The input schema; a tool without one takes any object.
fn open(schema: &Value) -> Arc<JsonObject> {
    let any = || JsonObject::from_iter([("type".to_owned(), Value::from("object"))]);
    Arc::new(schema.as_object().cloned().unwrap_or_else(any))
}

/// What a call gave back; `structured` names the tool for a client that wants what programs get,
/// too.
pub(crate) fn result(
    mut outcome: Outcome,
    structured: Option<&ToolSpec>,
    blobs: &dyn Blobs,
) -> CallToolResult {
    let blocks = outcome.content.iter().filter_map(|part| block(part, blobs));
    let content = blocks.chain(outcome.detail.as_ref().and_then(sent)).collect();
    let mut result = if outcome.status.is_error() {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = structured.and_then(|spec| structured::content(&mut outcome, spec));
    result
}

/// The link to a file that is handed to the person.
fn sent(detail: &Detail) -> Option<ContentBlock> {
    let Shape::Sent { path, address, size, caption, .. } = &detail.shape else { return None };
    let name = path.file_name().map(|name| String::from_utf8_lossy(name).into_owned());
    let name = address.clone().or(name).unwrap_or_else(|| path.text().into_owned());
    let mut resource = Resource::new(file_address(path)?, name);
    (resource.size, resource.description) = (Some(*size), caption.clone());
    Some(ContentBlock::resource_link(resource))
}

fn block(part: &Part, blobs: &dyn Blobs) -> Option<ContentBlock> {
    match part {
        Part::Text { text } => Some(ContentBlock::text(text.clone())),
        Part::Image { blob } => Some(match blobs.get(blob) {
            Ok(bytes) => ContentBlock::image(STANDARD.encode(bytes), blob.mime.clone()),
            Err(error) => ContentBlock::text(format!("[an image cannot be given: {error}]")),
        }),
        Part::Thinking { .. } | Part::Call(_) | Part::Opaque { .. } => None,
    }
}
