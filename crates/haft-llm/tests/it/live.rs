//! Providers on a connection: cancelling, silence without end, addresses that lead nowhere.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use haft_llm::{
    Delta, Endpoint, LlmError, NoBlobs, Patience, Provider, Request, RetryPolicy, Target,
    http_provider,
};
use haft_net::{Bytes, Client};
use haft_testkit::http::{HttpResponse, HttpServer, Step};
use haft_types::{From, Message, Part};
use tokio_util::sync::CancellationToken;

const OPENING: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";

fn policy() -> RetryPolicy {
    RetryPolicy { attempts: 2, base_ms: 1, ..RetryPolicy::default() }
}

fn provider(url: String, patience: Patience) -> Arc<dyn Provider> {
    let endpoint = Endpoint::openai(Some(url), None);
    http_provider(endpoint, Client::new(), patience, policy(), serde_json::Map::default())
}

fn request(provider: &dyn Provider) -> Request {
    let message = Message::User { from: From::Person, parts: vec![Part::text("hi")] };
    let target = Target { model: "m".into(), vision: false };
    Request {
        model: target.model.clone(),
        effort: None,
        max_tokens: None,
        system: Arc::new([]),
        tools: provider.encode_tools(&[]).into(),
        messages: vec![provider.encode(&message, &target, &NoBlobs)],
        ..Request::default()
    }
}

async fn errors(provider: &dyn Provider) -> Vec<LlmError> {
    let answer = provider.stream(request(provider), CancellationToken::new());
    answer.filter_map(|item| async { item.err() }).collect().await
}

fn endless(step: Step) -> HttpResponse {
    let mut response = HttpResponse::events(OPENING);
    response.steps.push(step);
    response
}

#[tokio::test]
async fn cancelling_ends_a_silent_stream_at_once() {
    let server = HttpServer::start(vec![endless(Step::Stall)]).await.unwrap();
    let provider = provider(server.url(), Patience::default());
    let stop = CancellationToken::new();
    let mut answer = provider.stream(request(&*provider), stop.clone());
    assert_eq!(answer.next().await, Some(Ok(Delta::Text { index: 0, text: "x".into() })));
    stop.cancel();
    assert_eq!(answer.next().await, Some(Err(LlmError::Cancelled)));
    assert_eq!(answer.next().await, None);
}

#[tokio::test]
async fn cancelling_ends_the_pause_before_another_attempt() {
    let busy = HttpResponse {
        headers: vec![("retry-after".into(), "100".into())],
        ..HttpResponse::new(503, "text/plain", "later")
    };
    let server = HttpServer::start(vec![busy]).await.unwrap();
    let provider = provider(server.url(), Patience::default());
    let stop = CancellationToken::new();
    let mut answer = provider.stream(request(&*provider), stop.clone());
    let first = answer.next().await;
    assert!(matches!(first, Some(Ok(Delta::Restart { attempt: 1, wait_ms: 100_000.., .. }))));
    stop.cancel();
    assert_eq!(answer.next().await, Some(Err(LlmError::Cancelled)));
    assert_eq!(answer.next().await, None);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_token_that_is_cancelled_already_sends_nothing() {
    let server = HttpServer::start(vec![]).await.unwrap();
    let provider = provider(server.url(), Patience::default());
    let stop = CancellationToken::new();
    stop.cancel();
    let items: Vec<_> = provider.stream(request(&*provider), stop).collect().await;
    assert_eq!(items, [Err(LlmError::Cancelled)]);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn keep_alives_do_not_count_for_ever() {
    let beats = std::iter::repeat_n(
        [Step::Send(Bytes::from_static(b": here\n\n")), Step::Wait(Duration::from_millis(5))],
        10_000,
    );
    let server = HttpServer::start_with(move |_, _| {
        let steps = beats.clone().flatten().collect();
        HttpResponse { steps, ..HttpResponse::events("") }
    });
    let server = server.await.unwrap();
    let keep_alive = Duration::from_millis(60);
    let provider = provider(server.url(), Patience { keep_alive, ..Patience::default() });
    let errors = errors(&*provider).await;
    let [LlmError::Cut(text)] = &errors[..] else { panic!("{errors:?}") };
    assert!(text.contains("keep-alives"), "{text}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let silent = || HttpResponse { steps: vec![Step::Stall], ..HttpResponse::events("") };
    let server = HttpServer::start(vec![silent(), silent()]).await.unwrap();
    let silence = Duration::from_millis(40);
    let provider = provider(server.url(), Patience { silence, ..Patience::default() });
    let errors = errors(&*provider).await;
    assert!(matches!(&errors[..], [LlmError::Cut(_)]), "{errors:?}");
}

#[tokio::test]
async fn an_unreachable_server_is_named_with_its_variable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://user:pass@{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let errors = errors(&*provider(url, Patience::default())).await;
    let [LlmError::Unreachable(text)] = &errors[..] else { panic!("{errors:?}") };
    assert!(text.contains("127.0.0.1") && text.contains("OPENAI_BASE_URL"), "{text}");
    assert!(!text.contains("pass@"), "{text}");
}

#[tokio::test]
async fn a_missing_key_and_a_bad_address_are_a_matter_of_settings() {
    let endpoint = Endpoint::anthropic(None, None);
    let own = http_provider(
        endpoint,
        Client::new(),
        Patience::default(),
        policy(),
        serde_json::Map::default(),
    );
    let bad = provider("localhost:8080".into(), Patience::default());
    for (provider, name) in [(own, "ANTHROPIC_API_KEY"), (bad, "OPENAI_BASE_URL")] {
        let errors = errors(&*provider).await;
        let [LlmError::Config(text)] = &errors[..] else { panic!("{errors:?}") };
        assert!(text.contains(name), "{text}");
    }
}

#[tokio::test]
async fn an_event_without_end_is_given_up() {
    let chunk = Bytes::from(vec![b'x'; 1 << 20]);
    let steps = std::iter::once(Step::Send(Bytes::from_static(b"data: ")))
        .chain(std::iter::repeat_n(Step::Send(chunk), 40))
        .collect();
    let response = HttpResponse { steps, ..HttpResponse::events("") };
    let server = HttpServer::start(vec![response]).await.unwrap();
    let errors = errors(&*provider(server.url(), Patience::default())).await;
    assert!(matches!(&errors[..], [LlmError::Protocol(_)]), "{errors:?}");
}
