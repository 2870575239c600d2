//! Programs that people use, through the proxy by their environment alone.

use std::{path::Path, process::Command, sync::Arc};

use haft_net::Why;
use haft_testkit::machine::{program, python};
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use crate::world::{World, output_text, run, speak};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_reaches_what_is_listed_and_is_told_what_is_not() {
    let world = World::new().await;
    let (pass, home) = (world.admit(), world.folder.path());
    let site = format!("http://site.test:{}/echo", world.origin.port);
    let curl = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let pass = &pass;
        async move {
            let arguments: Vec<&str> =
                ["-sS"].into_iter().chain(arguments.iter().map(String::as_str)).collect();
            output_text(&run(pass, program("curl"), &arguments, home).await)
        }
    };
    let text = curl(&[&site]).await;
    assert!(text.contains("GET /echo") && text.ends_with("[exit status: 0]"), "{text}");
    let socks = pass.socks_url();
    let text = curl(&["--proxy", &socks, &site]).await;
    assert!(text.contains("GET /echo"), "{text}");
    // Of unknown length, more than any buffer holds, and with an expectation.
    std::fs::write(home.join("big"), vec![b'x'; 5_000_000]).unwrap();
    let text = curl(&["-H", "Transfer-Encoding: chunked", "-T", "big", &site]).await;
    assert!(text.contains("PUT /echo") && text.contains("5000000 bytes"), "{text}");
    let text = curl(&["-T", "big", &site]).await;
    assert!(text.contains("5000000 bytes"), "{text}");
    let text = curl(&["-I", &format!("http://site.test:{}/big", world.origin.port)]).await;
    assert!(text.to_ascii_lowercase().contains("content-length: 5000000"), "{text}");

    let text = curl(&["http://other.test/x"]).await;
    let why = "other.test:80: not among the hosts that this command may reach";
    assert!(text.contains(why), "{text}");
    let text = curl(&["https://other.test/"]).await;
    assert!(text.contains("403") && !text.ends_with("[exit status: 0]"), "{text}");
    let text = curl(&["--proxy", &socks, "https://other.test/"]).await;
    assert!(text.contains("(2)") && !text.ends_with("[exit status: 0]"), "{text}");
    let refused = pass.refused().list;
    let told: Vec<_> = refused.iter().map(|one| (one.host.as_str(), one.port, one.times)).collect();
    assert_eq!(told, [("other.test", 80, 1), ("other.test", 443, 2)]);
    assert!(refused.iter().all(|one| one.why == Why::NotListed));
}

/// A server of HTTPS for `tls.test`, its certificate in `cert.pem`.
async fn serve_tls(world: &World, folder: &Path) -> u16 {
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=tls.test \
        -addext subjectAltName=DNS:tls.test -keyout key.pem -out cert.pem";
    let mut openssl = Command::new(program("openssl"));
    let made = openssl.args(arguments.split_whitespace()).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (seen, root) = (world.origin.seen.clone(), folder.to_owned());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, seen, root) = (acceptor.clone(), seen.clone(), root.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    speak(stream, seen, root).await;
                }
            });
        }
    });
    world.names.answer_with("tls.test", &[&["127.0.0.1"]]);
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn https_goes_through_a_tunnel_that_nobody_looks_into() {
    let world = World::new().await;
    let home = world.folder.path();
    let port = serve_tls(&world, home).await;
    let pass = world.admit_to(&[&format!("*.test:{port}"), &format!("127.0.0.1:{port}")]);
    std::fs::write(home.join("page"), "a page").unwrap();
    let url = format!("https://tls.test:{port}/page");
    let output = run(&pass, program("curl"), &["-sS", "--cacert", "cert.pem", &url], home).await;
    assert_eq!(output_text(&output), "a page[exit status: 0]");
    // By Python's own library, which shows its password at once.
    let script = "import ssl, sys, urllib.request as u\n\
        c = ssl.create_default_context(cafile='cert.pem')\n\
        print(u.urlopen(sys.argv[1], context=c).read())";
    let output = run(&pass, python(), &["-c", script, &url], home).await;
    assert_eq!(output_text(&output), "b'a page'\n[exit status: 0]");
    assert_eq!(world.origin.lines(), ["GET /page", "GET /page"]);
    assert_eq!(pass.refused(), haft_net::Refusals::default());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_clones_through_the_proxy() {
    let world = World::new().await;
    let (pass, home) = (world.admit(), world.folder.path());
    let git = |arguments: &'static str| {
        let words: Vec<&str> = arguments.split(' ').collect();
        let done = Command::new(program("git"))
            .args(["-c", "user.name=a", "-c", "user.email=a@b.test"])
            .args(words)
            .env("HOME", home)
            .current_dir(home)
            .output()
            .unwrap();
        assert!(done.status.success(), "{arguments}: {done:?}");
    };
    git("init -q work");
    git("-C work commit -q --allow-empty -m first");
    git("clone -q --bare work served.git");
    git("-C served.git update-server-info");
    let url = format!("http://site.test:{}/served.git", world.origin.port);
    let output = run(&pass, program("git"), &["clone", "-q", &url, "copy"], home).await;
    assert!(output.status.success(), "{}", output_text(&output));
    git("-C copy rev-parse --verify -q HEAD");

    let output = run(&pass, program("git"), &["ls-remote", "https://forge.test/a.git"], home).await;
    assert!(output_text(&output).contains("403"), "{}", output_text(&output));
    assert_eq!(pass.refused().list[0].to_string().split(": ").next(), Some("forge.test:443"));
}

