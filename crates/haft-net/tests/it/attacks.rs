//! Requests that want to go where they may not, or to mean two things.

use std::net::Ipv4Addr;

use futures::FutureExt;
use haft_net::Why;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time,
};

use crate::world::{LONG, Origin, World, credentials, header, rest};

/// The status of each answer.
fn statuses(text: &str) -> Vec<&str> {
    let all = text.split("HTTP/1.").skip(1);
    all.map(|answer| answer.get(2..5).unwrap_or_default()).collect()
}

#[tokio::test]
async fn nobody_gets_through_without_a_password_that_is_good_now() {
    let world = World::new().await;
    let (pass, other) = (world.admit(), world.admit_to(&["else.test"]));
    let url = format!("http://site.test:{}/echo", world.origin.port);
    let ask = |header: String| format!("GET {url} HTTP/1.1\r\nHost: x\r\n{header}\r\n");
    let (user, password) = credentials(&pass);
    let basic = |text: String| {
        use base64::{Engine, engine::general_purpose::STANDARD};
        format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(text))
    };
    let id: u64 = user.parse().unwrap();
    for wrong in [
        String::new(),
        "Proxy-Authorization: Basic\r\n".into(),
        "Proxy-Authorization: Basic !!!\r\n".into(),
        format!("Proxy-Authorization: Bearer {password}\r\n"),
        basic(format!("{user}:")),
        basic(user.clone()),
        basic(format!("{user}:{}", password.to_uppercase() + "0")),
        basic(format!("{user}:{}", &password[1..])),
        basic(format!("{}:{password}", id + 1)),
        basic(format!("{}:{password}", id + 77)),
        basic(format!(":{password}")),
        basic(format!("{user}:{password}\0")),
        header(&pass) + &header(&pass),
        header(&pass) + &header(&other),
    ] {
        let text = world.send(ask(wrong.clone()).as_bytes()).await;
        assert_eq!(statuses(&text), ["407"], "{wrong}: {text}");
        assert!(text.to_lowercase().contains("proxy-authenticate: basic"), "{text}");
    }
    assert_eq!(statuses(&world.send(ask(header(&pass)).as_bytes()).await), ["200"]);
    // The password of another command opens what is listed for that one alone.
    assert_eq!(statuses(&world.send(ask(header(&other)).as_bytes()).await), ["403"]);
    assert_eq!((pass.refused().list.len(), other.refused().list.len()), (0, 1));
    // A connection belongs to the first command that it shows.
    let both = ask(header(&pass)) + &ask(header(&other)) + &ask(header(&pass));
    assert_eq!(statuses(&world.send(both.as_bytes()).await), ["200", "407", "200"]);
    let shown = header(&pass);
    drop(pass);
    assert_eq!(statuses(&world.send(ask(shown).as_bytes()).await), ["407"]);
    assert_eq!(world.origin.lines().len(), 3);
    assert_eq!(*world.names.asked.lock().unwrap(), ["site.test"; 3]);
}

