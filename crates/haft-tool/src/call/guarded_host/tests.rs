//! What is hidden is worked out once.

use std::sync::atomic::{AtomicUsize, Ordering};

use haft_host::Memory;
use haft_types::Plan;

use super::*;

fn at(text: &str) -> HostPath {
    HostPath::new(text.as_bytes(), Style::Posix).unwrap()
}

#[tokio::test]
async fn what_is_hidden_is_worked_out_once_for_each_declared_path() {
    let names: Vec<String> = (0..50).map(|n| format!("/w/f/{n}")).collect();
    let host = Arc::new(Memory::with_files(names.iter().map(|name| (&**name, "x"))).unwrap());
    let place = Place {
        host: "here".into(),
        cwd: at("/w"),
        roots: vec![at("/w")],
        read_roots: Vec::new(),
        home: at("/h"),
        temp: at("/t"),
    };
    let effects = Plan::new(&place, "Looking").reads(at("/w/lost")).reads(at("/w/f")).effects;
    let mut declared = Vec::new();
    for effect in effects {
        let found = host.fs().locate(effect.path().unwrap(), Follow::Yes).await.unwrap();
        declared.push(Declared { effect, located: Some(Ok(found)), hides: OnceLock::new() });
    }
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let hidden: Hidden = Arc::new(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Arc::new(|path: &HostPath| path.text().ends_with('7'))
    });
    let guarded = Guarded {
        inner: host,
        declared,
        visible: Arc::new(|_, _| true),
        hidden,
        everywhere: OnceLock::new(),
        forbidden: Arc::new(|_| true),
        place: Arc::new(place),
        most: Access::Observe,
        looks: None,
        confine: None,
        network: None,
        session_network: Arc::default(),
        tried: Arc::default(),
        variables: Vec::new(),
        events: None,
        begun: OnceCell::new(),
        keeper: None,
    };
    for name in &names {
        let found = guarded.locate(&at(name), Follow::Yes).await;
        assert_eq!(found.is_ok(), !name.ends_with('7'), "{name}: {found:?}");
    }
    let folder = guarded.locate(&at("/w/f"), Follow::Yes).await.unwrap();
    for _ in 0..3 {
        let listing = guarded.list(&folder, ListHow { limit: 100, stat: false }).await.unwrap();
        assert_eq!((listing.entries.len(), listing.denied), (45, 5));
    }
    assert_eq!(made.load(Ordering::Relaxed), 2, "one for the host, one for the folder");
}

#[test]
fn words_are_quoted_as_a_shell_reads_them() {
    let text = |words: &[&[u8]]| {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        command_text(&words, Style::Posix)
    };
    assert_eq!(text(&[b"/t/a-b.py"]).as_deref(), Some("/t/a-b.py"));
    assert_eq!(text(&[b"/t/it's; rm", b""]).as_deref(), Some("'/t/it'\\''s; rm' ''"));
    assert_eq!(text(&[b"/t/\xff"]).as_deref(), Some("'bytes:/t/%FF'"));
    assert_eq!(text(&[b"t", b"\xff"]), None);
}
