//! What holds on every host: looking up, reading, listing, removing, renaming.

use std::io::ErrorKind;

use haft_host::{FileKind, ListHow};
use haft_types::{EntryKind, Follow, HostPath, Style};

use super::{anyhow, worlds};

#[tokio::test]
async fn links_and_dots_are_resolved_to_the_real_path() {
    for w in worlds() {
        w.file("a/b/file", "content");
        w.link("a/up", "../a/./b");
        w.link("short", "a/up/file");
        w.link("whole", &w.path("a/b").text());
        w.link("slash", "a/b/");
        w.link("to-self", ".");
        for name in ["a/b/file", "a/up/file", "short", "whole/file", "slash/file", "a/../a/b/file"]
        {
            let at = w.at(name).await;
            assert_eq!(at.real, w.path("a/b/file"), "{} {name}", w.name);
            assert_eq!((at.kind, at.size(), at.names), (FileKind::FILE, 7, 1), "{}", w.name);
        }
        for (name, real) in [("whole", "a/b"), ("slash", "a/b"), ("to-self", "."), ("a/up", "a/b")]
        {
            let at = w.at(name).await;
            assert_eq!((at.real, at.kind), (w.path(real), FileKind::FOLDER), "{} {name}", w.name);
        }
        let link = w.own("short").await;
        assert_eq!(link.kind, FileKind::Entry(EntryKind::Link), "{}", w.name);
        assert_eq!(link.real, w.path("short"));
    }
}

#[tokio::test]
async fn a_link_that_climbs_out_of_everything_ends_at_the_root() {
    for w in worlds() {
        w.link("far", "../../../../../../../../..");
        let at = w.at("far").await;
        assert_eq!((at.real.text().as_ref(), at.kind), ("/", FileKind::FOLDER), "{}", w.name);
        let root = w.fs().locate(&HostPath::root(Style::Posix), Follow::Yes).await.unwrap();
        assert_eq!(root.kind, FileKind::FOLDER);
        assert!(w.fs().remove(&root).await.is_err());
        w.fs().list(&root, ListHow { limit: 10, stat: true }).await.unwrap();
    }
}

#[tokio::test]
async fn missing_is_no_error_and_keeps_the_names() {
    for w in worlds() {
        w.folder("there");
        w.link("dangling", "there/new");
        w.link("lost", "nowhere/../there/x");
        for (name, real) in
            [("no", "no"), ("there/x/y/z", "there/x/y/z"), ("dangling", "there/new")]
        {
            let at = w.at(name).await;
            assert_eq!((at.kind, at.names, at.stamp), (FileKind::Missing, 0, None), "{}", w.name);
            assert_eq!(at.real, w.path(real), "{}", w.name);
        }
        let kind = w.locate("lost").await.unwrap_err().kind();
        assert_eq!(kind, ErrorKind::NotFound, "{}", w.name);
        assert_eq!(w.read("no").await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[tokio::test]
async fn loops_and_files_on_the_way_are_errors_that_name_the_place() {
    for w in worlds() {
        w.link("a", "b");
        w.link("b", "a");
        w.link("self", "self");
        w.file("file", "x");
        for name in ["a", "b/c", "self"] {
            let error = w.locate(name).await.unwrap_err().to_string();
            assert!(error.contains("symbolic links"), "{} {error}", w.name);
        }
        let error = w.locate("file/below").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory, "{}", w.name);
        assert!(error.to_string().contains("file is not a folder"), "{error}");
        let mut name = "last".to_owned();
        w.file(&name, "end");
        for n in 0..40 {
            w.link(&format!("l{n}"), &name);
            name = format!("l{n}");
        }
        assert_eq!(w.read("l39").await.unwrap(), "end", "{}", w.name);
        w.link("l40", "l39");
        assert!(w.read("l40").await.is_err(), "{}", w.name);
    }
}

#[tokio::test]
async fn names_need_not_be_text() {
    for w in worlds() {
        let path = w.root.join_bytes(b"caf\xe9\n.txt").unwrap();
        let at = w.fs().locate(&path, Follow::Yes).await.unwrap();
        w.fs().write(&at, "x".into(), anyhow()).await.unwrap();
        let root = w.at(".").await;
        let listing = w.fs().list(&root, ListHow { limit: 9, stat: true }).await.unwrap();
        assert_eq!(listing.entries[0].name, b"caf\xe9\n.txt", "{}", w.name);
        assert_eq!(listing.entries[0].stat.unwrap().0, 1);
        let at = w.fs().child(&root, b"caf\xe9\n.txt", Follow::Yes).await.unwrap();
        assert_eq!(at.real, path);
        assert_eq!(w.fs().read(&at, 0, 10).await.unwrap(), "x");
    }
}

#[tokio::test]
async fn children_are_single_names_of_folders() {
    for w in worlds() {
        w.file("a/file", "x");
        w.link("a/out", "../other");
        w.file("other", "y");
        let folder = w.at("a").await;
        for bad in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0b"] {
            let error = w.fs().child(&folder, bad, Follow::Yes).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{} {bad:?}", w.name);
        }
        let out = w.fs().child(&folder, b"out", Follow::Yes).await.unwrap();
        assert_eq!(out.real, w.path("other"), "{}", w.name);
        let link = w.fs().child(&folder, b"out", Follow::No).await.unwrap();
        assert_eq!((link.real, link.kind), (w.path("a/out"), FileKind::Entry(EntryKind::Link)));
        let none = w.fs().child(&folder, b"none", Follow::Yes).await.unwrap();
        assert_eq!((none.real, none.kind), (w.path("a/none"), FileKind::Missing));
        let file = w.at("a/file").await;
        let error = w.fs().child(&file, b"x", Follow::Yes).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotADirectory, "{}", w.name);
    }
}

