//! The proxy's bounds: time, connections, memory. What it lets through is tried from outside.

use std::net::IpAddr;

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

use super::*;

const MILLI: Duration = Duration::from_millis(1);
const QUICK: Bounds = Bounds { head: MILLI.saturating_mul(300), ..BOUNDS };
/// Nothing here takes so long unless it hangs.
const LONG: Duration = Duration::from_mins(1);

/// Knows that everything is here, but for one name, of which it never says anything.
struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        match name {
            "never.test" => futures::future::pending().boxed(),
            _ => async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) }.boxed(),
        }
    }
}

/// A proxy, a server that no connection is taken from yet, and a pass to it.
async fn world(bounds: Bounds) -> (Proxy, TcpListener, Pass, String) {
    let proxy = Proxy::start_with(Arc::new(Here), bounds).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hosts = [format!("*.test:{port}"), format!("127.0.0.1:{port}")];
    let pass = proxy.admit(Hosts::parse(hosts).unwrap()).unwrap();
    let connect = connect(&pass, &format!("site.test:{port}"));
    (proxy, listener, pass, connect)
}

/// A request for a tunnel.
fn connect(pass: &Pass, to: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let url = pass.url();
    let shown = STANDARD.encode(url["http://".len()..].split('@').next().unwrap());
    format!("CONNECT {to} HTTP/1.1\r\nProxy-Authorization: Basic {shown}\r\n\r\n")
}

async fn client(proxy: &Proxy, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream
}

async fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    time::timeout(LONG, stream.read_exact(&mut head)).await.unwrap().unwrap();
    String::from_utf8_lossy(&head[9..]).into_owned()
}

/// Waits for the end of a connection.
async fn ended(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    let reading = async { while let Ok(1..) = stream.read(&mut bytes).await {} };
    time::timeout(LONG, reading).await.unwrap();
}

#[tokio::test]
async fn a_head_that_drips_is_cut_off() {
    let (proxy, _listener, _pass, connect) = world(QUICK).await;
    for start in
        ["GET http://site.test/ HTTP/1.1\r\n", &connect[..40], "\x05\x01", "\x05\x01\x02\x01\x7f"]
    {
        let stream = client(&proxy, start).await;
        let (mut reading, mut writing) = stream.into_split();
        let drip = async {
            let mut every = time::interval(MILLI * 100);
            while writing.write_all(b"a").await.is_ok() {
                every.tick().await;
            }
        };
        let mut bytes = Vec::new();
        // Said to its end at this pace, the longest of these would take twice as long as is waited.
        let end = async { while let Ok(1..) = reading.read_buf(&mut bytes).await {} };
        time::timeout(MILLI * 10_000, async {
            tokio::select! { () = drip => {}, () = end => {} }
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn strangers_keep_nobody_out_for_long() {
    let (proxy, listener, _pass, connect) = world(QUICK).await;
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(client(&proxy, "").await);
    }
    let mut guest = client(&proxy, &connect).await;
    let (_server, _) = time::timeout(LONG, listener.accept()).await.unwrap().unwrap();
    assert_eq!(status(&mut guest).await, "200");
    for stream in &mut silent {
        ended(stream).await;
    }
    // Those who ask again and again without a password do not stay either.
    let mut stream = client(&proxy, "").await;
    let asking = async {
        while stream.write_all(b"GET http://site.test/ HTTP/1.1\r\n\r\n").await.is_ok() {
            let mut bytes = [0; 4096];
            if !matches!(stream.read(&mut bytes).await, Ok(1..)) {
                break;
            }
        }
    };
    time::timeout(LONG, asking).await.unwrap();
}

#[tokio::test]
async fn a_command_has_a_number_of_connections_and_everybody_together() {
    let (proxy, listener, pass, connect) =
        world(Bounds { each: 5, all: 8, strangers: 1, ..BOUNDS }).await;
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut stream = client(&proxy, &connect).await;
        assert_eq!(status(&mut stream).await, "200");
        open.push((stream, listener.accept().await.unwrap()));
    }
    assert_eq!(status(&mut client(&proxy, &connect).await).await, "403");
    assert_eq!((pass.refused().list[0].why.clone(), pass.refused().list.len()), (Why::TooMany, 1));
    // Another command has its own, up to what all have.
    let port = listener.local_addr().unwrap().port();
    let hosts = [format!("site.test:{port}"), format!("127.0.0.1:{port}")];
    let other = proxy.admit(Hosts::parse(hosts).unwrap()).unwrap();
    let second = self::connect(&other, &format!("site.test:{port}"));
    for _ in 0..3 {
        let mut stream = client(&proxy, &second).await;
        assert_eq!(status(&mut stream).await, "200");
        open.push((stream, listener.accept().await.unwrap()));
    }
    assert_eq!(status(&mut client(&proxy, &second).await).await, "403");
}

#[tokio::test]
async fn a_tunnel_ends_when_nothing_goes_over_it_and_not_before() {
    let idle = MILLI * 500;
    let (proxy, listener, _pass, connect) = world(Bounds { idle, ..BOUNDS }).await;
    let mut guest = client(&proxy, &connect).await;
    let (mut server, _) = listener.accept().await.unwrap();
    assert_eq!(status(&mut guest).await, "200");
    // One way alone, for several times as long.
    let begun = Instant::now();
    while begun.elapsed() < idle * 3 {
        server.write_all(b"x").await.unwrap();
        time::sleep(MILLI * 50).await;
    }
    guest.write_all(b"still there").await.unwrap();
    let mut bytes = [0; 11];
    server.read_exact(&mut bytes).await.unwrap();
    let quiet = Instant::now();
    ended(&mut guest).await;
    assert!(quiet.elapsed() >= idle, "{:?}", quiet.elapsed());
}

#[tokio::test]
async fn who_does_not_answer_is_given_up() {
    let (proxy, listener, pass, _) = world(Bounds { connect: MILLI * 100, ..BOUNDS }).await;
    let port = listener.local_addr().unwrap().port();
    let mut guest = client(&proxy, &connect(&pass, &format!("never.test:{port}"))).await;
    assert_eq!(status(&mut guest).await, "504");
}

#[tokio::test]
async fn the_end_of_the_proxy_is_the_end_of_its_connections() {
    let (proxy, listener, _pass, connect) = world(BOUNDS).await;
    let mut guest = client(&proxy, &connect).await;
    let (mut server, _) = listener.accept().await.unwrap();
    assert_eq!(status(&mut guest).await, "200");
    let port = proxy.port();
    drop(proxy);
    ended(&mut guest).await;
    ended(&mut server).await;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn connections_that_are_over_leave_room() {
    let (proxy, listener, pass, connect) =
        world(Bounds { each: 1, all: 1, strangers: 1, ..BOUNDS }).await;
    for _ in 0..50 {
        let mut guest = client(&proxy, &connect).await;
        let (server, _) = listener.accept().await.unwrap();
        assert_eq!(status(&mut guest).await, "200");
        drop(server);
        ended(&mut guest).await;
        drop(guest);
        // The room is given back when the task is gone, right after its connections.
        let all = &proxy.shared.connections;
        drop(time::timeout(LONG, all.acquire()).await.unwrap().unwrap());
    }
    assert_eq!(pass.refused(), Refusals::default());
}
