//! Tests of the guard: spellings of hosts, kinds of addresses, what is dialled.

use std::{ffi::CString, sync::Mutex};

use futures::FutureExt;
use proptest::prelude::*;
use tokio::net::TcpListener;

use super::*;

fn host(text: &str) -> Host {
    Host::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Answers with the next of its answers, the last one for ever.
struct Scripted(Mutex<Vec<Vec<IpAddr>>>);

impl Scripted {
    fn new(answers: &[&[&str]]) -> Self {
        let answers = answers.iter().rev();
        Self(Mutex::new(
            answers.map(|some| some.iter().map(|text| address(text)).collect()).collect(),
        ))
    }
}

impl Resolve for Scripted {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
        async { Ok(answer.unwrap()) }.boxed()
    }
}

#[test]
fn every_spelling_of_an_address_is_that_address() {
    let spellings = [
        (
            "127.0.0.1",
            "127.1 127.0.1 2130706433 0x7f000001 0X7F.1 017700000001 0177.0.0.01 127.0.0.1.",
        ),
        (
            "127.0.0.1",
            "::ffff:127.0.0.1 [::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] %31%32%37.0.0.1",
        ),
        ("127.0.0.1", "１２７.0.0.1 127。0。0。1 ①②⑦.0.0.1"),
        (
            "169.254.169.254",
            "0xa9fea9fe 2852039166 0xa9.0xfe.0xa9.0xfe 169.16689662 [::ffff:a9fe:a9fe]",
        ),
        ("0.0.0.0", "0 0x 0.0 0000 00.0x0"),
        ("::1", "[::1] ::1 [0:0:0:0:0:0:0:1] 0000::0001"),
    ];
    for (meant, all) in spellings {
        for text in all.split(' ') {
            assert_eq!(host(text), Host::Address(address(meant)), "{text}");
        }
    }
}

#[test]
fn names_have_one_form() {
    let long = ["a".repeat(63).as_str(); 3].join(".") + "." + &"b".repeat(61);
    for (text, name) in [
        ("Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("%65xample.org", "example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("ⓔxample．org", "example.org"),
        ("_dmarc.a-b.example", "_dmarc.a-b.example"),
        ("1.example", "1.example"),
        ("localhost", "localhost"),
        (long.as_str(), long.as_str()),
    ] {
        assert_eq!(host(text), Host::Name(name.into()), "{text}");
    }
    assert_eq!(host("2001:DB8::1").to_string(), "[2001:db8::1]");
}

#[test]
fn what_is_no_host_is_refused() {
    let label = "a".repeat(64) + ".example";
    let long = "a.".repeat(127) + "example";
    let huge = "%61".repeat(100_000);
    for text in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a.b..",
        " ",
        "a b",
        "a\0b",
        "a\r\nb",
        "u@h",
        "a:80",
        "a/b",
        "a\\b",
        "a?b",
        "a#b",
        "a%00b",
        "a%2fb",
        "%",
        "%zz",
        "a%40b",
        "*.example",
        "a;b",
        "a'b",
        "256.1.1.1",
        "1.2.3.4.5",
        "0x1g.0x",
        "08.1.1.1",
        "4294967296",
        "[::1",
        "::1]",
        "[127.0.0.1]",
        "[fe80::1%eth0]",
        "fe80::1%25lo",
        "::1%lo",
        "[::1%25lo]",
        "[::1]:80",
        "::ffff:127.0.0.1%1",
        "a.0x7f",
        "\u{202e}a.example",
        "xn--a.example",
        "a\u{ad}..b",
        label.as_str(),
        long.as_str(),
        huge.as_str(),
    ] {
        let shown = text.get(..40).unwrap_or(text);
        let error = Host::parse(text).expect_err(shown).to_string();
        assert!(error.len() < 400, "{error}");
    }
}

