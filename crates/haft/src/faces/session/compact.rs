//! `haft session compact ID --dry-run`: what a compaction would keep and drop.

use std::fmt::Write as _;

use haft_agent::{CompactionPreview, MessagePreview, preview_compaction};
use haft_session::{Fold, Store};
use haft_types::{AgentPath, Body};
use serde_json::json;

use crate::{
    app::{
        base::{Base, find},
        model::{UNKNOWN_CONTEXT, facts, last_used, named},
        problem::Problems,
        window,
    },
    cli::{
        Common,
        exit::{self, Ending, Failure, print, println_json, say},
    },
    faces,
    plain::safe,
};

/// Shows what a compaction of a session would do; nothing is changed.
pub fn run(store: &Store, id: &str, (dry_run, as_json): (bool, bool)) -> Ending {
    let id = find(store, id)?;
    if !dry_run {
        let text = format!(
            "a session is compacted where its model is: haft -r {}, then /compact; --dry-run \
             shows what that would do",
            id.short()
        );
        return Err(Failure::Usage(text));
    }
    exit::hide(&crate::app::base::secrets_of(
        &store.dir(&id),
        haft_text::secrets::Names::default(),
    ));
    let problems = Problems::default();
    let base = faces::built(&problems, Base::load(&Common::default(), None, &problems))?;
    let settings = &base.loaded.settings;
    let (mut fold, mut fixed) = (Fold::new(AgentPath::default()), (0, 0));
    for event in store.branch(&id, None)? {
        match event {
            Ok(event) => {
                if let (Body::Pinned { system, tools, .. }, true) =
                    (&event.body, event.agent.is_main())
                {
                    fixed = (system.iter().map(String::len).sum(), tools.len());
                }
                fold.push(&event);
            }
            Err(error) => say(&format!("haft: {error}")),
        }
    }
    let model = last_used(store, &id, (settings, &base.environment));
    let known = model.as_ref().and_then(|name| named(name, settings).ok());
    let known = known.and_then(|reference| facts(&reference, settings).context);
    let window = known.unwrap_or(UNKNOWN_CONTEXT);
    let limits = window::limits_of(Some(window), settings);
    let preview = preview_compaction(&fold, fixed, &limits).map_err(Failure::Failed)?;
    if as_json {
        return println_json(&as_object(&preview, window).to_string());
    }
    print(&text(&preview, window, known.is_some()))
}

fn as_object(preview: &CompactionPreview, window: u64) -> serde_json::Value {
    let messages = |all: &[MessagePreview]| -> Vec<serde_json::Value> {
        let one =
            |m: &MessagePreview| json!({"who": m.who, "tokens": m.tokens, "begins": m.begins});
        all.iter().map(one).collect()
    };
    json!({
        "window": window, "before": preview.before, "fixed": preview.fixed,
        "masked": preview.masked, "summed_up": messages(&preview.summed_up),
        "stays": messages(&preview.stays), "older_words": preview.older_words,
        "summary": preview.summary,
    })
}

fn text(preview: &CompactionPreview, window: u64, is_known: bool) -> String {
    let CompactionPreview { before, fixed, masked, summed_up, stays, older_words, summary } =
        preview;
    let sum = |all: &[MessagePreview]| -> u64 { all.iter().map(|message| message.tokens).sum() };
    let mut out = String::new();
    let guess = if is_known { "" } else { ", which is a guess" };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "the next request has {before} tokens by bytes / 4, {fixed} of them system prompt and tools; \
         the window has {window}{guess}"
    );
    if !masked.is_empty() {
        let _ = writeln!(out, "old results that leave view first: {}", masked.join(" "));
    }
    let mut list = |title: &str, all: &[MessagePreview]| {
        let _ = writeln!(out, "{title}: {} messages, {} tokens", all.len(), sum(all));
        for MessagePreview { who, tokens, begins } in all {
            let _ = writeln!(out, "{tokens:>10}  {who:<7}  {}", safe(begins));
        }
    };
    list("summed up", summed_up);
    list("stays as it is", stays);
    let _ = writeln!(
        out,
        "the summary has at most {summary} tokens; what the person said stands beside it word for \
         word, the newest first"
    );
    if !older_words.is_empty() {
        let _ = writeln!(out, "older words of the person can be read at {}", older_words.join(" "));
    }
    out
}
