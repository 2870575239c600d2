//! `haft models`: what is known of models, and which of them can be used here.

use std::{collections::BTreeSet, fmt::Write as _};

use haft_config::Environment;
use haft_llm::{ModelRef, catalogue};
use haft_types::Tier;
use serde::Serialize;

use crate::{
    app::{
        cost::{dollars, tokens},
        model::{ModelFacts, Offers, facts, named, servers},
        problem::Problems,
    },
    cli::{
        Common, Models,
        exit::{Ending, Failure, println, println_json, say},
    },
    faces,
    plain::safe,
};

/// A model, as programs read it.
#[derive(Serialize)]
struct Row {
    model: String,
    /// Whether its server's key is set, or wants none.
    usable: bool,
    context: Option<u64>,
    output: Option<u64>,
    vision: bool,
    /// Whether it is given a list of things to do.
    todo: bool,
    tier: Option<Tier>,
    efforts: Vec<&'static str>,
    /// Dollars for a million tokens.
    price: Option<Price>,
    /// From how many input tokens on a request costs `long_price`.
    long_from: Option<u64>,
    long_price: Option<Price>,
}

type Price = haft_types::Price;

/// Lists the models of the catalogue and the settings.
pub fn run(arguments: &Models) -> Ending {
    let problems = Problems::default();
    let common = Common::default();
    let base = faces::built(&problems, crate::app::base::Base::load(&common, None, &problems))?;
    let settings = &base.loaded.settings;
    let keys = keys(settings, &base.environment);
    let own = settings.models.keys().map(String::as_str);
    let known = catalogue().models.iter().map(|entry| entry.id.as_str());
    let names: BTreeSet<&str> = known.chain(own).collect();
    let wanted = arguments.text.as_deref().unwrap_or_default().to_lowercase();
    let mut rows = Vec::new();
    for name in names.into_iter().filter(|name| name.to_lowercase().contains(&wanted)) {
        // One of the settings may name a server that is not there.
        let Ok(reference) = named(name, settings) else { continue };
        let usable = match &reference {
            ModelRef::Server(preset, _) => !preset.wants_key || keys.contains(&preset.name),
            ModelRef::Script(_) => true,
        };
        rows.push(row(name, usable, facts(&reference, settings)));
    }
    if rows.is_empty() {
        return Err(Failure::Failed(format!(
            "no known model has {wanted:?} in its name; `haft models` lists them all, and one that \
             is not listed works, too"
        )));
    }
    if arguments.json {
        for row in &rows {
            println_json(&serde_json::to_string(row)?)?;
        }
        return Ok(());
    }
    println(table(&rows).trim_end())?;
    say(&format!("haft: as of {}; dollars for a million tokens", catalogue().date));
    Ok(())
}

/// Names of the servers whose key is set.
fn keys(settings: &haft_config::Settings, environment: &Environment) -> BTreeSet<String> {
    Offers::keys(&servers(settings), environment).into_iter().map(|(_, server)| server).collect()
}

fn row(name: &str, usable: bool, facts: ModelFacts) -> Row {
    let ModelFacts { context, output, prices, tier, efforts, vision, todo, max_tokens: _ } = facts;
    Row {
        model: name.to_owned(),
        usable,
        context,
        output,
        vision,
        todo,
        tier,
        efforts: efforts.into_iter().map(haft_types::Effort::name).collect(),
        price: prices.map(|prices| prices.usual),
        long_from: prices.and_then(|prices| prices.long).map(|(from, _)| from),
        long_price: prices.and_then(|prices| prices.long).map(|(_, price)| price),
    }
}

/// The rows under their headings; `*` marks what can be used.
fn table(rows: &[Row]) -> String {
    let unknown = || "-".to_owned();
    let heads = ["  model", "context", "output", "in", "out", "cached", "tier"].map(str::to_owned);
    let mut lines = vec![heads];
    for row in rows {
        let mark = if row.usable { '*' } else { ' ' };
        let tokens = |count: Option<u64>| count.map_or_else(unknown, tokens);
        let price = |of: fn(&Price) -> Option<f64>| {
            row.price.as_ref().and_then(of).map_or_else(unknown, dollars)
        };
        lines.push([
            format!("{mark} {}", safe(&row.model)),
            tokens(row.context),
            tokens(row.output),
            price(|price| Some(price.input)),
            price(|price| Some(price.output)),
            price(|price| price.cache_read),
            row.tier.map_or_else(unknown, |tier| tier.name().to_owned()),
        ]);
    }
    let mut text = String::new();
    let wide = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(wide);
    for line in &lines {
        for (at, (cell, width)) in line.iter().zip(widths).enumerate() {
            // Names to the left, numbers to the right.
            // Writing to a string cannot fail.
            let _ = match at {
                0 => write!(text, "{cell:width$}"),
                6 => write!(text, "  {cell}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    text.push_str("* its server can be used here: it has a key, or wants none\n");
    text
}