/// pip asks by the library `requests`, which it brings along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pip_and_npm_reach_a_registry() {
    let world = World::new().await;
    let (pass, home) = (world.admit(), world.folder.path());
    let site = format!("http://site.test:{}", world.origin.port);
    std::fs::create_dir_all(home.join("simple/pkg")).unwrap();
    std::fs::write(home.join("pkg-1.0-py3-none-any.whl"), wheel(home)).unwrap();
    // The origin gives files, no folders: the page stands in a file of the name that pip asks for.
    std::fs::remove_dir(home.join("simple/pkg")).unwrap();
    std::fs::write(home.join("simple/pkg"), "<a href=\"/pkg-1.0-py3-none-any.whl\">pkg</a>")
        .unwrap();
    let arguments = "-m pip download --isolated --no-deps --no-cache-dir --disable-pip-version-check --retries 0 \
        --trusted-host site.test -d got";
    let index = format!("{site}/simple/");
    let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
    arguments.extend(["--index-url", &index, "pkg"]);
    let output = run(&pass, python(), &arguments, home).await;
    assert!(home.join("got/pkg-1.0-py3-none-any.whl").exists(), "{}", output_text(&output));

    let package = r#"{"name":"thing","dist-tags":{"latest":"2.0.0"},"versions":{"2.0.0":{"name":"thing","version":"2.0.0"}}}"#;
    std::fs::write(home.join("thing"), package).unwrap();
    let registry = format!("--registry={site}/");
    let npm =
        ["view", "thing", "version", &registry, "--fetch-retries=0", "--update-notifier=false"];
    let output = run(&pass, program("npm"), &npm, home).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "2.0.0", "{}", output_text(&output));
    let npm = [
        "view",
        "thing",
        "--registry=https://registry.test/",
        "--fetch-retries=0",
        "--update-notifier=false",
    ];
    assert!(!run(&pass, program("npm"), &npm, home).await.status.success());
    assert!(
        pass.refused().list.iter().any(|one| one.host == "registry.test"),
        "{:?}",
        pass.refused()
    );
}

/// The smallest wheel that pip takes.
fn wheel(folder: &Path) -> Vec<u8> {
    let script = "import zipfile\n\
        z = zipfile.ZipFile('w.whl', 'w')\n\
        z.writestr('pkg-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: pkg\\nVersion: 1.0\\n')\n\
        z.writestr('pkg-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        z.writestr('pkg-1.0.dist-info/RECORD', '')\n\
        z.close()";
    let made = Command::new(python()).args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    std::fs::read(folder.join("w.whl")).unwrap()
}