#[tokio::test]
async fn private_addresses_are_refused_however_they_are_written() {
    let world = World::new().await;
    let port = world.origin.port;
    let names =
        [("lo.test", "127.0.0.1"), ("mapped.test", "::ffff:127.0.0.1"), ("six.test", "::1")];
    let more = [
        ("cloud.test", "169.254.169.254"),
        ("ec2.test", "fd00:ec2::254"),
        ("lan.test", "10.1.2.3"),
    ];
    let listed = format!("*.test:{port}");
    // Also where somebody listed a name that is this machine.
    let pass = world.admit_to(&[&listed, &format!("localhost:{port}")]);
    let shown = header(&pass);
    world.names.answer_with("localhost", &[&["127.0.0.1", "::1"]]);
    for (name, address) in names.into_iter().chain(more) {
        world.names.answer_with(name, &[&[address]]);
    }
    let special =
        "lo.test LO.TEST. mapped.test six.test cloud.test ec2.test lan.test localhost %6cocalhost";
    let numbers = "127.0.0.1 127.1 2130706433 0x7f000001 0x7f.1 017700000001 0177.0.0.1 0 127.0.0.1. [::1] \
        [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [64:ff9b::7f00:1] 169.254.169.254 \
        2852039166 [fd00:ec2::254]";
    for host in special.split(' ').chain(numbers.split_whitespace()) {
        let connect = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: site.test\r\n{shown}\r\n");
        let text = world.send(connect.as_bytes()).await;
        assert!(["403", "400"].contains(&statuses(&text)[0]), "{host}: {text}");
        let get =
            format!("GET http://{host}:{port}/echo HTTP/1.1\r\nHost: site.test\r\n{shown}\r\n");
        let text = world.send(get.as_bytes()).await;
        assert!(["403", "400"].contains(&statuses(&text)[0]), "{host}: {text}");
    }
    assert_eq!(world.origin.lines(), [""; 0]);
    let refused = pass.refused().list;
    let why = |host: &str| &refused.iter().find(|one| one.host == host).unwrap().why;
    for host in
        ["lo.test", "mapped.test", "six.test", "cloud.test", "ec2.test", "lan.test", "localhost"]
    {
        assert!(matches!(why(host), Why::Special { .. }), "{host}: {refused:?}");
    }
    // All spellings are one address.
    let here = refused.iter().find(|one| one.host == "127.0.0.1").unwrap();
    assert!(here.why == Why::NotListed && here.times > 15, "{refused:?}");
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_judged_at_each_request() {
    let world = World::new().await;
    let port = world.origin.port;
    let inside = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), port)).await.unwrap();
    // One address is listed, and stands for a public one; the other is not.
    world.names.answer_with("turn.test", &[&["127.0.0.1"], &["127.0.0.2"]]);
    let pass = world.admit_to(&[&format!("turn.test:{port}"), &format!("127.0.0.1:{port}")]);
    let shown = header(&pass);
    let get =
        format!("GET http://turn.test:{port}/echo HTTP/1.1\r\nHost: turn.test\r\n{shown}\r\n");
    // On one connection, so that a proxy that keeps its own open would be seen.
    let text = world.send(get.repeat(3).as_bytes()).await;
    assert_eq!(statuses(&text), ["200", "403", "403"], "{text}");
    assert_eq!(world.names.asked.lock().unwrap().len(), 3);
    // Nobody has come to the other one.
    assert!(inside.accept().now_or_never().is_none());
    assert_eq!(pass.refused().list[0].times, 2);
}

#[tokio::test]
async fn the_address_counts_and_not_the_host_header() {
    let world = World::new().await;
    let (pass, port) = (world.admit(), world.origin.port);
    let shown = header(&pass);
    let get = format!(
        "GET http://SITE.test:{port}?a=b HTTP/1.1\r\nHost: evil.test\r\nhost: 169.254.169.254\r\n{shown}\
         Connection: x-secret, close\r\nX-Secret: 1\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
         Upgrade: h2c\r\nX-Kept: 1\r\n\r\n"
    );
    assert_eq!(statuses(&world.send(get.as_bytes()).await).len(), 1);
    let seen = world.origin.seen.lock().unwrap().pop().unwrap();
    let headers: Vec<_> =
        seen.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let host = format!("site.test:{port}");
    assert_eq!(seen.line, "GET /?a=b");
    assert_eq!(seen.headers.get_all("host").iter().collect::<Vec<_>>(), [host.as_str()]);
    let mut names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(names, ["connection", "host", "x-kept"]);

    // And where the header names what is allowed, the address what is not.
    let get =
        format!("GET http://evil.test:{port}/ HTTP/1.1\r\nHost: site.test:{port}\r\n{shown}\r\n");
    assert_eq!(statuses(&world.send(get.as_bytes()).await), ["403"]);
    assert_eq!(world.origin.lines(), [""; 0]);
}

