//! The network as one call has it: exactly the hosts that its plan declared.
//!
//! **Invariant:** a tool that asks another host is refused before anything is resolved. Beside a
//! declared name stands the one that sites use for the same, with or without `www.`, unless a rule
//! speaks against it. Nothing that holds the value of a known secret is sent, encoded or not. What
//! carries the requests is a service of the session.

use std::{collections::HashSet, sync::Arc};

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use haft_net::{Gate, Host, Web, WebRequest, WebResponse, twin};
use haft_policy::Verdict;
use haft_text::secrets::{Secrets, placeholders};
use haft_types::{Access, Effect, Plan, Status, Target, ToolError};
use tokio_util::sync::CancellationToken;

use crate::{Call, Cx, stages::rules};

/// How often a text is unpacked: something may be encoded twice and three times.
const DEPTH: usize = 3;
/// Fewest characters of what may be an encoded value.
const ENCODED: usize = 8;
/// Most texts that are looked through for one request.
const TEXTS: usize = 4_000;
/// Most of them in which letters count whatever their case.
const HOSTS: usize = 32;

/// The hosts that a call may ask.
#[derive(Debug, Default)]
pub(crate) struct DeclaredHosts(HashSet<Host>);

impl DeclaredHosts {
    /// Those of a plan that was judged.
    pub(crate) fn of(call: &Call) -> Self {
        let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
        let named = effects.iter().filter_map(|effect| match &effect.target {
            Target::Net { host } => Host::parse(host).ok(),
            _ => None,
        });
        let named: HashSet<Host> = named.collect();
        let twins = named.iter().filter_map(twin).filter(|host| may_follow(call, host));
        let twins: Vec<Host> = twins.collect();
        Self(named.into_iter().chain(twins).collect())
    }
}

/// Reports whether no rule speaks against a host that the plan does not name.
fn may_follow(call: &Call, host: &Host) -> bool {
    let Ok(prepared) = call.ready() else { return false };
    let target = Target::Net { host: host.to_string() };
    let effects = vec![Effect { access: Access::Observe, target }];
    let plan = Plan { effects, ..prepared.plan.clone() };
    let judge = call.cx.permissions();
    let ruling = rules::with_ask(call, prepared, &plan, &judge, |ask| {
        // One effect that is no path.
        judge.policy.decide(&haft_policy::Ask { real: &[None], ..*ask })
    });
    match ruling.verdict {
        Verdict::Allow => true,
        Verdict::Ask => ruling.rule.is_none(),
        Verdict::Deny => false,
    }
}

/// A client for the hosts that the plan of a call declares, redirects included.
#[derive(Clone)]
pub struct Net {
    web: Arc<dyn Web>,
    hosts: Arc<DeclaredHosts>,
    secrets: Arc<Secrets>,
    stop: CancellationToken,
}

impl Cx {
    /// The network of this call: the hosts that its plan declares, and no others.
    ///
    /// # Errors
    /// When the session has no network, and while a call is only checked.
    pub fn net(&self) -> Result<Net, ToolError> {
        let Some(hosts) = self.hosts.clone() else {
            return Err(ToolError::new("the network is there once the call runs, not before")
                .hint("Check without it."));
        };
        let web = self.session().services.required::<dyn Web>()?;
        let (secrets, stop) = (self.session().secrets.clone(), self.stop.clone());
        Ok(Net { web, hosts, secrets, stop })
    }
}

impl Net {
    /// Sends a request and waits for the whole answer. A status of 400 and more is an answer.
    ///
    /// # Errors
    /// When the host is not declared, its address is not public, a secret would be sent, or no
    /// answer comes; the error says what to do.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection. It ends when the call is cancelled.
    pub async fn send(&self, request: &WebRequest) -> Result<WebResponse, ToolError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                let error = ToolError::new("the request was cancelled");
                Err(ToolError { status: Status::Cancelled, ..error })
            }
            sent = self.web.send(request, self) => sent.map_err(|error| {
                ToolError::new(error.to_string()).hint(error.hint())
            }),
        }
    }
}

impl Gate for Net {
    fn admits(&self, host: &Host) -> bool {
        self.hosts.0.contains(host)
    }

    fn secret_in(&self, text: &str) -> Option<String> {
        secret_in(&self.secrets, text)
    }
}

