//! Tests of the guard: which addresses are asked, and what bad servers can do.

use std::{
    collections::HashMap,
    io,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::FutureExt as _;
use haft_testkit::http::{HttpRequest, HttpResponse, HttpServer, Step};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;

/// Knows some names; each answer is given once, the last one for ever.
#[derive(Default)]
struct Scripted {
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl Scripted {
    fn with(self, name: &str, answers: &[&str]) -> Self {
        let read = |text: &&str| text.split(' ').map(|one| one.parse().unwrap()).collect();
        let answers = answers.iter().rev().map(read).collect();
        self.names.lock().unwrap().insert(name.to_owned(), answers);
        self
    }
}

impl Resolve for Scripted {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut names = self.names.lock().unwrap();
        let answer = names.get_mut(name).map(|answers| match answers.len() {
            0 | 1 => answers.last().cloned().unwrap_or_default(),
            _ => answers.pop().unwrap_or_default(),
        });
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such name");
        std::future::ready(answer.ok_or_else(unknown)).boxed()
    }
}

/// Lets every host through, and knows one secret.
struct Open;

impl Gate for Open {
    fn admits(&self, _: &Host) -> bool {
        true
    }

    fn secret_in(&self, text: &str) -> Option<String> {
        text.contains("s3cr3t-value").then(|| "KEY".to_owned())
    }
}

/// Lets some hosts through.
struct Only(&'static [&'static str]);

impl Gate for Only {
    fn admits(&self, host: &Host) -> bool {
        self.0.contains(&host.to_string().as_str())
    }

    fn secret_in(&self, _: &str) -> Option<String> {
        None
    }
}

/// Counts the connections to all addresses of this machine at one port, of both kinds.
struct Everywhere {
    port: u16,
    came: Arc<AtomicUsize>,
}

impl Everywhere {
    async fn start() -> Self {
        let came = Arc::new(AtomicUsize::new(0));
        loop {
            let four = TcpListener::bind("0.0.0.0:0").await.unwrap();
            let port = four.local_addr().unwrap().port();
            // One port for both; another one may have that of the second kind.
            let six = match std::net::TcpListener::bind(("::1", port)) {
                Ok(six) => Some(six),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => continue,
                Err(_) => None,
            };
            let six = six.map(|six| {
                six.set_nonblocking(true).unwrap();
                TcpListener::from_std(six).unwrap()
            });
            for listener in [Some(four), six].into_iter().flatten() {
                let came = came.clone();
                tokio::spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        came.fetch_add(1, Ordering::SeqCst);
                        tokio::spawn(answer(stream));
                    }
                });
            }
            return Self { port, came };
        }
    }

    fn came(&self) -> usize {
        self.came.load(Ordering::SeqCst)
    }
}

/// Answers one request with a small page; redirects from `/to?URL` to that URL.
async fn answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let reply = match target.split_once("/to?") {
        Some((_, to)) => format!("HTTP/1.1 302 F\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"),
        None => {
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nhere".into()
        }
    };
    drop(stream.write_all(reply.as_bytes()).await);
}

fn guard(resolver: Scripted, except: &[String], proxies: Proxies) -> Guard {
    Guard::new(Arc::new(resolver), Exceptions::parse(except).unwrap(), proxies)
}

