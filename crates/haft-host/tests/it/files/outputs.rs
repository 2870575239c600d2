//! Spools and kept outputs.

use haft_host::{Outs, Spool, SpoolLimits, Spooled};
use haft_testkit::machine::peak;
use haft_types::{CallId, Follow};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

async fn spool(outs: &Outs, limits: SpoolLimits, pieces: &[&[u8]]) -> Spooled {
    let mut spool = Spool::new(limits, Some(outs.create(&CallId::nth(1)).unwrap()));
    for piece in pieces {
        spool.push(piece).await;
    }
    spool.finish().await
}

async fn kept(outs: &Outs, call: &CallId) -> Option<Vec<u8>> {
    let (host, path) = outs.open(call)?;
    let at = host.fs().locate(&path, Follow::Yes).await.unwrap();
    Some(host.fs().read(&at, 0, usize::MAX).await.unwrap().to_vec())
}

/// What must come out, however the bytes are cut.
fn model(data: &[u8], limits: SpoolLimits) -> (Spooled, Option<Vec<u8>>) {
    let head = data.len().min(limits.head);
    let tail = (data.len() - head).min(limits.tail);
    let half = usize::try_from(limits.file_cap / 2).unwrap();
    let mut spooled = Spooled {
        head: data[..head].to_vec().into(),
        tail: data[data.len() - tail..].to_vec().into(),
        bytes: data.len() as u64,
        lines: data.split_inclusive(|b| *b == b'\n').count() as u64,
        ..Spooled::default()
    };
    if head + tail == data.len() && data.len() < 1 << 20 {
        return (spooled, None);
    }
    spooled.file = Some(CallId::nth(1));
    if data.len() <= 2 * half {
        return (spooled, Some(data.to_vec()));
    }
    let lost = data.len() - 2 * half;
    spooled.lost = Some(half as u64..(data.len() - half) as u64);
    let mark = format!("\n[haft: {lost} bytes are left out here]\n");
    let file = [&data[..half], mark.as_bytes(), &data[data.len() - half..]].concat();
    (spooled, Some(file))
}

fn outputs() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..3000)
}

fn limits() -> impl Strategy<Value = SpoolLimits> {
    (0_usize..300, 0_usize..300, 2_u64..2500).prop_map(|(head, tail, file_cap)| SpoolLimits {
        head,
        tail,
        file_cap,
    })
}

#[test]
fn what_is_drawn_fits_and_overflows() {
    let mut runner = TestRunner::deterministic();
    let mut seen = [0; 3];
    for _ in 0..300 {
        let (data, limits) = (outputs(), limits()).new_tree(&mut runner).unwrap().current();
        let (spooled, _) = model(&data, limits);
        let way = usize::from(spooled.file.is_some()) + usize::from(spooled.lost.is_some());
        seen[way] += 1;
    }
    assert!(seen.iter().all(|count| *count > 5), "in memory, kept, kept in part: {seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn any_cutting_gives_the_same(
        data in outputs(),
        cuts in proptest::collection::vec(1_usize..700, 1..12),
        limits in limits(),
    ) {
        let mut pieces = Vec::new();
        let mut rest = &data[..];
        for cut in cuts.iter().cycle() {
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = later;
            if rest.is_empty() { break; }
        }
        let folder = tempfile::tempdir().unwrap();
        for outs in [Outs::in_folder(folder.path(), 1 << 20), Outs::in_memory(1 << 20)] {
            let got = block_on(spool(&outs, limits, &pieces));
            let file = block_on(kept(&outs, &CallId::nth(1)));
            let (wanted, wanted_file) = model(&data, limits);
            prop_assert_eq!(got, wanted);
            prop_assert_eq!(outs.used(), file.as_ref().map_or(0, |f| f.len() as u64));
            prop_assert_eq!(file, wanted_file);
        }
    }
}

#[test]
fn outputs_of_many_chunks_go_round() {
    let data: Vec<u8> = (0..7_000_000_u32).map(|n| (n % 251) as u8).collect();
    for file_cap in [10 << 20, 6 << 20, 3_000_001, 2 << 20, 1000] {
        let limits = SpoolLimits { head: 100, tail: 100, file_cap };
        let folder = tempfile::tempdir().unwrap();
        for outs in [Outs::in_folder(folder.path(), 1 << 30), Outs::in_memory(1 << 30)] {
            let got = block_on(async {
                let pieces: Vec<&[u8]> = data.chunks(60_000).collect();
                spool(&outs, limits, &pieces).await
            });
            let (wanted, file) = model(&data, limits);
            assert_eq!(got, wanted);
            assert!(block_on(kept(&outs, &CallId::nth(1))) == file, "{file_cap}");
            if let Some(folder) = outs.folder() {
                assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
            }
        }
    }
}