#[tokio::test]
async fn reads_are_windows_and_see_one_file() {
    for w in worlds() {
        let text: Vec<String> = (0..40_000).map(|n| format!("{n:05}\n")).collect();
        let text = text.concat();
        w.file("big", &text);
        let at = w.at("big").await;
        for (offset, len) in [(0, 10), (5, 70_000), (60_000, 200_000), (239_995, 100), (999_999, 5)]
        {
            let got = w.fs().read(&at, offset, len).await.unwrap();
            let start = usize::try_from(offset).unwrap().min(text.len());
            let end = (start + len).min(text.len());
            assert!(got == text.as_bytes()[start..end], "{} {offset} {len}", w.name);
        }
        assert_eq!(w.fs().read(&at, u64::MAX, 5).await.unwrap(), "");
        assert_eq!(w.fs().read(&at, 0, 0).await.unwrap(), "");
        w.write("big", "new", anyhow()).await.unwrap();
        assert_eq!(w.fs().read(&at, 0, 5).await.unwrap(), "00000", "{}", w.name);
        assert_eq!(w.read("big").await.unwrap(), "new", "{}", w.name);
    }
}

#[tokio::test]
async fn a_file_that_was_replaced_before_its_first_read_is_told() {
    for w in worlds() {
        w.file("a", "old");
        let at = w.at("a").await;
        // Both files live at once, so that they cannot share an inode.
        w.file("b", "new");
        let (old, new) = (w.own("a").await, w.own("b").await);
        let free = w.own("c").await;
        w.fs().rename(&old, &free).await.unwrap();
        let again = w.own("a").await;
        w.fs().rename(&new, &again).await.unwrap();
        let error = w.fs().read(&at, 0, 5).await.unwrap_err().to_string();
        assert!(error.contains("was replaced"), "{} {error}", w.name);
        assert!(w.fs().remove(&at).await.is_err(), "{}", w.name);
        assert_eq!(w.read("a").await.unwrap(), "new");
    }
}

#[tokio::test]
async fn what_is_no_regular_file_is_refused_at_once() {
    for w in worlds() {
        w.fifo("pipe");
        w.folder("folder");
        for (name, kind) in [("pipe", "a named pipe"), ("folder", "a folder")] {
            let work = async {
                let read = w.read(name).await.unwrap_err().to_string();
                let write = w.write(name, "x", anyhow()).await.unwrap_err().to_string();
                (read, write)
            };
            let time = std::time::Duration::from_secs(2);
            let (read, write) = tokio::time::timeout(time, work).await.unwrap();
            assert!(read.contains(kind) && write.contains(kind), "{} {read} {write}", w.name);
        }
        let error = w.fs().list(&w.at("pipe").await, ListHow { limit: 1, stat: false }).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NotADirectory, "{}", w.name);
        assert_eq!(w.names(".").await, ["folder", "pipe"]);
    }
}