#[test]
fn what_is_not_public_is_named() {
    let kinds = [
        (
            LOOPBACK,
            "127.0.0.1 127.255.255.255 0.0.0.0 0.1.2.3 ::1 :: ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::",
        ),
        (
            PRIVATE,
            "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd00:ec2::254 fec0::1 ::ffff:10.1.1.1",
        ),
        (PRIVATE, "64:ff9b::a00:1 2002:c0a8:101::1"),
        ("a provider's private network", "100.64.0.1 100.127.255.255 100.100.100.200"),
        ("a cloud's metadata", "168.63.129.16 ::ffff:168.63.129.16"),
        (
            LINK_LOCAL,
            "169.254.169.254 169.254.0.1 fe80::1 febf::1 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1",
        ),
        (DOCUMENTATION, "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff::1 3fff:fff::1"),
        ("reserved for benchmarks", "198.18.0.1 198.19.255.255"),
        (MULTICAST, "224.0.0.1 239.255.255.255 ff02::1"),
        (
            RESERVED,
            "192.0.0.192 192.88.99.1 240.0.0.1 255.255.255.255 2001::1 2001:0:a00:1:: 2001:1ff::1 100::1",
        ),
        (
            RESERVED,
            "::127.0.0.1 ::8.8.8.8 ::ffff:0:8.8.8.8 64:ff9b:1::808:808 5f00::1 4000::1 1::1",
        ),
    ];
    for (kind, all) in kinds {
        for text in all.split(' ') {
            assert_eq!(special(address(text)), Some(kind), "{text}");
        }
    }
    let public = "1.0.0.0 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
        168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 \
        192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2001:200::1 2001:4860:4860::8888 \
        2606:4700::1111 2002:808:808::1 64:ff9b::808:808 ::ffff:8.8.8.8 2000::1 3ffe::1";
    for text in public.split_whitespace() {
        assert_eq!(special(address(text)), None, "{text}");
    }
}

#[tokio::test]
async fn addresses_are_judged_after_resolution() {
    let name = host("Name.example.");
    let mixed = Scripted::new(&[&["10.0.0.1", "8.8.8.8", "::ffff:127.0.0.1", "2606:4700::1111"]]);
    let checked = check(&mixed, &name, 443, &[]).await.unwrap();
    let public = ["8.8.8.8:443", "[2606:4700::1111]:443"].map(|text| text.parse().unwrap());
    assert_eq!(checked.addresses(), public);

    let private = Scripted::new(&[&["::ffff:10.0.0.7"]]);
    let error = check(&private, &name, 443, &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "name.example has the address 10.0.0.7: a private network");
    // One that is listed may be dialled, and no other one.
    let listed = [address("10.0.0.7")];
    assert!(check(&private, &name, 443, &listed).await.is_ok());
    assert!(check(&private, &host("10.0.0.7"), 443, &listed).await.is_ok());
    let error = check(&private, &host("10.0.0.8"), 443, &listed).await.unwrap_err();
    assert_eq!(error.to_string(), "10.0.0.8: a private network");

    let none = check(&Scripted::new(&[&[]]), &name, 443, &[]).await.unwrap_err();
    assert!(matches!(none, AddressError::Unresolved { .. }), "{none}");
}

#[tokio::test]
async fn the_address_that_was_checked_is_dialled_whatever_is_answered_later() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap();
    let rebinding = Scripted::new(&[&["8.8.8.8"], &["127.0.0.1"]]);
    let first = check(&rebinding, &host("a.example"), here.port(), &[]).await.unwrap();
    assert_eq!(first.addresses(), [SocketAddr::new(address("8.8.8.8"), here.port())]);
    let second = check(&rebinding, &host("a.example"), here.port(), &[]).await.unwrap_err();
    assert!(matches!(second, AddressError::Special { .. }), "{second}");
}

/// Only Linux has the whole of 127.0.0.0/8 without being told.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn all_addresses_are_tried_and_the_last_error_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap();
    // Nothing listens at 127.0.0.2 and 127.0.0.3 on that port.
    let listed = ["127.0.0.2", "127.0.0.3", "127.0.0.1"];
    let resolver = Scripted::new(&[&listed]);
    let except = listed.map(address);
    let checked = check(&resolver, &host("a.example"), here.port(), &except).await.unwrap();
    let stream = dial(&checked, Duration::from_secs(10)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), here);

    drop((listener, stream));
    let error = dial(&checked, Duration::from_secs(10)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
}