#[test]
fn a_full_session_ends_the_file_and_not_the_output() {
    let data = vec![b'x'; 5 << 20];
    let limits = SpoolLimits { head: 10, tail: 10, file_cap: 1 << 30 };
    let folder = tempfile::tempdir().unwrap();
    for outs in [Outs::in_folder(folder.path(), 3 << 20), Outs::in_memory(3 << 20)] {
        let got = block_on(async {
            let pieces: Vec<&[u8]> = data.chunks(1 << 16).collect();
            spool(&outs, limits, &pieces).await
        });
        assert_eq!((got.bytes, got.head.len(), got.tail.len()), (5 << 20, 10, 10));
        assert_eq!(got.lost, Some(3 << 20..5 << 20));
        assert!(got.fault.as_ref().unwrap().contains("of at most 3145728 bytes"), "{got:?}");
        let file = block_on(kept(&outs, &CallId::nth(1))).unwrap();
        assert!(file.starts_with(&data[..3 << 20]));
        assert!(String::from_utf8_lossy(&file[3 << 20..]).contains("the rest was not kept"));
    }
}

#[test]
fn a_push_that_is_dropped_leaves_no_silent_gap() {
    let data: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    let folder = tempfile::tempdir().unwrap();
    let outs = Outs::in_folder(folder.path(), 1 << 30);
    let got = block_on(async {
        let limits = SpoolLimits { file_cap: 1 << 30, ..SpoolLimits::default() };
        let mut spool = Spool::new(limits, Some(outs.create(&CallId::nth(1)).unwrap()));
        let mut push = Box::pin(spool.push(&data));
        let pending = futures::poll!(&mut push).is_pending();
        drop(push);
        spool.push(b"after").await;
        (pending, spool.finish().await)
    });
    let (pending, got) = got;
    assert_eq!(got.bytes, 5_000_005);
    let file = block_on(kept(&outs, &CallId::nth(1))).unwrap();
    let lost = got.lost.map_or(5_000_005, |lost| lost.start);
    let lost = usize::try_from(lost).unwrap();
    assert!(file[..lost.min(5_000_000)] == data[..lost.min(5_000_000)]);
    assert_eq!(pending, got.fault.is_some());
}

#[test]
fn a_folder_that_cannot_be_made_costs_only_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "").unwrap();
    let outs = Outs::in_folder(folder.path().join("taken/out"), 1 << 20);
    let limits = SpoolLimits { head: 2, tail: 2, file_cap: 1000 };
    let got = block_on(spool(&outs, limits, &[b"abcdefgh\n"]));
    assert_eq!((&*got.head, &*got.tail), (&b"ab"[..], &b"h\n"[..]));
    assert_eq!((got.file, got.lost), (None, Some(0..9)));
    assert!(got.fault.unwrap().contains("Not a directory"));
}

#[test]
fn a_running_output_can_be_read() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        for outs in [Outs::in_folder(folder.path(), 1 << 20), Outs::in_memory(1 << 20)] {
            let limits = SpoolLimits { head: 4, tail: 4, file_cap: 1 << 20 };
            let mut spool = Spool::new(limits, Some(outs.create(&CallId::nth(1)).unwrap()));
            spool.push(b"first ").await;
            assert!(outs.open(&CallId::nth(1)).is_none());
            spool.flush().await;
            assert_eq!(kept(&outs, &CallId::nth(1)).await.unwrap(), b"first ");
            spool.push(b"second").await;
            assert_eq!(spool.finish().await.file, Some(CallId::nth(1)));
            assert_eq!(kept(&outs, &CallId::nth(1)).await.unwrap(), b"first second");
        }
    });
}

#[test]
fn endless_output_takes_fixed_memory() {
    let folder = tempfile::tempdir().unwrap();
    let outs = Outs::in_folder(folder.path(), 1 << 30);
    let piece = b"y\n".repeat(32 * 1024);
    let (before, start) = (peak(), std::time::Instant::now());
    let got = block_on(async {
        let limits = SpoolLimits { file_cap: 64 << 20, ..SpoolLimits::default() };
        let mut spool = Spool::new(limits, Some(outs.create(&CallId::nth(1)).unwrap()));
        for _ in 0..=1_000_000_000 / piece.len() {
            spool.push(&piece).await;
        }
        spool.finish().await
    });
    println!("{} bytes in {:?}, {} more", got.bytes, start.elapsed(), peak() - before);
    assert!(got.bytes >= 1_000_000_000 && got.lines == got.bytes / 2);
    assert!(outs.used() <= (64 << 20) + 100);
    assert!(peak() - before < 32 << 20, "{} bytes more", peak() - before);
}