/// What is to come of a row.
enum Want {
    /// Refused, with words of the reason, before anything is dialled.
    No(&'static str),
    /// These addresses are dialled, and no others.
    Dials(&'static str),
}
use Want::{Dials, No};

const HERE: &str = "this machine itself";
const PRIVATE: &str = "a private network";
const LINK: &str = "link-local";
const CARRIER: &str = "a provider's private network";
const RESERVED: &str = "reserved";
const DOCS: &str = "reserved for documentation";
const CREDENTIALS: &str = "user name or password";
const NO_URL: &str = "is no URL";
const NO_HOST: &str = "is not a host";
const SCHEME: &str = "is not http: or https:";

/// Addresses as models, pages and attackers write them; `PORT` is where the counting listener is.
const TABLE: &[(&str, Want)] = &[
    // This machine, as it is usually written.
    ("http://127.0.0.1:PORT/", No(HERE)),
    ("http://127.0.0.1/", No(HERE)),
    ("https://127.0.0.1:PORT/", No(HERE)),
    ("http://127.0.0.2:PORT/", No(HERE)),
    ("http://127.255.255.254:PORT/", No(HERE)),
    ("http://localhost:PORT/", No(HERE)),
    ("http://LOCALHOST:PORT/", No(HERE)),
    ("http://localhost.:PORT/", No(HERE)),
    ("http://foo.localhost:PORT/", No(HERE)),
    ("http://0.0.0.0:PORT/", No(HERE)),
    ("http://0:PORT/", No(HERE)),
    ("http://[::]:PORT/", No(HERE)),
    ("http://[::1]:PORT/", No(HERE)),
    ("http://[0:0:0:0:0:0:0:1]:PORT/", No(HERE)),
    ("http://[0000::0001]:PORT/", No(HERE)),
    // Short, decimal, octal, hexadecimal and mixed.
    ("http://127.1:PORT/", No(HERE)),
    ("http://127.0.1:PORT/", No(HERE)),
    ("http://2130706433:PORT/", No(HERE)),
    ("http://0x7f000001:PORT/", No(HERE)),
    ("http://0X7F000001:PORT/", No(HERE)),
    ("http://0x7f.1:PORT/", No(HERE)),
    ("http://0x7f.0x0.0x0.0x1:PORT/", No(HERE)),
    ("http://0x7f.0.1:PORT/", No(HERE)),
    ("http://017700000001:PORT/", No(HERE)),
    ("http://0177.0.0.1:PORT/", No(HERE)),
    ("http://0177.0.0.01:PORT/", No(HERE)),
    ("http://0177.0x0.0.1:PORT/", No(HERE)),
    ("http://00000177.1:PORT/", No(HERE)),
    ("http://127.0.0.1.:PORT/", No(HERE)),
    ("http://0x0:PORT/", No(HERE)),
    ("http://00.00.00.00:PORT/", No(HERE)),
    // Escaped, and in other letters.
    ("http://%31%32%37.0.0.1:PORT/", No(HERE)),
    ("http://127%2e0%2e0%2e1:PORT/", No(HERE)),
    ("http://１２７.0.0.1:PORT/", No(HERE)),
    ("http://①②⑦.⓪.⓪.①:PORT/", No(HERE)),
    ("http://127。0。0。1:PORT/", No(HERE)),
    ("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/", No(HERE)),
    ("http://loc%61lhost:PORT/", No(HERE)),
    ("http://lo\u{ad}calhost:PORT/", No(HERE)),
    ("http://127.0.0.1\u{200b}:PORT/", No(HERE)),
    // Inside of addresses of IPv6.
    ("http://[::ffff:127.0.0.1]:PORT/", No(HERE)),
    ("http://[::ffff:7f00:1]:PORT/", No(HERE)),
    ("http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/", No(HERE)),
    ("http://[::FFFF:7F00:0001]:PORT/", No(HERE)),
    ("http://[64:ff9b::127.0.0.1]:PORT/", No(HERE)),
    ("http://[64:ff9b::7f00:1]:PORT/", No(HERE)),
    ("http://[64:ff9b:1::7f00:1]:PORT/", No(RESERVED)),
    ("http://[2002:7f00:1::]:PORT/", No(HERE)),
    ("http://[2002:7f00:1::1]:PORT/", No(HERE)),
    ("http://[::127.0.0.1]:PORT/", No(RESERVED)),
    ("http://[::ffff:0:127.0.0.1]:PORT/", No(RESERVED)),
    ("http://[2001::7f00:1]:PORT/", No(RESERVED)),
    ("http://[2001:0:7f00:1::]:PORT/", No(RESERVED)),
    ("http://[fe80::1%25lo]:PORT/", No(NO_URL)),
    ("http://[fe80::1%lo]:PORT/", No(NO_URL)),
    ("http://[::1%25lo]:PORT/", No(NO_URL)),
    // Private networks.
    ("http://10.0.0.1/", No(PRIVATE)),
    ("http://10.255.255.255/", No(PRIVATE)),
    ("http://0xa000001/", No(PRIVATE)),
    ("http://012.0.0.1/", No(PRIVATE)),
    ("http://167772161/", No(PRIVATE)),
    ("http://172.16.0.1/", No(PRIVATE)),
    ("http://172.31.255.255/", No(PRIVATE)),
    ("http://192.168.0.1/", No(PRIVATE)),
    ("http://192.168.1/", No(PRIVATE)),
    ("http://0300.0250.0.1/", No(PRIVATE)),
    ("http://3232235521/", No(PRIVATE)),
    ("http://[::ffff:10.0.0.1]/", No(PRIVATE)),
    ("http://[::ffff:c0a8:1]/", No(PRIVATE)),
    ("http://[64:ff9b::a00:1]/", No(PRIVATE)),
    ("http://[2002:a00:1::1]/", No(PRIVATE)),
    ("http://[2002:c0a8:101::]/", No(PRIVATE)),
    ("http://[fc00::1]/", No(PRIVATE)),
    ("http://[fd12:3456:789a::1]/", No(PRIVATE)),
    ("http://[fec0::1]/", No(PRIVATE)),
    ("http://[fe80::1]/", No(LINK)),
    ("http://[febf::1]/", No(LINK)),
    // Metadata of clouds, and what is like it.
    ("http://169.254.169.254/latest/meta-data/", No(LINK)),
    ("http://169.254.170.2/v2/credentials", No(LINK)),
    ("http://2852039166/", No(LINK)),
    ("http://0xa9fea9fe/", No(LINK)),
    ("http://0xA9.0xFE.0xA9.0xFE/", No(LINK)),
    ("http://0251.0376.0251.0376/", No(LINK)),
    ("http://025177524776/", No(LINK)),
    ("http://169.254.43518/", No(LINK)),
    ("http://169.16689662/", No(LINK)),
    ("http://0xa9.254.0251.254/", No(LINK)),
    ("http://[::ffff:169.254.169.254]/", No(LINK)),
    ("http://[::ffff:a9fe:a9fe]/", No(LINK)),
    ("http://[64:ff9b::a9fe:a9fe]/", No(LINK)),
    ("http://[2002:a9fe:a9fe::]/", No(LINK)),
    ("http://[fd00:ec2::254]/latest/meta-data/", No(PRIVATE)),
    ("http://100.100.100.200/latest/meta-data/", No(CARRIER)),
    ("http://1684301000/", No(CARRIER)),
    ("http://0x646464c8/", No(CARRIER)),
    ("http://[::ffff:100.100.100.200]/", No(CARRIER)),
    ("http://100.64.0.1/", No(CARRIER)),
    ("http://168.63.129.16/", No("metadata")),
    ("http://192.0.0.192/", No(RESERVED)),
    ("http://metadata.google.internal/", No(LINK)),
    ("http://169.254.169.254.nip.test/", No(LINK)),
    // Other addresses of nobody.
    ("http://192.0.2.1/", No(DOCS)),
    ("http://198.51.100.1/", No(DOCS)),
    ("http://203.0.113.1/", No(DOCS)),
    ("http://[2001:db8::1]/", No(DOCS)),
    ("http://198.18.0.1/", No("benchmarks")),
    ("http://224.0.0.1/", No("multicast")),
    ("http://[ff02::1]/", No("multicast")),
    ("http://240.0.0.1/", No(RESERVED)),
    ("http://255.255.255.255/", No(RESERVED)),
    ("http://4294967295/", No(RESERVED)),
    ("http://[100::1]/", No(RESERVED)),
    ("http://[4000::1]/", No(RESERVED)),
    // Names that lead inside.
    ("http://inside.test:PORT/", No(PRIVATE)),
    ("http://here.test:PORT/", No(HERE)),
    ("http://here6.test:PORT/", No(HERE)),
    ("http://mapped.test:PORT/", No(HERE)),
    ("http://nat64.test:PORT/", No(LINK)),
    ("http://nothing.test:PORT/", No("it has no address")),
    ("http://unknown.test:PORT/", No("cannot resolve")),
    // Of several addresses only the public ones are dialled.
    ("http://mixed.test:PORT/", Dials("8.8.8.8 2606:4700::1111")),
    // User names and passwords.
    ("http://user@public.test:PORT/", No(CREDENTIALS)),
    ("http://user:pw@public.test:PORT/", No(CREDENTIALS)),
    ("http://:pw@public.test:PORT/", No(CREDENTIALS)),
    ("http://public.test@127.0.0.1:PORT/", No(CREDENTIALS)),
    ("http://public.test:80@127.0.0.1:PORT/", No(CREDENTIALS)),
    ("http://public.test%2f@127.0.0.1:PORT/", No(CREDENTIALS)),
    ("http://127.0.0.1:PORT@public.test/", No(CREDENTIALS)),
    ("http://a:b@c:d@127.0.0.1:PORT/", No(CREDENTIALS)),
    // What readers of URLs disagree about.
    ("http://public.test\\@127.0.0.1:PORT/", Dials("8.8.8.8")),
    ("http://127.0.0.1:PORT\\@public.test/", No(HERE)),
    ("http://127.0.0.1:PORT#@public.test/", No(HERE)),
    ("http://127.0.0.1:PORT?@public.test/", No(HERE)),
    ("http:127.0.0.1:PORT/", No(HERE)),
    ("http:/127.0.0.1:PORT/", No(HERE)),
    ("http:////127.0.0.1:PORT/", No(HERE)),
    ("http:\\\\127.0.0.1:PORT/", No(HERE)),
    ("  http://127.0.0.1:PORT/  ", No(HERE)),
    ("HTTP://127.0.0.1:PORT/", No(HERE)),
    ("http://127.0.0.1:0PORT/", No(HERE)),
    ("ht\ttp://127.0.0.1:PORT/", No(NO_URL)),
    ("http://127.0.0.1\n:PORT/", No(NO_URL)),
    ("http://public.test:PORT/\r\nHost: inside.test", No(NO_URL)),
    ("http://public.test:0/", No(NO_URL)),
    ("http://public.test:65536/", No(NO_URL)),
    ("http://256.256.256.256/", No(NO_URL)),
    ("http://1.2.3.4.5/", No(NO_URL)),
    ("http://0x7g000001.0x/", No(NO_URL)),
    ("http://a b/", No(NO_URL)),
    ("http://*.public.test/", No(NO_HOST)),
    ("http://a..public.test/", No(NO_HOST)),
    ("//127.0.0.1:PORT/", No(NO_URL)),
    ("127.0.0.1:PORT/", No(NO_URL)),
    ("public.test", No(NO_URL)),
    ("", No(NO_URL)),
    // Other schemes.
    ("file:///etc/passwd", No(SCHEME)),
    ("file://127.0.0.1/etc/passwd", No(SCHEME)),
    ("ftp://127.0.0.1:PORT/", No(SCHEME)),
    ("gopher://127.0.0.1:PORT/_x", No(SCHEME)),
    ("dict://127.0.0.1:PORT/x", No(SCHEME)),
    ("ws://127.0.0.1:PORT/", No(SCHEME)),
    ("data:text/html,x", No(SCHEME)),
    ("javascript:alert(1)", No(SCHEME)),
    ("view-source:http://127.0.0.1:PORT/", No(SCHEME)),
    ("jar:http://127.0.0.1:PORT!/", No(SCHEME)),
    // Names that look like others are asked by their own form.
    ("http://pаypal.test/", Dials("9.9.9.9")),
    ("http://xn--pypal-4ve.test/", Dials("9.9.9.9")),
    ("http://exаmple.test:PORT/", No("cannot resolve xn--")),
    // What is public is asked.
    ("http://public.test:PORT/", Dials("8.8.8.8")),
    ("http://PUBLIC.test.:PORT/", Dials("8.8.8.8")),
    ("https://public.test/?u=http://127.0.0.1/", Dials("8.8.8.8")),
    ("http://8.8.8.8/", Dials("8.8.8.8")),
    ("http://0x08080808/", Dials("8.8.8.8")),
    ("http://[::ffff:8.8.8.8]/", Dials("8.8.8.8")),
    ("http://[2606:4700::1111]/", Dials("2606:4700::1111")),
    ("http://[64:ff9b::808:808]/", Dials("64:ff9b::808:808")),
    ("http://six.test/", Dials("2606:4700::1111")),
    ("http://192.0.1.1/", Dials("192.0.1.1")),
    ("http://172.32.0.1/", Dials("172.32.0.1")),
    ("http://100.128.0.1/", Dials("100.128.0.1")),
];

fn names() -> Scripted {
    Scripted::default()
        .with("localhost", &["127.0.0.1 ::1"])
        .with("foo.localhost", &["127.0.0.1"])
        .with("metadata.google.internal", &["169.254.169.254"])
        .with("169.254.169.254.nip.test", &["169.254.169.254"])
        .with("inside.test", &["10.1.2.3 192.168.0.9"])
        .with("here.test", &["127.0.0.1"])
        .with("here6.test", &["::1"])
        .with("mapped.test", &["::ffff:127.0.0.1"])
        .with("nat64.test", &["64:ff9b::a9fe:a9fe"])
        .with("mixed.test", &["10.0.0.1 8.8.8.8 127.0.0.1 2606:4700::1111 ::ffff:127.0.0.1"])
        .with("public.test", &["8.8.8.8"])
        .with("six.test", &["2606:4700::1111"])
        .with("xn--pypal-4ve.test", &["9.9.9.9"])
        .with("nothing.test", &[])
}

/// The addresses that a request would dial.
async fn dialled(guard: &Guard, url: &str) -> Result<Vec<IpAddr>, WebError> {
    let at = WebUrl::read(url)?;
    let judged = guard.judged(&at, false, None).await?.unwrap();
    Ok(judged.addresses().iter().map(std::net::SocketAddr::ip).collect())
}

#[tokio::test]
async fn no_byte_reaches_an_address_inside_however_it_is_written() {
    assert!(TABLE.len() >= 120, "{}", TABLE.len());
    let listener = Everywhere::start().await;
    let guard = guard(names(), &[], Proxies::none());
    let mut wrong = Vec::new();
    for (row, want) in TABLE {
        let url = row.replace("PORT", &listener.port.to_string());
        match want {
            No(words) => match guard.send(&WebRequest::get(&url), &Open).await {
                Err(error) if error.to_string().contains(words) && !error.hint().is_empty() => {}
                other => wrong.push(format!("{row:?}: wanted {words:?}, got {other:?}")),
            },
            Dials(addresses) => {
                let wanted: Vec<IpAddr> =
                    addresses.split(' ').map(|one| one.parse().unwrap()).collect();
                match dialled(&guard, &url).await {
                    Ok(found) if found == wanted => {}
                    other => wrong.push(format!("{row:?}: wanted {wanted:?}, got {other:?}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(listener.came(), 0, "somebody connected");
    // The listener counts: what a person excepted is reached, and nothing beside it.
    for (entry, urls, more) in [
        (
            "127.0.0.1:PORT",
            &["http://127.0.0.1:PORT/", "http://0x7f.1:PORT/"][..],
            "http://[::1]:PORT/",
        ),
        (
            "here.test:PORT",
            &["http://here.test:PORT/", "http://HERE.test.:PORT/"],
            "http://127.0.0.1:PORT/",
        ),
    ] {
        let port = listener.port.to_string();
        let except = [entry.replace("PORT", &port)];
        let guard = self::guard(names(), &except, Proxies::none());
        for url in urls {
            let before = listener.came();
            let request = WebRequest::get(url.replace("PORT", &port));
            let response = guard.send(&request, &Open).await.unwrap();
            assert_eq!((&response.body[..], response.end), (&b"here"[..], BodyEnd::Whole));
            assert_eq!(listener.came(), before + 1, "{url}");
        }
        let request = WebRequest::get(more.replace("PORT", &port));
        let before = listener.came();
        guard.send(&request, &Open).await.unwrap_err();
        assert_eq!(listener.came(), before);
    }
}

#[tokio::test]
async fn an_excepted_name_never_stands_for_metadata() {
    let resolver = names()
        .with("cloud.test", &["169.254.169.254 fd00:ec2::254 100.100.100.200 168.63.129.16"])
        .with("both.test", &["169.254.169.254 10.0.0.5"]);
    let guard = guard(resolver, &["cloud.test:80".into(), "both.test:80".into()], Proxies::none());
    let error = guard.send(&WebRequest::get("http://cloud.test/"), &Open).await.unwrap_err();
    assert!(matches!(error, WebError::Address(AddressError::Special { .. })), "{error}");
    let both = WebUrl::read("http://both.test/").unwrap();
    let judged = guard.judged(&both, true, None).await.unwrap().unwrap();
    assert_eq!(judged.addresses(), ["10.0.0.5:80".parse().unwrap()]);
}

/// Redirects of a server on this machine, which a person excepted: where they lead, and what the
/// gate admits; then what comes of it.
#[tokio::test]
async fn redirects_are_judged_like_first_addresses() {
    let listener = Everywhere::start().await;
    let port = listener.port;
    // Nothing that is excepted but one name.
    let except = [format!("site.test:{port}")];
    let resolver = || {
        names()
            .with("site.test", &["127.0.0.1"])
            .with("www.site.test", &["10.0.0.1"])
            .with("other.test", &["127.0.0.1"])
    };
    let guard = guard(resolver(), &except, Proxies::none());
    // Elsewhere: handed back, and nothing of it is asked.
    for to in [
        format!("http://127.0.0.1:{port}/x"),
        format!("http://localhost:{port}/x"),
        "http://169.254.169.254/latest/".to_owned(),
        "http://[::ffff:169.254.169.254]/".to_owned(),
        format!("http://other.test:{port}/x"),
        format!("http://a.site.test:{port}/x"),
        format!("http://site.test.evil.test:{port}/x"),
        format!("http://site.test:{}/x", port ^ 1),
        format!("//other.test:{port}/x"),
        format!("http://user:pw@site.test:{port}/x"),
        "file:///etc/passwd".to_owned(),
        "gopher://site.test/".to_owned(),
    ] {
        let before = listener.came();
        let request = WebRequest::get(format!("http://site.test:{port}/to?{to}"));
        let response = guard.send(&request, &Open).await.unwrap();
        assert!(response.elsewhere.is_some(), "{to}: {response:?}");
        assert_eq!((response.status, listener.came()), (302, before + 1), "{to}");
    }
    // The same site: followed, and judged anew.
    let request = WebRequest::get(format!("http://site.test:{port}/to?/page"));
    let response = guard.send(&request, &Open).await.unwrap();
    assert_eq!((&response.body[..], response.redirects), (&b"here"[..], 1));
    let before = listener.came();
    let request =
        WebRequest::get(format!("http://site.test:{port}/to?http://www.site.test:{port}/"));
    let error = guard.send(&request, &Open).await.unwrap_err();
    assert!(error.to_string().contains(PRIVATE), "{error}");
    assert_eq!(listener.came(), before + 1);
    // Where the call does not admit it, it is handed back.
    let response = guard.send(&request, &Only(&["site.test"])).await.unwrap();
    assert!(response.elsewhere.unwrap().contains("www.site.test"));
    // Nothing goes round for ever, and no form is sent on.
    let round =
        format!("http://site.test:{port}/to?/to?/to?/to?/to?/to?/to?/to?/to?/to?/to?/to?/x");
    let error = guard.send(&WebRequest::get(&round), &Open).await.unwrap_err();
    assert!(matches!(error, WebError::Redirects { most: 10, .. }), "{error}");
    let form = WebRequest {
        method: WebMethod::Post,
        body: Bytes::from_static(b"q=1"),
        ..WebRequest::get(format!("http://site.test:{port}/to?/page"))
    };
    let response = guard.send(&form, &Open).await.unwrap();
    assert_eq!((response.status, response.redirects), (302, 0));
}

#[test]
fn a_site_is_a_host_but_for_www_and_tls() {
    for (from, to, same) in [
        ("http://a.test/", "http://a.test/b", true),
        ("http://a.test/", "https://a.test/", true),
        ("http://a.test/", "https://www.a.test/", true),
        ("https://www.a.test/", "https://a.test/", true),
        ("https://A.test./", "https://a.test/", true),
        ("https://a.test/", "http://a.test/", false),
        ("https://a.test/", "https://b.test/", false),
        ("https://a.test/", "https://b.a.test/", false),
        ("https://www.a.test/", "https://www.www.a.test/", false),
        ("https://a.test/", "https://a.test:8443/", false),
        ("https://a.test:8443/", "https://a.test/", false),
        ("http://a.test:80/", "https://a.test:443/", true),
        ("http://test/", "http://www.test/", false),
        ("http://8.8.8.8/", "http://www.8.8.8.8/", false),
        ("http://8.8.8.8/", "http://0x08080808/", true),
    ] {
        let read = |text: &str| Url::parse(text);
        let (Ok(from), Ok(to)) = (read(from), read(to)) else {
            assert!(!same, "{from} {to}");
            continue;
        };
        assert_eq!(is_same_site(&from, &to), same, "{from} {to}");
    }
}

#[tokio::test]
async fn a_name_that_changes_its_address_reaches_only_what_was_judged() {
    let listener = Everywhere::start().await;
    // First public, then this machine: for the client that would ask again.
    let rebinding = Scripted::default().with("rebind.test", &["127.0.0.1", "8.8.8.8"]);
    let guard = Guard::new(Arc::new(rebinding), Exceptions::default(), Proxies::none());
    let url = format!("http://rebind.test:{}/", listener.port);
    let error = guard.send(&WebRequest::get(&url), &Open).await.unwrap_err();
    assert!(error.to_string().contains(HERE), "{error}");
    assert_eq!(dialled(&guard, &url).await.unwrap(), ["8.8.8.8".parse::<IpAddr>().unwrap()]);
    assert_eq!(listener.came(), 0);
    // Between two hops of one request: the second one is judged by its own answer.
    let answers = ["127.0.0.1", "169.254.169.254"];
    let turning = Arc::new(Scripted::default().with("turn.test", &answers));
    let except = Exceptions::parse(&[format!("turn.test:{}", listener.port)]).unwrap();
    let guard = Guard::new(turning.clone(), except, Proxies::none());
    let url = format!("http://turn.test:{}/to?/x", listener.port);
    let error = guard.send(&WebRequest::get(url), &Open).await.unwrap_err();
    assert!(error.to_string().contains(LINK), "{error}");
    assert_eq!((turning.asked.load(Ordering::Relaxed), listener.came()), (2, 1));
}

#[tokio::test]
async fn what_the_call_does_not_admit_and_what_holds_a_secret_is_not_looked_up() {
    let resolver = Arc::new(names());
    let guard = Guard::new(resolver.clone(), Exceptions::default(), Proxies::none());
    let error = guard.send(&WebRequest::get("http://public.test/"), &Only(&["other.test"])).await;
    assert!(matches!(error.unwrap_err(), WebError::Undeclared { .. }));
    for url in ["http://public.test/?k=s3cr3t-value", "http://public.test/s3cr3t-value/x"] {
        let error = guard.send(&WebRequest::get(url), &Open).await.unwrap_err();
        assert!(matches!(&error, WebError::Secret { place: "address", .. }), "{error}");
        assert!(!error.to_string().contains("s3cr3t-value"), "{error}");
    }
    let form = WebRequest {
        method: WebMethod::Post,
        body: Bytes::from_static(b"k=s3cr3t-value"),
        ..WebRequest::get("http://public.test/")
    };
    let error = guard.send(&form, &Open).await.unwrap_err();
    assert!(matches!(&error, WebError::Secret { place: "body", .. }), "{error}");
    assert_eq!(resolver.asked.load(Ordering::Relaxed), 0);
}

/// A proxy that says to which hosts it was to connect, and connects to none.
async fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.windows(4).any(|four| four == b"\r\n\r\n") {
                if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                    break;
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let first = head.lines().next().unwrap_or_default().to_owned();
            kept.lock().unwrap().push(first.clone());
            let reply = if first.starts_with("CONNECT") {
                "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
            } else {
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nproxy"
            };
            drop(stream.write_all(reply.as_bytes()).await);
        }
    });
    (address, heads)
}

#[tokio::test]
async fn a_proxy_is_given_only_what_was_judged_here() {
    let (address, heads) = proxy().await;
    let listener = Everywhere::start().await;
    let with = |url: &str| {
        let url = url.replace("PORT", &listener.port.to_string());
        let proxies = Proxies::only(&format!("http://u:p@{address}"), "direct.test");
        let except = [format!("here.test:{}", listener.port)];
        let guard = guard(names().with("direct.test", &["127.0.0.1"]), &except, proxies);
        async move { guard.send(&WebRequest::get(url), &Open).await }
    };
    // Literals and names that lead inside, and names that only the proxy could resolve and that are
    // those of private networks.
    for (url, words) in [
        ("http://127.0.0.1:PORT/", HERE),
        ("http://0x7f.1:PORT/", HERE),
        ("https://169.254.169.254/", LINK),
        ("http://[::ffff:10.0.0.1]/", PRIVATE),
        ("http://[64:ff9b::a9fe:a9fe]/", LINK),
        ("http://inside.test/", PRIVATE),
        ("https://here6.test/", HERE),
        // The proxy chooses among the addresses: all have to be public.
        ("http://mixed.test/", PRIVATE),
        ("http://intranet/", "name of private networks"),
        ("http://wiki.corp/", "name of private networks"),
        ("http://a.b.internal/", "name of private networks"),
        ("http://printer.local/", "name of private networks"),
        ("http://x.home.arpa/", "name of private networks"),
        ("http://db.localhost/", "name of private networks"),
    ] {
        let error = with(url).await.unwrap_err();
        assert!(error.to_string().contains(words), "{url}: {error}");
    }
    assert_eq!(*heads.lock().unwrap(), [""; 0]);
    // What is public, and what nobody knows here: the proxy dials, and that is said.
    for (url, line) in [
        ("http://public.test/a?b", "GET http://public.test/a?b HTTP/1.1"),
        ("http://unknown.example/", "GET http://unknown.example/ HTTP/1.1"),
        ("http://8.8.8.8/", "GET http://8.8.8.8/ HTTP/1.1"),
    ] {
        let response = with(url).await.unwrap();
        assert_eq!(&response.body[..], b"proxy", "{url}");
        assert_eq!(response.proxy.as_deref(), Some(&*format!("http://{address}")));
        assert_eq!(heads.lock().unwrap().pop().unwrap(), line);
    }
    let error = with("https://public.test/").await.unwrap_err();
    assert!(error.to_string().contains(&format!("through the proxy http://{address}")), "{error}");
    assert!(!error.to_string().contains("u:p"), "{error}");
    assert_eq!(heads.lock().unwrap().pop().unwrap(), "CONNECT public.test:443 HTTP/1.1");
    // Hosts that are not for the proxy are judged and dialled here; so are those that are excepted.
    let error = with("http://direct.test:PORT/").await.unwrap_err();
    assert!(error.to_string().contains(HERE), "{error}");
    let response = with("http://here.test:PORT/").await.unwrap();
    assert_eq!((&response.body[..], response.proxy), (&b"here"[..], None));
    assert_eq!((heads.lock().unwrap().len(), listener.came()), (0, 1));
}

/// Asks a server of this machine that answers so.
async fn asked(
    limits: WebLimits,
    answer: impl FnMut(usize, &HttpRequest) -> HttpResponse + Send + 'static,
) -> Result<WebResponse, WebError> {
    let server = HttpServer::start_with(answer).await.unwrap();
    let except = [server.url().trim_start_matches("http://").to_owned()];
    let guard = guard(Scripted::default(), &except, Proxies::none()).within(limits);
    guard.send(&WebRequest::get(server.url()), &Open).await
}

fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn bad_servers_cost_no_more_than_their_bounds() {
    let most = WebLimits { bytes: 1_000_000, ..WebLimits::default() };
    let short = WebLimits { time: Duration::from_millis(300), ..most };
    let text = |steps: Vec<Step>| {
        move |_: usize, _: &HttpRequest| HttpResponse {
            status: 200,
            headers: vec![("content-type".into(), "text/plain".into())],
            steps: steps.clone(),
        }
    };
    let send = |text: &[u8]| Step::Send(Bytes::copy_from_slice(text));

    // In many small pieces.
    let pieces = text(vec![send(b"one "), send(b"two "), send(b"three")]);
    let response = asked(most, pieces).await.unwrap();
    assert_eq!((&response.body[..], response.end), (&b"one two three"[..], BodyEnd::Whole));
    // Cut off.
    let response = asked(most, text(vec![send(b"one "), Step::Cut])).await.unwrap();
    assert!(matches!(response.end, BodyEnd::Broken(_)), "{response:?}");
    assert_eq!(&response.body[..], b"one ");
    // Never at an end, by time and by bytes.
    let response = asked(short, text(vec![send(b"one "), Step::Stall])).await.unwrap();
    assert_eq!((&response.body[..], response.end), (&b"one "[..], BodyEnd::Late));
    let endless = text(vec![send(&vec![b'x'; 300_000]); 20]);
    let response = asked(most, endless).await.unwrap();
    assert_eq!((response.body.len(), response.end), (1_000_000, BodyEnd::Full));
    // Exactly as much as is taken.
    let response = asked(most, text(vec![send(&vec![b'x'; 500_000]); 2])).await.unwrap();
    assert_eq!((response.body.len(), response.end), (1_000_000, BodyEnd::Whole));
    // Small, and large once it is unpacked.
    let bomb = gzip(&vec![0; 100_000_000]);
    assert!(bomb.len() < 200_000, "{}", bomb.len());
    let response = asked(most, move |_, _| {
        let mut answer = HttpResponse::new(200, "text/plain", bomb.clone());
        answer.headers.push(("content-encoding".into(), "gzip".into()));
        answer
    });
    let response = response.await.unwrap();
    assert_eq!((response.body.len(), response.end), (1_000_000, BodyEnd::Full));
    assert_eq!(response.packed, None);
    // Packed in a way that was not asked for, and not packed as it says.
    for (how, ends) in [("zstd", true), ("gzip", false)] {
        let response = asked(most, move |_, request| {
            assert!(!request.header("accept-encoding").unwrap().contains("zstd"));
            let mut answer = HttpResponse::new(200, "text/plain", "plain");
            answer.headers.push(("content-encoding".into(), how.into()));
            answer
        });
        let response = response.await.unwrap();
        assert_eq!(response.end == BodyEnd::Whole, ends, "{how}: {response:?}");
        assert_eq!(response.packed.is_some(), ends, "{how}");
    }
    // An error with a body is an answer.
    let response = asked(most, |_, _| HttpResponse::new(503, "text/plain", "down")).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (503, &b"down"[..]));
}

/// Asks a server that sends these bytes and closes.
async fn raw(scheme: &str, bytes: &'static str) -> Result<WebResponse, WebError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        drop(stream.read(&mut head).await);
        drop(stream.write_all(bytes.as_bytes()).await);
        drop(stream.shutdown().await);
    });
    let guard = guard(Scripted::default(), &[address.to_string()], Proxies::none());
    guard.send(&WebRequest::get(format!("{scheme}://{address}/")), &Open).await
}

#[tokio::test]
async fn broken_answers_are_named() {
    // Longer and shorter than announced.
    let response = raw("http", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nlonger").await.unwrap();
    assert_eq!((&response.body[..], response.end), (&b"lon"[..], BodyEnd::Whole));
    let response = raw("http", "HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\nshort").await.unwrap();
    assert!(matches!(response.end, BodyEnd::Broken(_)) && &response.body[..] == b"short");
    // Without a length, up to the end of the connection.
    let response = raw("http", "HTTP/1.0 200 OK\r\n\r\nuntil the end").await.unwrap();
    assert_eq!((&response.body[..], response.end), (&b"until the end"[..], BodyEnd::Whole));
    // Pieces that are none.
    let response =
        raw("http", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfour\r\nzz\r\n")
            .await
            .unwrap();
    assert!(matches!(response.end, BodyEnd::Broken(_)) && &response.body[..] == b"four");
    for wrong in
        ["", "no HTTP at all\r\n\r\n", "HTTP/1.1 999999 No\r\n\r\n", "HTTP/1.1 200 OK\r\nx"]
    {
        let error = raw("http", wrong).await.unwrap_err();
        assert!(matches!(&error, WebError::Broken { .. }), "{wrong:?}: {error}");
    }
    // A server that speaks no TLS.
    let error = raw("https", "HTTP/1.1 400 Bad\r\n\r\n").await.unwrap_err();
    assert!(matches!(&error, WebError::Tls { .. }), "{error}");
    // Nobody listens.
    let host = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let guard = guard(Scripted::default(), std::slice::from_ref(&host), Proxies::none());
    let error = guard.send(&WebRequest::get(format!("http://{host}/")), &Open).await.unwrap_err();
    assert!(matches!(&error, WebError::Connect { .. }), "{error}");
}
