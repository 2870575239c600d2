//! The network of a call: the hosts of its plan, and no others.

use std::{io, net::IpAddr, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use haft_net::{Exceptions, Guard, Proxies, Resolve};
use haft_policy::Verdict;
use haft_testkit::{
    http::{HttpResponse, HttpServer},
    world::World,
};
use haft_tool::{Web, WebRequest};
use haft_types::{Access, Outcome, Plan, Status, Target, ToolError};
use serde_json::json;

use crate::support::{Probe, world};

/// Knows every name: all are this machine.
struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        std::future::ready(Ok(vec![IpAddr::from([127, 0, 0, 1])])).boxed()
    }
}

/// A tool that declares `host` and asks `url`.
fn asks() -> Probe {
    Probe::new("asks")
        .plan(|input, place| {
            let host = input["host"].as_str().unwrap_or_default().to_owned();
            Plan::new(place, "Asking").with(Access::Observe, Target::Net { host })
        })
        .check(|_, cx| async move {
            match cx.net() {
                Ok(_) => Err(ToolError::new("a check has the network")),
                Err(_) => Ok(None),
            }
        })
        .run(|input, cx| async move {
            let url = input["url"].as_str().unwrap_or_default();
            let response = cx.net()?.send(&WebRequest::get(url)).await?;
            let told = response.elsewhere.map(|to| format!("elsewhere: {to}"));
            let body = String::from_utf8_lossy(&response.body).into_owned();
            Ok(Outcome::text(told.unwrap_or(body)))
        })
}

/// A world with the network, where what is not denied is allowed, and a server in it.
async fn served() -> (World, HttpServer, String) {
    let server = HttpServer::start_with(|_, request| match request.target.strip_prefix("/to?") {
        Some(place) => {
            let mut answer = HttpResponse::new(302, "text/plain", "");
            answer.headers.push(("location".into(), place.to_owned()));
            answer
        }
        None => HttpResponse::new(200, "text/plain", "a page"),
    });
    let server = server.await.unwrap();
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let names = ["127.0.0.1", "site.test", "www.site.test", "other.test"];
    let except = names.map(|name| format!("{name}:{port}"));
    let guard = Guard::new(Arc::new(Here), Exceptions::parse(&except).unwrap(), Proxies::none());
    let world = world([asks()]).0;
    world.session.services.insert::<dyn Web>(Arc::new(guard));
    world.rule(Verdict::Allow, "asks");
    (world, server, port)
}

async fn asked(world: &World, host: &str, url: &str) -> (Status, String) {
    let outcome = world.call("asks", json!({"host": host, "url": url})).await;
    (outcome.status, outcome.joined_text())
}

#[tokio::test]
async fn a_tool_reaches_the_host_that_it_declared_and_no_other() {
    let (world, server, port) = served().await;
    for (host, url) in [
        ("127.0.0.1", format!("http://127.0.0.1:{port}/")),
        ("127.0.0.1", format!("http://0x7f.1:{port}/")),
        ("site.test", format!("http://SITE.test.:{port}/")),
        ("site.test", format!("http://www.site.test:{port}/")),
    ] {
        assert_eq!(asked(&world, host, &url).await, (Status::Done, "a page".into()), "{url}");
    }
    let before = server.requests().len();
    for (host, url) in [
        ("site.test", format!("http://127.0.0.1:{port}/")),
        ("site.test", format!("http://other.test:{port}/")),
        ("site.test", format!("http://a.site.test:{port}/")),
        ("site.test", format!("http://site.test.evil.test:{port}/")),
        ("127.0.0.1", format!("http://127.0.0.2:{port}/")),
        ("", format!("http://site.test:{port}/")),
        ("*.test", format!("http://site.test:{port}/")),
    ] {
        let (status, text) = asked(&world, host, &url).await;
        assert_eq!(status, Status::Failed, "{url}: {text}");
        assert!(text.contains("not among the hosts"), "{url}: {text}");
    }
    assert_eq!(server.requests().len(), before, "somebody was asked");
}

#[tokio::test]
async fn redirects_stay_within_what_was_declared_and_what_rules_let() {
    let (world, server, port) = served().await;
    let to = |place: &str| format!("http://site.test:{port}/to?http://{place}:{port}/");
    let (status, text) = asked(&world, "site.test", &to("other.test")).await;
    assert_eq!((status, text), (Status::Done, format!("elsewhere: http://other.test:{port}/")));
    assert_eq!(asked(&world, "site.test", &to("www.site.test")).await.1, "a page");
    let before = server.requests().len();
    world.rule(Verdict::Deny, "WebFetch(domain:www.site.test)");
    let (_, text) = asked(&world, "site.test", &to("www.site.test")).await;
    assert_eq!(text, format!("elsewhere: http://www.site.test:{port}/"));
    assert_eq!(server.requests().len(), before + 1);
}

#[tokio::test]
async fn without_the_service_there_is_no_network() {
    let world = world([asks()]).0;
    world.rule(Verdict::Allow, "asks");
    let (status, text) = asked(&world, "site.test", "http://site.test/").await;
    assert!(
        status == Status::Failed && text.contains("no service") && text.contains("Web"),
        "{text}"
    );
}