#[tokio::test]
async fn forms_that_are_no_request_to_a_proxy_are_refused() {
    let world = World::new().await;
    let (pass, port) = (world.admit(), world.origin.port);
    let shown = header(&pass);
    let long = format!("{}.site.test", "a".repeat(5000));
    for (line, status) in [
        ("GET /echo HTTP/1.1".to_owned(), "400"),
        ("OPTIONS * HTTP/1.1".into(), "400"),
        ("CONNECT site.test HTTP/1.1".into(), "400"),
        ("CONNECT site.test: HTTP/1.1".into(), "400"),
        ("CONNECT /echo HTTP/1.1".into(), "400"),
        ("CONNECT site.test:99999 HTTP/1.1".into(), "400"),
        ("CONNECT site.test:0 HTTP/1.1".into(), "403"),
        (format!("CONNECT u@site.test:{port} HTTP/1.1"), "403"),
        (format!("CONNECT site.test:{port}@evil.test:443 HTTP/1.1"), "403"),
        (format!("CONNECT evil.test@site.test:{port} HTTP/1.1"), "403"),
        (format!("CONNECT evil.test#@site.test:{port} HTTP/1.1"), "400"),
        (format!("CONNECT [::1%25lo]:{port} HTTP/1.1"), "403"),
        (format!("CONNECT site.test\0.evil.test:{port} HTTP/1.1"), "400"),
        (format!("CONNECT {long}:{port} HTTP/1.1"), "403"),
        (format!("GET http://u:p@site.test:{port}/echo HTTP/1.1"), "403"),
        (format!("GET http://evil.test\\@site.test:{port}/echo HTTP/1.1"), "400"),
        (format!("GET https://site.test:{port}/echo HTTP/1.1"), "400"),
        (format!("GET ftp://site.test:{port}/echo HTTP/1.1"), "400"),
        ("GET http://site.test:99999/echo HTTP/1.1".into(), "400"),
        ("GET http://site.test:x/echo HTTP/1.1".into(), "400"),
        ("GET http:///echo HTTP/1.1".into(), "400"),
        (format!("GET http://site.test:{port}/echo HTTP/3.0"), "400"),
        ("PRI * HTTP/2.0".into(), "400"),
    ] {
        let text = world.send(format!("{line}\r\nHost: site.test\r\n{shown}\r\n").as_bytes()).await;
        assert!(statuses(&text).first().is_none_or(|found| *found == status), "{line}: {text}");
        assert!(!text.is_empty() || line.starts_with("PRI"), "{line}");
    }
    let big = format!(
        "GET http://site.test:{port}/echo HTTP/1.1\r\n{shown}X: {}\r\n\r\n",
        "x".repeat(66_000)
    );
    let text = world.send(big.as_bytes()).await;
    // It may be told before all was sent, and then the answer may be lost.
    assert!(["431", ""].contains(&statuses(&text).first().copied().unwrap_or_default()));
    assert_eq!(world.origin.lines(), [""; 0]);
    let passwords = |text: &str| text.contains("u:p");
    assert!(!pass.refused().list.iter().any(|one| passwords(&one.host)), "{:?}", pass.refused());
}

/// A server that answers each connection once, and tells what it got over it when that is over.
async fn recorder() -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(record(stream, tell.clone()));
        }
    });
    (port, told)
}

async fn record(mut stream: TcpStream, tell: mpsc::UnboundedSender<String>) {
    let mut text = Vec::new();
    while !whole(&text) && !matches!(stream.read_buf(&mut text).await, Ok(0) | Err(_)) {}
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let _ = stream.write_all(answer.as_bytes()).await;
    while let Ok(1..) = stream.read_buf(&mut text).await {}
    let _ = tell.send(String::from_utf8_lossy(&text).into_owned());
}

/// Whether a request has all of its body.
fn whole(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    match length {
        Some(length) => body.len() >= length.parse().unwrap(),
        None => !head.contains("chunked") || body.ends_with("0\r\n\r\n"),
    }
}