/// Only Linux has the whole of 127.0.0.0/8 without being told.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_address_that_does_not_answer_holds_up_no_other_one() {
    // A queue of connections that is full: the next one is neither taken nor refused.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mute = socket.listen(1).unwrap();
    let port = mute.local_addr().unwrap().port();
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let connect = TcpStream::connect(("127.0.0.2", port));
        match time::timeout(Duration::from_millis(200), connect).await {
            Ok(stream) => waiting.push(stream.unwrap()),
            Err(_) => break,
        }
    }
    let only = Checked { addresses: vec![SocketAddr::new(address("127.0.0.2"), port)] };
    let error = dial(&only, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);

    let _listener = TcpListener::bind(("127.0.0.3", port)).await.unwrap();
    let two = ["127.0.0.2", "127.0.0.3"].map(|text| SocketAddr::new(address(text), port));
    let stream = dial(&Checked { addresses: two.to_vec() }, Duration::from_mins(1)).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), two[1]);
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    let found = SystemResolver::default().resolve("localhost").await.unwrap();
    assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    let error = check(&SystemResolver::default(), &host("LOCALHOST."), 80, &[]).await.unwrap_err();
    assert!(error.to_string().contains(LOOPBACK), "{error}");
}

/// What `getaddrinfo` takes for an IPv4 address before it asks anybody.
#[expect(unsafe_code, reason = "there is no safe way to ask libc")]
fn by_libc(text: &str) -> Option<Ipv4Addr> {
    let text = CString::new(text).ok()?;
    // SAFETY: the system reads the two inputs during the call; the list that it makes is read
    // before it is freed, and its first entry is an IPv4 address, since nothing else was asked for.
    unsafe {
        let mut hints: libc::addrinfo = std::mem::zeroed();
        hints.ai_flags = libc::AI_NUMERICHOST;
        hints.ai_family = libc::AF_INET;
        let mut list = std::ptr::null_mut();
        if libc::getaddrinfo(text.as_ptr(), std::ptr::null(), &raw const hints, &raw mut list) != 0
        {
            return None;
        }
        let first = (*list).ai_addr.cast::<libc::sockaddr_in>().read_unaligned();
        libc::freeaddrinfo(list);
        Some(Ipv4Addr::from(u32::from_be(first.sin_addr.s_addr)))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// What a resolver would take for an address is never a name here.
    #[test]
    fn libc_never_finds_an_address_in_a_name(text in "[0-9a-fxX.]{1,12}|([0-9]{1,4}|0x[0-9a-f]{0,3})(\\.([0-9]{1,4}|0[xX][0-9a-f]{0,9})){0,4}") {
        let Ok(read) = Host::parse(&text) else { return Ok(()) };
        match (read, by_libc(&text)) {
            (Host::Name(name), found) => {
                prop_assert_eq!(found, None);
                prop_assert_eq!(by_libc(&name), None);
            }
            (Host::Address(address), Some(found)) => prop_assert_eq!(address, IpAddr::V4(found)),
            (Host::Address(_), None) => {}
        }
    }

    #[test]
    fn any_text_is_read_or_refused_and_reading_again_changes_nothing(text in "\\PC{0,40}|[a-zA-Z0-9.%:\\[\\]\\-_ßé。]{0,300}") {
        if let Ok(read) = Host::parse(&text) {
            prop_assert_eq!(&Host::parse(&read.to_string()).unwrap(), &read);
            if let Host::Name(name) = &read {
                prop_assert!(name.len() <= 253 && name.bytes().all(|b| b"-_.".contains(&b) || b.is_ascii_lowercase() || b.is_ascii_digit()));
            }
        }
    }

    /// The forms of an address inside another one are judged alike, for every address.
    #[test]
    fn clothes_do_not_change_an_address(number: u32) {
        let plain = Ipv4Addr::from(number);
        let octets = plain.octets();
        let [a, b] = [[octets[0], octets[1]], [octets[2], octets[3]]].map(u16::from_be_bytes);
        let judged = special(plain.into());
        for dressed in [
            plain.to_ipv6_mapped(),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
            Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1),
        ] {
            prop_assert_eq!(special(dressed.into()), judged);
        }
        prop_assert!(special(plain.to_ipv6_compatible().into()).is_some());
    }
}
