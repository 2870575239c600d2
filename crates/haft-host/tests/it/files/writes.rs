//! What holds of writes on every host.

use std::io::ErrorKind;

use haft_host::{Expect, WriteHow};
use haft_types::Follow;

use super::{anyhow, worlds};

fn expecting(expect: Expect) -> WriteHow {
    WriteHow { expect, ..WriteHow::default() }
}

#[tokio::test]
async fn round_trips_leave_nothing_else() {
    for w in worlds() {
        let data = "x\n".repeat(300_000);
        let written = w.write("a", &data, anyhow()).await.unwrap();
        assert!(written.made.is_empty());
        assert_eq!((written.at.real, written.at.names), (w.path("a"), 1), "{}", w.name);
        assert!(w.read("a").await.unwrap() == data, "{}", w.name);
        w.write("a", "", anyhow()).await.unwrap();
        assert_eq!(w.read("a").await.unwrap(), "", "{}", w.name);
        assert_eq!(w.names(".").await, ["a"], "{}", w.name);
    }
}

#[tokio::test]
async fn folders_above_are_made_when_wanted_and_told() {
    for w in worlds() {
        let error = w.write("x/y/z", "1", WriteHow::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{}", w.name);
        assert!(w.names(".").await.is_empty(), "{}", w.name);
        let made = w.write("x/y/z", "1", anyhow()).await.unwrap().made;
        assert_eq!(made, [w.path("x"), w.path("x/y")], "{}", w.name);
        assert_eq!(w.read("x/y/z").await.unwrap(), "1");
        // Located before another made the folders.
        let late = w.at("p/q/r").await;
        w.file("p/q/other", "2");
        let made = w.fs().write(&late, "3".into(), anyhow()).await.unwrap().made;
        assert_eq!(w.read("p/q/r").await.unwrap(), "3", "{}", w.name);
        drop(made);
        assert_eq!(w.names("p/q").await, ["other", "r"], "{}", w.name);
    }
}

#[tokio::test]
async fn expectations_are_kept() {
    for w in worlds() {
        let free = w.at("a").await;
        w.file("a", "theirs");
        let error = w.fs().write(&free, "x".into(), expecting(Expect::Absent)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{}", w.name);
        assert_eq!(w.read("a").await.unwrap(), "theirs", "{}", w.name);

        let seen = w.at("a").await;
        let stamp = seen.stamp.unwrap();
        let new = w.fs().write(&seen, "1".into(), expecting(Expect::Stamp(stamp))).await.unwrap();
        assert_ne!(new.at.stamp, seen.stamp, "{}", w.name);
        let error = w.fs().write(&seen, "2".into(), expecting(Expect::Stamp(stamp))).await;
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{}", w.name);
        assert!(error.to_string().contains("changed since it was read"), "{error}");
        let next = expecting(Expect::Stamp(new.at.stamp.unwrap()));
        w.fs().write(&new.at, "3".into(), next).await.unwrap();
        assert_eq!(w.read("a").await.unwrap(), "3", "{}", w.name);

        let at = w.at("a").await;
        w.fs().remove(&at).await.unwrap();
        let how = expecting(Expect::Stamp(at.stamp.unwrap()));
        let error = w.fs().write(&at, "4".into(), how).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{}", w.name);
        w.fs().write(&w.at("a").await, "5".into(), expecting(Expect::Absent)).await.unwrap();
        assert_eq!((w.read("a").await.unwrap().as_str(), w.names(".").await.len()), ("5", 1));
    }
}

#[tokio::test]
async fn links_stay_links_and_second_names_keep_the_old_content() {
    for w in worlds() {
        w.file("dir/file", "old");
        w.link("link", "dir/file");
        w.link("dangling", "dir/new");
        w.write("link", "new", anyhow()).await.unwrap();
        w.write("dangling", "made", anyhow()).await.unwrap();
        assert_eq!(w.own("link").await.kind, w.own("dangling").await.kind);
        assert_eq!(w.read("dir/file").await.unwrap(), "new", "{}", w.name);
        assert_eq!(w.read("dir/new").await.unwrap(), "made", "{}", w.name);
        let link = w.own("link").await;
        let error = w.fs().write(&link, "x".into(), anyhow()).await.unwrap_err().to_string();
        assert!(error.contains("is a link"), "{} {error}", w.name);

        w.second_name("dir/file", "second");
        let at = w.at("dir/file").await;
        assert_eq!(at.names, 2, "{}", w.name);
        let at = w.fs().write(&at, "newer".into(), anyhow()).await.unwrap().at;
        assert_eq!(at.names, 1, "{}", w.name);
        assert_eq!(w.read("second").await.unwrap(), "new", "{}", w.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_writers_one_creates_and_readers_see_whole_files() {
    for w in worlds() {
        let free = w.at("one").await;
        let how = expecting(Expect::Absent);
        let tries = (0..20).map(|n| w.fs().write(&free, format!("{n}").into(), how.clone()));
        let won = futures::future::join_all(tries).await;
        assert_eq!(won.iter().filter(|r| r.is_ok()).count(), 1, "{}", w.name);

        let text = |n: u8| char::from(b'a' + n).to_string().repeat(100_000);
        w.file("all", &text(0));
        let writes = (0..20_u8).map(|n| {
            let w = &w;
            async move {
                let at = w.at("all").await;
                w.fs().write(&at, text(n).into(), anyhow()).await.unwrap();
            }
        });
        let reads = (0..40).map(|_| async {
            let at = w.fs().locate(&w.path("all"), Follow::Yes).await.unwrap();
            match w.fs().read(&at, 0, 200_000).await {
                Ok(data) => assert!(data.len() == 100_000 && data.iter().all(|b| *b == data[0])),
                Err(error) => assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}"),
            }
        });
        futures::future::join(futures::future::join_all(writes), futures::future::join_all(reads))
            .await;
        assert_eq!(w.names(".").await, ["all", "one"], "{}", w.name);
    }
}

#[tokio::test]
async fn a_dropped_write_leaves_a_whole_file() {
    for w in worlds() {
        w.file("a", "old");
        let at = w.at("a").await;
        let mut write = w.fs().write(&at, "n".repeat(1_000_000).into(), anyhow());
        let _ = futures::poll!(&mut write);
        drop(write);
        // The write that waits behind it is the proof that nothing hangs.
        w.write("b", "x", anyhow()).await.unwrap();
        let content = w.read("a").await.unwrap();
        assert!(content == "old" || content == "n".repeat(1_000_000), "{}", w.name);
    }
}