#[tokio::test]
async fn one_request_is_one_request_to_everybody() {
    let world = World::new().await;
    let (port, mut told) = recorder().await;
    let pass = world.admit_to(&[&format!("site.test:{port}"), &format!("127.0.0.1:{port}")]);
    let shown = header(&pass);
    let inner = "GET http://evil.test/inner HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    let (length, chunk) = (inner.len(), format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len()));
    for (headers, body, expected) in [
        ("Content-Length: 4\r\nContent-Length: 5".to_owned(), inner.to_owned(), "400"),
        (format!("Content-Length: 0\r\nContent-Length: {length}"), inner.into(), "400"),
        (format!("Content-Length: 0, {length}"), inner.into(), "400"),
        (format!("Content-Length: +{length}"), inner.into(), "400"),
        ("Content-Length: -1".into(), inner.into(), "400"),
        ("Content-Length: 0x10".into(), inner.into(), "400"),
        ("Content-Length: 99999999999999999999999".into(), inner.into(), "400"),
        ("Transfer-Encoding: xchunked".into(), chunk.clone(), "400"),
        ("Transfer-Encoding: chunked, identity".into(), chunk.clone(), "400"),
        ("Transfer-Encoding: gzip, chunked".into(), chunk.clone(), "501"),
        ("Transfer-Encoding : chunked".into(), chunk.clone(), "400"),
        ("Transfer-Encoding: chunked\r\n continued".into(), chunk.clone(), "400"),
        ("Transfer-Encoding: \x0bchunked".into(), chunk.clone(), "400"),
        ("X: a\0b".into(), String::new(), "400"),
        ("X: a\rContent-Length: 5".into(), inner.into(), "400"),
        ("\0X: a".into(), String::new(), "400"),
        // Taken, framed anew, and the connection is over: what the other reading leaves over is nobody's.
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked".into(),
            format!("0\r\n\r\n{inner}"),
            "200",
        ),
        (format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"), chunk.clone(), "200"),
        (format!("Content-Length: {length}\r\nContent-Length: {length}"), inner.into(), "200"),
    ] {
        let request = format!(
            "POST http://site.test:{port}/ HTTP/1.1\r\nHost: site.test\r\n{shown}{headers}\r\n\r\n{body}"
        );
        let text = world.send(request.as_bytes()).await;
        assert_eq!(statuses(&text).first(), Some(&expected), "{headers}: {text}");
        // The answer was said in two ways, too, and goes on in one, which is the right one.
        assert!(expected != "200" || text.contains("\r\nok\r\n"), "{text}");
        let lower = text.to_lowercase();
        assert!(!(lower.contains("content-length: 1\r\n") && lower.contains("chunked")), "{text}");
        if expected == "200" {
            let request = time::timeout(LONG, told.recv()).await.unwrap().unwrap();
            let lower = request.to_lowercase();
            let said = lower.matches("\r\ncontent-length:").count()
                + lower.matches("\r\ntransfer-encoding:").count();
            assert_eq!(
                (said, lower.matches("\r\nhost: site.test").count()),
                (1, 1),
                "{headers}: {request}"
            );
            assert!(lower.starts_with("post / http/1.1\r\n"), "{request}");
        }
        // Nobody else has come: connections are served in their order.
        assert!(told.try_recv().is_err(), "{headers}");
    }
    assert!(!world.names.asked.lock().unwrap().iter().any(|name| name.contains("evil")));
}

#[tokio::test]
async fn a_half_closed_tunnel_goes_on_and_ends_with_its_pass() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pass = world.admit_to(&[&format!("site.test:{port}"), &format!("127.0.0.1:{port}")]);
    let connect = format!("CONNECT site.test:{port} HTTP/1.1\r\n{}\r\nearly ", header(&pass));
    let open = async || {
        let mut client = TcpStream::connect(("127.0.0.1", world.proxy.port())).await.unwrap();
        client.write_all(connect.as_bytes()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let mut head = [0; 12];
        client.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        (client, server)
    };
    let (mut client, mut server) = open().await;
    client.write_all(b"late").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut server).await, "early late");
    server.write_all(b"answer").await.unwrap();
    drop(server);
    assert!(rest(&mut client).await.ends_with("\r\n\r\nanswer"));

    let (mut client, mut server) = open().await;
    drop(pass);
    assert_eq!(rest(&mut server).await, "early ");
    assert!(rest(&mut client).await.ends_with("\r\n\r\n"));
}

