//! Requests that go to exactly the addresses that were checked, for addresses that settings name.
//!
//! **Invariant:** a name is resolved once, and nothing but its checked addresses is connected to:
//! no proxy, no redirect, no second lookup.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use reqwest::dns::{Addrs, Name, Resolve as Lookup, Resolving};

use crate::{
    Host, NetError, Resolve, Response, check,
    client::{builder, header_map, parse, sent},
    shown_url,
};

/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Gives the judged addresses, whatever name is asked for.
pub(crate) struct GuardedResolver(pub(crate) Vec<SocketAddr>);

impl Lookup for GuardedResolver {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Sends a POST request and waits for the head of the answer. Private and special addresses are
/// refused unless `private`.
///
/// # Errors
/// Fails when the address or a header is invalid, when it leads to none that may be dialled, and
/// when no answer begins. A status of 300 and more is an answer, not an error.
///
/// # Cancel safety
/// Dropping the future closes the connection; whether the server acted is not known then.
pub async fn post_direct(
    resolver: &dyn Resolve,
    url: &str,
    private: bool,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Response, NetError> {
    let address = parse(url)?;
    let client = builder(CONNECT_TIMEOUT)?.no_proxy();
    let client = if private {
        client
    } else {
        let refused = |error: crate::AddressError| NetError::Connect {
            url: shown_url(url),
            reason: error.to_string(),
        };
        let host = Host::parse(address.host_str().unwrap_or_default()).map_err(refused)?;
        let port = address.port_or_known_default().unwrap_or(443);
        let judged = check(resolver, &host, port, &[]).await.map_err(refused)?;
        client.dns_resolver(GuardedResolver(judged.addresses().to_vec()))
    };
    let client = client.build().map_err(|error| NetError::Setup(error.to_string()))?;
    let request = client.post(address).headers(header_map(headers)?).body(body);
    sent(request, url).await
}

#[cfg(test)]
mod tests {
    use std::{io, net::IpAddr};

    use futures::future::BoxFuture;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::SystemResolver;

    /// Answers each time with the next of these addresses.
    struct Changes(std::sync::Mutex<Vec<IpAddr>>);

    impl Resolve for Changes {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(std::future::ready(Ok(vec![self.0.lock().unwrap().remove(0)])))
        }
    }

    #[tokio::test]
    async fn private_addresses_are_refused_in_every_form_and_never_connected_to() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let resolver = SystemResolver::default();
        for host in [
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "2130706433",
            "017700000001",
            "[::1]",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "localhost",
            "localhost.",
            "%31%32%37.0.0.1",
            "169.254.169.254",
            "[fd00:ec2::254]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
        ] {
            let url = format!("http://{host}:{port}/x");
            let sent = post_direct(&resolver, &url, false, &[], Bytes::new()).await;
            let error = sent.unwrap_err();
            assert!(matches!(error, NetError::Connect { .. }), "{url}: {error}");
        }
        let error = listener.accept().map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "somebody connected");
    }

    #[tokio::test]
    async fn a_name_is_looked_up_once() {
        let public = "1.1.1.1".parse().unwrap();
        let changes = Changes(std::sync::Mutex::new(vec![IpAddr::from([127, 0, 0, 1]), public]));
        let sent = post_direct(&changes, "http://rebound.example/", false, &[], Bytes::new()).await;
        let error = sent.unwrap_err().to_string();
        assert!(error.contains("127.0.0.1: this machine itself"), "{error}");
        assert_eq!(*changes.0.lock().unwrap(), [public], "one look");
        // What the client asks for a name with is what was judged, whatever the name.
        let judged = GuardedResolver(vec![SocketAddr::new(public, 80)]);
        let name = "elsewhere.example".parse().unwrap();
        let found: Vec<_> = judged.resolve(name).await.ok().unwrap().collect();
        assert_eq!(found, judged.0);
    }

    #[tokio::test]
    async fn what_settings_name_may_be_private_and_redirects_are_answers() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"{}") {
                let mut piece = [0; 1024];
                let count = stream.read(&mut piece).await.unwrap();
                read.extend_from_slice(&piece[..count]);
            }
            let answer =
                "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(read).unwrap()
        };
        let headers = [("content-type", "application/json")];
        let resolver = SystemResolver::default();
        let sent = post_direct(&resolver, &url, true, &headers, Bytes::from_static(b"{}"));
        let (answer, read) = tokio::join!(sent, serve);
        assert_eq!(answer.unwrap().status(), 302);
        assert!(read.starts_with("POST /hook HTTP/1.1\r\n") && read.contains("application/json"));
    }
}