#[tokio::test]
async fn lists_keep_the_smallest_names_and_count_all() {
    for w in worlds() {
        for n in 0..50 {
            w.file(&format!("many/f{:02}", (n * 37) % 50), "x");
        }
        let at = w.at("many").await;
        let listing = w.fs().list(&at, ListHow { limit: 3, stat: false }).await.unwrap();
        let names: Vec<&[u8]> = listing.entries.iter().map(|e| &*e.name).collect();
        assert_eq!((names, listing.total), (vec![&b"f00"[..], b"f01", b"f02"], 50), "{}", w.name);
        let none = w.fs().list(&at, ListHow { limit: 0, stat: false }).await.unwrap();
        assert_eq!((none.entries.len(), none.total), (0, 50));
        w.folder("links/real");
        w.link("links/1-folder", "real");
        w.link("links/2-broken", "nowhere");
        w.link("links/3-loop", "3-loop");
        let at = w.at("links").await;
        let got = w.fs().list(&at, ListHow { limit: 9, stat: true }).await.unwrap().entries;
        let seen: Vec<_> = got.iter().map(|e| (e.kind, e.to_folder, e.broken)).collect();
        let link = EntryKind::Link;
        let folder = (EntryKind::Folder, false, false);
        assert_eq!(seen, [(link, true, false), (link, false, true), (link, false, true), folder]);
        assert_eq!(got[1].target.as_deref(), Some(&b"nowhere"[..]), "{}", w.name);
    }
}

#[tokio::test]
async fn removing_takes_files_links_and_empty_folders() {
    for w in worlds() {
        w.file("full/file", "x");
        w.link("link", "full/file");
        w.folder("empty");
        w.fs().remove(&w.own("link").await).await.unwrap();
        assert_eq!(w.read("full/file").await.unwrap(), "x", "{}", w.name);
        w.fs().remove(&w.at("empty").await).await.unwrap();
        let full = w.at("full").await;
        let error = w.fs().remove(&full).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{}", w.name);
        let file = w.at("full/file").await;
        w.fs().remove(&file).await.unwrap();
        assert_eq!(w.fs().remove(&file).await.unwrap_err().kind(), ErrorKind::NotFound);
        w.fs().remove(&full).await.unwrap();
        assert!(w.names(".").await.is_empty(), "{}", w.name);
        let error = w.fs().remove(&w.at("none").await).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{}", w.name);
    }
}

#[tokio::test]
async fn renaming_never_overwrites() {
    for w in worlds() {
        w.file("a", "1");
        w.file("dir/in", "2");
        let (a, free) = (w.at("a").await, w.at("dir/b").await);
        w.file("dir/b", "late");
        let error = w.fs().rename(&a, &free).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{}", w.name);
        let error = w.fs().rename(&a, &w.at("dir/in").await).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{}", w.name);
        let error = w.fs().rename(&a, &w.at("no/where").await).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{}", w.name);
        w.fs().rename(&a, &w.at("dir/c").await).await.unwrap();
        assert_eq!(w.read("dir/c").await.unwrap(), "1", "{}", w.name);
        let dir = w.at("dir").await;
        assert!(w.fs().rename(&dir, &w.at("dir/self").await).await.is_err(), "{}", w.name);
        w.fs().rename(&dir, &w.at("moved").await).await.unwrap();
        assert_eq!(w.names(".").await, ["moved"]);
        assert_eq!(w.names("moved").await, ["b", "c", "in"], "{}", w.name);
    }
}

#[tokio::test]
async fn a_handle_of_another_host_is_refused() {
    let (one, two) = (worlds().remove(0), worlds().pop().unwrap());
    one.file("a", "x");
    two.file("a", "x");
    for (at, other) in [(one.at("a").await, &two), (two.at("a").await, &one)] {
        let error = other.fs().read(&at, 0, 1).await.unwrap_err().to_string();
        assert!(error.contains("another host"), "{error}");
    }
}