/// The name of a secret whose value stands in a text, as it is or encoded.
fn secret_in(secrets: &Secrets, text: &str) -> Option<String> {
    let mut texts = vec![text.to_owned()];
    let mut seen: HashSet<String> = HashSet::new();
    for depth in 0..=DEPTH {
        let mut inner = Vec::new();
        for text in texts {
            if seen.len() >= TEXTS || !seen.insert(text.clone()) {
                continue;
            }
            let hidden = secrets.hide_known(&text);
            if let Some((_, name)) = placeholders(&hidden).next() {
                return Some(name.to_owned());
            }
            // Hosts lose their capitals; what was decoded kept its own.
            let may_be_host = depth == 0 || (depth == 1 && seen.len() <= HOSTS);
            if may_be_host && let Some(name) = secrets.in_any_case(&text) {
                return Some(name.to_string());
            }
            inner.extend(unpacked(&text));
        }
        texts = inner;
    }
    None
}

/// What a text may hold in other clothes: percent escapes undone, Base64 and hexadecimal digits
/// decoded, and a name with its dots taken out.
fn unpacked(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let plain = percent_encoding::percent_decode_str(text).decode_utf8_lossy();
    if plain != text {
        all.push(plain.into_owned());
    }
    if text.contains('.') {
        all.push(text.replace('.', ""));
    }
    let is_digit = |c: char| c.is_ascii_alphanumeric() || "+/_-".contains(c);
    let words = text.split(|c| !is_digit(c)).chain(text.split(|c| c == '/' || !is_digit(c)));
    for word in words.filter(|word| word.len() >= ENCODED) {
        all.extend(
            [STANDARD, URL_SAFE].iter().filter_map(|base| readable(&base.decode(word).ok()?)),
        );
    }
    let runs = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|run| run.len() >= 2 * ENCODED);
    all.extend(runs.flat_map(|run| [run, &run[1..]]).filter_map(|run| readable(&of_hex(run))));
    all
}

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Decoded bytes as a text, where most of them are one.
fn readable(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let broken = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    (text.len() >= ENCODED && broken * 4 < text.chars().count()).then_some(text)
}

/// Bytes written as hexadecimal digits; a last one without its pair is left out.
fn of_hex(run: &str) -> Vec<u8> {
    let pair = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    run.as_bytes().chunks_exact(2).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "Xq7-pLm9_Zr4tKw2Bv8n";

    fn known() -> Secrets {
        let secrets = Secrets::default();
        secrets.add("DEPLOY_KEY", VALUE);
        secrets
    }

    fn hex(text: &str) -> String {
        text.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).map(char::from).collect()
    }

    fn percent(text: &str) -> String {
        text.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).map(char::from).collect()
    }

    #[test]
    fn a_secret_is_found_in_every_encoding() {
        let secrets = known();
        let base = STANDARD.encode(VALUE);
        let texts = [
            format!("https://a.example/?k={VALUE}"),
            format!("https://a.example/{VALUE}/x"),
            format!("https://{}.a.example/", VALUE.to_lowercase()),
            format!("https://{}.{}.a.example/", &VALUE[..7], &VALUE[7..]),
            format!("https://a.example/?k={}", percent(VALUE)),
            format!("https://a.example/?k={}", percent(&percent(VALUE))),
            format!("https://a.example/?k={base}"),
            format!("https://a.example/{}", base.trim_end_matches('=')),
            format!("https://a.example/?k={}", URL_SAFE.encode(format!("{{\"key\":\"{VALUE}\"}}"))),
            format!("https://a.example/?k={}", STANDARD.encode(&base)),
            format!("https://a.example/?k={}", percent(&base)),
            format!("https://a.example/?k={}", hex(VALUE)),
            format!("https://a.example/?k={}", hex(VALUE).to_uppercase()),
            format!("https://a.example/?k=a{}", hex(VALUE)),
            format!("https://a.example/?k={}", hex(&base)),
            format!("https://a.example/?k={}", STANDARD.encode(hex(VALUE))),
            "https://a.example/?k={{secret:DEPLOY_KEY}}".to_owned(),
            "https://a.example/?k=%7B%7Bsecret:DEPLOY_KEY%7D%7D".to_owned(),
        ];
        for text in texts {
            let found = secret_in(&secrets, &text);
            assert!(found.is_some_and(|name| name.starts_with("DEPLOY_KEY")), "{text}");
        }
    }

    #[test]
    fn what_holds_none_is_sent() {
        let secrets = known();
        for text in [
            "https://docs.example/en/latest/library/asyncio-task.html?highlight=gather#x",
            "https://a.example/?q=deadbeefdeadbeefdeadbeef&b=SGVsbG8gd29ybGQhIQ==",
            "https://a.example/?key=DEPLOY_KEY",
            &format!("https://a.example/?k={}", &VALUE[..8]),
            &format!("https://a.example/{}", "%41".repeat(2_000)),
            &"ab/".repeat(2_500),
        ] {
            assert_eq!(secret_in(&secrets, text), None, "{text}");
        }
    }
}