/// Pieces of requests, right and wrong, in any order.
fn pieces(port: u16, shown: &str) -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "GET ",
        "POST ",
        "CONNECT ",
        "http://",
        "https://",
        "site.test",
        "evil.test",
        ":",
        "80",
        "@",
        "/",
        "/echo",
        "?x",
        " HTTP/1.1",
        " HTTP/1.0",
        "\r\n",
        "\n",
        "\r",
        "\r\n\r\n",
        "Host: evil.test",
        "Content-Length: ",
        "5",
        "0",
        "Transfer-Encoding: chunked",
        "Connection: close",
        "Expect: 100-continue",
        "Upgrade: x",
        "[::1]",
        "127.1",
        "%",
        "\0",
        "\t",
        " ",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "hello",
        "\u{7f}",
        "ü",
    ];
    let words = proptest::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    let head = |verb: &str, rest: &str| {
        format!("{verb}site.test:{port}{rest} HTTP/1.1\r\n{shown}").into_bytes()
    };
    let good = proptest::sample::select(vec![
        head("GET http://", "/echo"),
        head("POST http://", "/echo"),
        head("CONNECT ", ""),
        shown.as_bytes().to_vec(),
    ]);
    let any = proptest::collection::vec(any::<u8>(), 0..20);
    let whole = good.clone().prop_map(|head| [&head[..], b"\r\n"].concat());
    let one = prop_oneof![8 => words, 2 => good, 3 => whole, 1 => any];
    proptest::collection::vec(one, 0..14).prop_map(|all| all.concat())
}

/// Whatever is sent, only what is listed is resolved and reached, and the proxy goes on.
#[tokio::test]
async fn no_bytes_lead_elsewhere() {
    let world = World::new().await;
    // A site of its own, since tunnels lead there, too.
    let site = Origin::start(world.folder.path()).await;
    let pass =
        world.admit_to(&[&format!("site.test:{}", site.port), &format!("127.0.0.1:{}", site.port)]);
    world.names.answer_with("evil.test", &[&["127.0.0.1"]]);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let shown = header(&pass);
    let bytes = pieces(site.port, &shown);
    let mut answered = 0;
    for _ in 0..500 {
        let sent = bytes.new_tree(&mut runner).unwrap().current();
        let text = world.send(&sent).await;
        answered += usize::from(!text.is_empty());
    }
    assert!(answered > 250, "{answered}");
    assert!(world.names.asked.lock().unwrap().iter().all(|name| name == "site.test"));
    assert!(site.lines().len() > 10, "{:?}", site.lines());
    assert_eq!(world.origin.lines(), [""; 0]);
    assert!(pass.refused().list.iter().all(|one| one.host.chars().all(|c| !c.is_control())));
    // All this kept 64 different ones at most.
    assert!(pass.refused().list.len() <= 64);
}

#[tokio::test]
async fn what_is_kept_of_refusals_is_bounded() {
    let world = World::new().await;
    let pass = world.admit();
    let shown = header(&pass);
    let ask = |n: usize| format!("GET http://h{n}.test/ HTTP/1.1\r\n{shown}\r\n");
    let all = (0..200).map(ask).collect::<Vec<_>>().concat();
    assert_eq!(statuses(&world.send(all.as_bytes()).await).len(), 200);
    let refused = pass.refused();
    assert_eq!((refused.list.len(), refused.more), (64, 136));
    assert!(world.names.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn thousands_of_connections_leave_nothing_behind() {
    let world = World::new().await;
    let pass = world.admit();
    let refused = format!("CONNECT elsewhere.example:443 HTTP/1.1\r\n{}\r\n", header(&pass));
    let taken = format!(
        "GET http://site.test:{}/echo HTTP/1.1\r\n{}\r\n",
        world.origin.port,
        header(&pass)
    );
    let burst = async |count: usize| {
        for at in 0..count {
            let bytes = ["", "\x05", "GET ", &refused, &taken][at % 5];
            world.send(bytes.as_bytes()).await;
            world.origin.seen.lock().unwrap().clear();
            world.names.asked.lock().unwrap().clear();
        }
    };
    // Buffers and threads come with the first ones.
    burst(2_000).await;
    let before = resident();
    burst(2_000).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 2 << 20, "{grown} bytes");
    assert_eq!((pass.refused().list.len(), pass.refused().list[0].times), (1, 800));
}

/// Bytes of memory of this process; none where the system does not tell.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<usize> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or_default() * 4096
}
