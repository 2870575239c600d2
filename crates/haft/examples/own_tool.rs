//! haft with one tool more: a whole tool in one file, and a program that has it.

use haft_tool::{Cx, Tool};
use haft_types::{Env, Follow, Hash, Kind, Outcome, Place, Plan, ToolError, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Largest file that is hashed, in bytes.
const MOST: u64 = 64 << 20;

struct Checksum;

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// File to hash, absolute or relative to the workspace root.
    path: String,
}

impl Tool for Checksum {
    type Input = Input;

    fn spec(&self, _env: &Env) -> ToolSpec {
        ToolSpec {
            snippet: "Hash a file (BLAKE3, up to 64 MB)".into(),
            hint: "hash checksum digest of a file".into(),
            kind: Kind::Read,
            primary: "path".into(),
            ..ToolSpec::new("checksum", "Hash file", "Hashes a file of at most 64 MB with BLAKE3.")
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let path = place.path(&input.path).map_err(|error| ToolError::new(error.to_string()))?;
        Ok(Plan::new(place, format!("Hashing {}", place.shown(&path))).reads(path))
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let failed = |error: std::io::Error| {
            ToolError::new(format!("{} cannot be hashed: {error}", input.path))
                .hint("Name a regular file that can be read.")
        };
        let path = cx.path(&input.path)?;
        let file = cx.host.fs().locate(&path, Follow::Yes).await.map_err(failed)?;
        if file.size() > MOST {
            let text = format!("{} has {} bytes, more than {MOST}", input.path, file.size());
            return Err(ToolError::new(text).hint("Hash it with bash instead."));
        }
        let len = usize::try_from(file.size()).unwrap_or(0);
        let bytes = cx.host.fs().read(&file, 0, len).await.map_err(failed)?;
        let hash = Hash::of(&bytes);
        Ok(Outcome::text(hash.to_string()).with_data(json!({"hash": hash, "bytes": bytes.len()})))
    }
}

fn main() -> std::process::ExitCode {
    haft::Runner::new().tool(Checksum).run()
}
