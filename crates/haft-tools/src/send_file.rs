//! `send_file`: hands a file, or the kept output of a call, to the person.
//!
//! **Invariant:** it is judged as a reading of the file. Of its content only size and hash are
//! given.

use std::{fmt::Write as _, sync::Arc};

use haft_host::{Host, Located};
use haft_tool::{Cx, Tool, schema_of};
use haft_types::{
    Access, CallId, Env, Follow, Kind, Loading, Outcome, Place, Plan, Shape, Status, Target,
    ToolError, ToolSpec,
};
use ring::digest::{Context, SHA256};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::files;

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;
/// Most characters of a caption.
const CAPTION: usize = 500;

/// Hands a file over.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendFile {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// A file, or an out:// address.
    path: String,
    /// What it is, in a line.
    caption: Option<String>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// Absolute path, or the out:// address.
    path: String,
    /// Bytes of it.
    size: u64,
    /// SHA-256 of its content, in hexadecimal digits.
    sha256: String,
}

impl Tool for SendFile {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["SendUserFile".into()],
            rules_of: vec!["read".into()],
            snippet: "Hand a file to the person".into(),
            hint: "send file give hand over show person deliver download attachment".into(),
            kind: Kind::Other,
            primary: "path".into(),
            loading: Loading::Deferred,
            ..ToolSpec::new(
                "send_file",
                "Hand over a file",
                "Hand a file to the person: a report, an image, what they asked for. They see \
                 its name as a link, its size and your caption. Also takes an out:// address.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let characters = input.caption.as_ref().map_or(0, |caption| caption.chars().count());
        if characters > CAPTION {
            let text = format!("caption has {characters} characters; at most {CAPTION} are taken");
            return Err(ToolError::new(text).hint("Say in a line what the file is."));
        }
        if files::is_address(&input.path) {
            let shown: String = input.path.chars().take(150).collect();
            let plan = Plan::new(place, format!("Handing over {shown}"));
            return Ok(plan.with(Access::Observe, Target::State { name: "out".into() }));
        }
        let path = files::planned(place, &input.path)?;
        Ok(Plan::new(place, format!("Handing over {}", place.shown(&path))).reads(path))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let caption = input.caption.map(|caption| caption.trim().to_owned());
        let caption = caption.filter(|caption| !caption.is_empty());
        if files::is_address(&input.path) {
            let (host, at, address) = kept(cx, &input.path).await?;
            return handed(cx, (host.as_ref(), &at), Some(address), caption).await;
        }
        let at = files::locate(cx, &input.path).await?;
        files::regular(cx, &input.path, &at, "handed over").await?;
        handed(cx, (cx.host.as_ref(), &at), None, caption).await
    }
}

/// The file of a kept output, with its address.
async fn kept(cx: &Cx, asked: &str) -> Result<(Arc<dyn Host>, Located, String), ToolError> {
    let call = CallId::from_address(asked);
    let unknown = || {
        let shown: String = asked.chars().take(150).collect();
        let known = call
            .as_ref()
            .and_then(|call| files::evicted(cx, call).or_else(|| files::silent(cx, call)));
        known.unwrap_or_else(|| {
            ToolError::new(format!("nothing is kept under {shown:?}"))
                .hint("Take the address from the notice of the result that was cut.")
        })
    };
    let id = call.as_ref().ok_or_else(unknown)?;
    let (host, path) = files::kept(cx, id).await?.ok_or_else(unknown)?;
    let located = host.fs().locate(&path, Follow::No).await;
    let at = located.map_err(|error| files::failed(&error))?;
    if at.stamp.is_none() {
        return Err(unknown());
    }
    Ok((host, at, id.address()))
}

/// Hands over what was found.
async fn handed(
    cx: &Cx,
    (host, at): (&dyn Host, &Located),
    address: Option<String>,
    caption: Option<String>,
) -> Result<Outcome, ToolError> {
    let Some((size, sha256)) = digest(cx, host, at).await? else {
        return Ok(Outcome::ended(Status::Cancelled, "cancelled before it was read"));
    };
    let path = at.real.clone();
    let name = address.clone().unwrap_or_else(|| cx.place.shown(&path).into_owned());
    let text = format!("Handed to the person: {name} ({size} bytes, SHA-256 {sha256}).");
    let named = address.clone().unwrap_or_else(|| path.text().into_owned());
    let data = json!(Data { path: named, size, sha256: sha256.clone() });
    let detail = Shape::Sent { path, address, size, sha256, caption };
    Ok(Outcome::text(text).with_data(data).with_detail(detail))
}

/// The size and the hash of a file, read piece by piece; none where the call was cancelled.
async fn digest(
    cx: &Cx,
    host: &dyn Host,
    at: &Located,
) -> Result<Option<(u64, String)>, ToolError> {
    let (mut context, mut size) = (Context::new(&SHA256), 0);
    loop {
        if cx.stop.is_cancelled() {
            return Ok(None);
        }
        let piece = host.fs().read(at, size, PIECE).await;
        let piece = piece.map_err(|error| files::failed(&error))?;
        context.update(&piece);
        size += piece.len() as u64;
        if piece.len() < PIECE {
            break;
        }
    }
    let mut digits = String::new();
    for byte in context.finish().as_ref() {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(Some((size, digits)))
}
