//! A proxy, names that a test gives out, and servers of this machine behind them.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{FutureExt, future::BoxFuture};
use haft_net::{Hosts, Pass, Proxy, Resolve};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time,
};

/// Nothing here takes so long unless it hangs.
pub const LONG: Duration = Duration::from_mins(1);

/// A resolver that knows what it was told, and notes what it was asked.
#[derive(Default)]
pub struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub asked: Mutex<Vec<String>>,
}

impl Names {
    /// Gives these answers one after the other, the last one for ever.
    pub fn answer_with(&self, name: &str, answers: &[&[&str]]) {
        let address = |text: &&str| text.parse().unwrap();
        let answers = answers.iter().rev().map(|some| some.iter().map(address).collect()).collect();
        self.answers.lock().unwrap().insert(name.into(), answers);
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.into());
        let mut known = self.answers.lock().unwrap();
        let answer = known.get_mut(name).and_then(|answers| match answers.len() {
            0 | 1 => answers.last().cloned(),
            _ => answers.pop(),
        });
        async { answer.ok_or_else(|| io::Error::other("nobody told me")) }.boxed()
    }
}

/// A request that reached a server.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    pub line: String,
    pub headers: hyper::HeaderMap,
}

/// A server of HTTP on 127.0.0.1: files of a folder, and for everything else the request as text.
pub struct Origin {
    pub port: u16,
    pub seen: Arc<Mutex<Vec<SeenRequest>>>,
}

impl Origin {
    pub async fn start(root: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (port, seen) = (listener.local_addr().unwrap().port(), Arc::default());
        let origin = Self { port, seen };
        let (seen, root) = (origin.seen.clone(), root.to_owned());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(speak(stream, seen.clone(), root.clone()));
            }
        });
        origin
    }

    pub fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|seen| seen.line.clone()).collect()
    }
}

/// Speaks HTTP as an origin does.
pub async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    root: PathBuf,
) {
    let service = service_fn(|request| answer(request, seen.clone(), root.clone()));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    root: PathBuf,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let line = format!("{} {}", parts.method, parts.uri);
    let text = format!("{line} {:?} {} bytes\n", parts.headers, body.len());
    seen.lock().unwrap().push(SeenRequest { line, headers: parts.headers });
    let path = root.join(parts.uri.path().trim_matches('/'));
    let answer = match std::fs::read(path) {
        Ok(file) => {
            Response::builder().header("content-type", "text/html").body(file.into()).unwrap()
        }
        Err(_) if parts.uri.path().starts_with("/echo") => Response::new(text.into()),
        Err(_) => Response::builder().status(404).body(Full::default()).unwrap(),
    };
    Ok(answer)
}

/// A proxy before an origin that is called `site.test`.
pub struct World {
    pub names: Arc<Names>,
    pub proxy: Proxy,
    pub origin: Origin,
    pub folder: tempfile::TempDir,
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = Arc::new(Names::default());
        names.answer_with("site.test", &[&["127.0.0.1"]]);
        let origin = Origin::start(folder.path()).await;
        let proxy = Proxy::start(names.clone()).await.unwrap();
        Self { names, proxy, origin, folder }
    }

    /// Lets through to `site.test`, and to its address, at the origin's port.
    pub fn admit(&self) -> Pass {
        let port = self.origin.port;
        self.admit_to(&[&format!("site.test:{port}"), &format!("127.0.0.1:{port}")])
    }

    pub fn admit_to(&self, hosts: &[&str]) -> Pass {
        self.proxy.admit(Hosts::parse(hosts).unwrap()).unwrap()
    }

    /// Sends bytes, says that no more come, and reads all that is answered.
    pub async fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.proxy.port())).await.unwrap();
        // The proxy may be done with the connection before all is sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        rest(&mut stream).await
    }
}

/// All that comes until the end or the break of a connection.
pub async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let reading = async { while let Ok(1..) = stream.read_buf(&mut all).await {} };
    time::timeout(LONG, reading).await.unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

/// User name and password of a pass.
pub fn credentials(pass: &Pass) -> (String, String) {
    let url = pass.url();
    let (_, rest) = url.split_once("://").unwrap();
    let (user, password) = rest.split_once('@').unwrap().0.split_once(':').unwrap();
    (user.into(), password.into())
}

/// The header by which a client shows its pass, with the end of its line.
pub fn header(pass: &Pass) -> String {
    let (user, password) = credentials(pass);
    format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
}

/// Runs a program with the variables of a pass and no other settings.
pub async fn run(pass: &Pass, program: PathBuf, arguments: &[&str], home: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(pass.variables());
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home).current_dir(home);
    command.stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// Both outputs of a program, and how it ended.
pub fn output_text(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{}{}[{}]", texts[0], texts[1], output.status)
}
