//! SOCKS5, spoken byte by byte.

use haft_net::{Pass, Why};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::world::{World, credentials, rest};

/// The greeting of a client with this user name and password.
fn greeting(user: &str, password: &str) -> Vec<u8> {
    let mut bytes = vec![5, 2, 0, 2, 1];
    for text in [user, password] {
        bytes.push(text.len().try_into().unwrap());
        bytes.extend(text.as_bytes());
    }
    bytes
}

fn greeted(pass: &Pass) -> Vec<u8> {
    let (user, password) = credentials(pass);
    greeting(&user, &password)
}

/// A request to connect to an address of one of the three forms.
fn connect(form: u8, host: &[u8], port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, form];
    if form == 3 {
        bytes.push(host.len().try_into().unwrap());
    }
    bytes.extend(host);
    bytes.extend(port.to_be_bytes());
    bytes
}

/// What a client gets that sends this and says that no more comes.
async fn send(world: &World, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", world.proxy.port())).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut all = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut all).await {}
    all
}

#[tokio::test]
async fn a_name_is_resolved_here_and_the_tunnel_is_the_servers() {
    let world = World::new().await;
    let pass = world.admit();
    let mut bytes = greeted(&pass);
    bytes.extend(connect(3, b"Site.TEST", world.origin.port));
    // Sent right behind, before any answer.
    bytes.extend(b"GET /echo HTTP/1.0\r\n\r\n");
    let got = send(&world, &bytes).await;
    assert_eq!(got[..6], [5, 2, 1, 0, 5, 0]);
    assert!(String::from_utf8_lossy(&got).contains("GET /echo"));
    // An address that is listed is itself.
    let mut bytes = greeted(&pass);
    bytes.extend(connect(1, &[127, 0, 0, 1], world.origin.port));
    assert_eq!(send(&world, &bytes).await[4..6], [5, 0]);
    assert!(pass.refused().list.is_empty());
}

#[tokio::test]
async fn what_may_not_be_reached_is_refused_with_its_reason() {
    let world = World::new().await;
    let port = world.origin.port;
    world.names.answer_with("lo.test", &[&["127.0.0.1"]]);
    world.names.answer_with("dead.test", &[&["127.0.0.9"]]);
    let pass = world.admit_to(&[&format!("*.test:{port}"), &format!("127.0.0.9:{port}")]);
    let mapped: [u8; 16] = "::ffff:127.0.0.1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let longest = "a".repeat(255);
    for (form, host, code) in [
        (1, &[127, 0, 0, 1][..], 2),
        (1, &[0, 0, 0, 0], 2),
        (1, &[169, 254, 169, 254], 2),
        (4, &mapped, 2),
        (4, &[0; 16], 2),
        (3, b"lo.test", 2),
        (3, b"127.0.0.1", 2),
        (3, b"0x7f.1", 2),
        (3, b"::1", 2),
        (3, b"[::ffff:127.0.0.1]", 2),
        (3, b"::1%lo", 2),
        (3, b"other.example", 2),
        (3, b"lo.test\0.site.test", 2),
        (3, b"site.test ", 2),
        (3, b"", 2),
        (3, b"\xff\xfe.test", 2),
        (3, longest.as_bytes(), 2),
        (3, b"nobody.test", 4),
        (3, b"dead.test", 5),
    ] {
        let mut bytes = greeted(&pass);
        bytes.extend(connect(form, host, port));
        let got = send(&world, &bytes).await;
        assert_eq!(got.get(4..6), Some(&[5, code][..]), "{}", String::from_utf8_lossy(host));
        assert_eq!(got.len(), 14);
    }
    assert_eq!(world.origin.lines(), [""; 0]);
    let refused = pass.refused().list;
    assert!(
        refused.iter().any(|one| one.host == "lo.test" && matches!(one.why, Why::Special { .. }))
    );
    assert_eq!(refused.iter().find(|one| one.host == "127.0.0.1").unwrap().times, 5, "{refused:?}");
    assert!(refused.iter().all(|one| !one.host.contains(char::is_control)), "{refused:?}");
}

#[tokio::test]
async fn there_is_one_way_in_and_one_command() {
    let world = World::new().await;
    let (pass, other) = (world.admit(), world.admit());
    let (user, password) = credentials(&pass);
    let request = connect(3, b"site.test", world.origin.port);
    for (greeting, expected) in [
        (vec![5, 1, 0], &[5, 0xff][..]),
        (vec![5, 0], &[5, 0xff]),
        (greeting(&user, ""), &[5, 2, 1, 1]),
        (greeting("", &password), &[5, 2, 1, 1]),
        (greeting(&credentials(&other).0, &password), &[5, 2, 1, 1]),
        (greeting("18446744073709551616", &password), &[5, 2, 1, 1]),
        (vec![5, 1, 2, 9, 1, b'a', 1, b'b'], &[5, 2]),
        (vec![4, 1, 0, 80, 127, 0, 0, 1, 0], b""),
    ] {
        let got = send(&world, &[greeting.clone(), request.clone()].concat()).await;
        if expected.is_empty() {
            // SOCKS4 is no request of HTTP either.
            assert!(got.starts_with(b"HTTP/1.1 400") || got.is_empty(), "{got:?}");
        } else {
            assert_eq!(got, expected, "{greeting:?}");
        }
    }
    for (kind, form, code) in [(2, 3, 7), (3, 3, 7), (9, 1, 7), (1, 9, 8)] {
        let mut bytes = greeted(&pass);
        let mut request = connect(form, if form == 1 { &[127, 0, 0, 1] } else { b"site.test" }, 80);
        request[1] = kind;
        bytes.extend(request);
        assert_eq!(send(&world, &bytes).await.get(4..6), Some(&[5, code][..]));
    }
    assert!(world.names.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn any_bytes_are_borne() {
    let world = World::new().await;
    let pass = world.admit();
    let request = connect(3, b"site.test", world.origin.port);
    let good = [greeted(&pass), request].concat();
    let cut = (0..good.len(), proptest::collection::vec(any::<u8>(), 0..40));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for _ in 0..300 {
        let (at, junk) = cut.new_tree(&mut runner).unwrap().current();
        let bytes = [&[5], &good[1..at.max(1)], &junk].concat();
        send(&world, &bytes).await;
    }
    assert!(world.names.asked.lock().unwrap().iter().all(|name| name == "site.test"));
    let mut stream = TcpStream::connect(("127.0.0.1", world.proxy.port())).await.unwrap();
    stream.write_all(&good).await.unwrap();
    stream.write_all(b"GET /echo HTTP/1.0\r\n\r\n").await.unwrap();
    assert!(rest(&mut stream).await.contains("GET /echo"));
}
