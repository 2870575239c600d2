//! Instructions of a project: found from its root down, followed into imports, never outside.

use haft_agent::{ContextFile, context_files};
use haft_host::Memory;
use haft_types::{EntryKind, HostPath};

use crate::world::path;

async fn read(host: &Memory, cwd: &str) -> Vec<ContextFile> {
    context_files(host, &path("/p"), &path(cwd), &|_| true).await.files
}

async fn shown(host: &Memory, cwd: &str) -> Vec<(String, String)> {
    read(host, cwd).await.into_iter().map(|file| (file.path, file.text)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn files_are_read_from_the_root_down_to_the_folder() {
    let host = Memory::with_files([
        ("/AGENTS.md", "above the project"),
        ("/p/AGENTS.md", "root"),
        ("/p/CLAUDE.md", "root, other"),
        ("/p/a/CLAUDE.md", "in a"),
        ("/p/a/b/AGENTS.md", "in b"),
        ("/p/a/b/c/AGENTS.md", "below"),
        ("/p/x/AGENTS.md", "beside"),
    ])
    .unwrap();
    let expected = [
        ("AGENTS.md", "root"),
        ("CLAUDE.md", "root, other"),
        ("a/CLAUDE.md", "in a"),
        ("a/b/AGENTS.md", "in b"),
    ];
    assert_eq!(shown(&host, "/p/a/b").await, pairs(&expected));
    assert_eq!(shown(&host, "/p").await, pairs(&expected[..2]));
    assert_eq!(shown(&host, "/elsewhere").await, []);
}

#[tokio::test]
async fn the_same_text_or_the_same_file_is_taken_once() {
    let host = Memory::with_files([("/p/AGENTS.md", "same"), ("/p/a/AGENTS.md", "other")]).unwrap();
    host.add_link("/p/CLAUDE.md", "AGENTS.md").unwrap();
    host.add_file("/p/a/CLAUDE.md", "same").unwrap();
    let expected = [("AGENTS.md", "same"), ("a/AGENTS.md", "other")];
    assert_eq!(shown(&host, "/p/a").await, pairs(&expected));
}

#[tokio::test]
async fn imports_come_behind_their_file_each_once_and_circles_end() {
    let root = "top\n@docs/one.md\n  @two.md\n```\n@fenced.md\n```\nmail me@x.org @not.md\n@";
    let host = Memory::with_files([
        ("/p/AGENTS.md", root),
        ("/p/docs/one.md", "one\n@../AGENTS.md\n@sub/three.md\n@missing.md"),
        ("/p/docs/sub/three.md", "three\n@../one.md"),
        ("/p/two.md", "two\n@docs/one.md"),
        ("/p/fenced.md", "fenced"),
        ("/p/not.md", "not alone"),
    ])
    .unwrap();
    let found: Vec<String> = read(&host, "/p").await.into_iter().map(|file| file.path).collect();
    assert_eq!(found, ["AGENTS.md", "docs/one.md", "docs/sub/three.md", "two.md"]);
}

#[tokio::test]
async fn nothing_leads_outside() {
    let root =
        "@/etc/secret\n@../outside.md\n@~/secret\n@link.md\n@folder/in.md\n@sub/../../outside.md";
    let host = Memory::with_files([
        ("/p/AGENTS.md", root),
        ("/etc/secret", "SECRET"),
        ("/outside.md", "SECRET"),
        ("/home/user/secret", "SECRET"),
        ("/elsewhere/in.md", "SECRET"),
        ("/px/AGENTS.md", "SECRET"),
    ])
    .unwrap();
    host.add_link("/p/link.md", "/etc/secret").unwrap();
    host.add_link("/p/folder", "/elsewhere").unwrap();
    host.add_link("/p/CLAUDE.md", "/outside.md").unwrap();
    host.add_special("/p/sub/AGENTS.md", EntryKind::Fifo).unwrap();
    host.add_folder("/p/sub/CLAUDE.md").unwrap();
    assert_eq!(shown(&host, "/p/sub").await, pairs(&[("AGENTS.md", root)]));
}

#[tokio::test]
async fn a_project_that_is_reached_through_a_link_is_read_all_the_same() {
    let host =
        Memory::with_files([("/real/AGENTS.md", "root\n@docs/a.md"), ("/real/docs/a.md", "a")]);
    let host = host.unwrap();
    host.add_link("/p", "/real").unwrap();
    let expected = [("AGENTS.md", "root\n@docs/a.md"), ("docs/a.md", "a")];
    assert_eq!(shown(&host, "/p").await, pairs(&expected));
    let denied = |path: &HostPath| path.text() != "/p/docs/a.md";
    let found = context_files(&host, &path("/p"), &path("/p"), &denied).await.files;
    assert_eq!(found.len(), 1, "a rule on the written path counts");
}

#[tokio::test]
async fn what_may_not_be_read_is_left_out_under_every_name() {
    let files = [("/p/AGENTS.md", "root\n@alias.md\n@secret/a.md"), ("/p/secret/a.md", "SECRET")];
    let host = Memory::with_files(files).unwrap();
    host.add_link("/p/alias.md", "secret/a.md").unwrap();
    let denied = |path: &HostPath| !path.is_within(&self::path("/p/secret"));
    let found = context_files(&host, &path("/p"), &path("/p"), &denied).await.files;
    assert_eq!(found.len(), 1);
    let none = context_files(&host, &path("/p"), &path("/p"), &|_| false).await.files;
    assert_eq!(none, []);
}

#[tokio::test]
async fn a_large_file_is_cut_at_a_character_and_says_so() {
    let host = Memory::with_files([("/p/AGENTS.md", format!("x{}", "é".repeat(50_000)))]).unwrap();
    let found = read(&host, "/p").await;
    let (text, rest) = found[0].text.rsplit_once('\n').unwrap();
    assert_eq!(text.len(), (40 << 10) - 1, "the character at the cut is whole or gone");
    assert!(text.ends_with('é') && rest.contains("left out"), "{rest}");
}

#[tokio::test]
async fn however_much_there_is_it_stays_bounded_and_is_told_once() {
    let many = (0..3_000).map(|n| format!("@f{n}.md")).collect::<Vec<_>>().join("\n");
    let mut files = vec![("/p/AGENTS.md".to_owned(), many)];
    files.extend((0..3_000).map(|n| (format!("/p/f{n}.md"), format!("{n}"))));
    let host = Memory::with_files(files).unwrap();
    let found = read(&host, "/p").await;
    assert!(found.len() <= 51, "{}", found.len());
    assert!(found.last().unwrap().text.contains("no room"));

    let big = |n: usize| (format!("/p/b{n}.md"), format!("{n}{}", "x".repeat(39 << 10)));
    let mut files: Vec<_> = (0..20).map(big).collect();
    let imports = (0..20).map(|n| format!("@b{n}.md")).collect::<Vec<_>>().join("\n");
    files.push(("/p/AGENTS.md".to_owned(), imports));
    let host = Memory::with_files(files).unwrap();
    let found = read(&host, "/p").await;
    let total: usize = found.iter().map(|file| file.text.len()).sum();
    assert!(total < (120 << 10) + 300, "{total}");
    assert_eq!(found.iter().filter(|file| file.text.contains("no room")).count(), 1);
}

#[tokio::test]
async fn text_is_decoded_and_what_is_no_text_is_left_out() {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    let host = Memory::with_files([
        ("/p/AGENTS.md", utf16("Grüße\n@a.md\n")),
        ("/p/CLAUDE.md", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
        ("/p/a.md", utf16(&"é".repeat(30_000))),
    ]);
    let found = context_files(&host.unwrap(), &path("/p"), &path("/p"), &|_| true).await;
    let [first, cut] = &found.files[..] else { panic!("{found:?}") };
    assert_eq!(first.text, "Grüße\n@a.md\n");
    let (text, _) = cut.text.split_once('\n').unwrap();
    assert!(text.chars().all(|c| c == 'é') && text.chars().count() > 20_000);
    let [part, binary] = &found.left_out[..] else { panic!("{:?}", found.left_out) };
    assert!(part.starts_with("a.md is left out") && part.contains("beginning"), "{part}");
    assert!(binary.starts_with("CLAUDE.md is left out") && binary.contains("PNG"), "{binary}");
}

#[tokio::test]
async fn whatever_is_left_out_is_told_once_and_in_bounded_number() {
    let outside = (0..100).map(|n| format!("@/etc/{n}")).collect::<Vec<_>>().join("\n");
    let files = [("/p/AGENTS.md", "@secret.md\n@missing.md\n@/etc/x"), ("/p/secret.md", "no")];
    let host = Memory::with_files(files).unwrap();
    host.add_link("/p/CLAUDE.md", "/outside.md").unwrap();
    host.add_file("/outside.md", "SECRET").unwrap();
    host.add_special("/p/a/AGENTS.md", EntryKind::Fifo).unwrap();
    host.add_folder("/p/a/CLAUDE.md").unwrap();
    host.add_file("/p/a/b/AGENTS.md", outside).unwrap();
    let allowed = |path: &HostPath| !path.text().ends_with("secret.md");
    let told = context_files(&host, &path("/p"), &path("/p/a"), &allowed).await.left_out;
    let expected = [
        ("/etc/x", "out of the project"),
        ("secret.md", "a rule"),
        ("CLAUDE.md", "out of the project"),
        ("a/AGENTS.md", "no regular file"),
        ("a/CLAUDE.md", "no regular file"),
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (name, why)) in told.iter().zip(expected) {
        assert!(told.starts_with(&format!("{name} is left out")) && told.contains(why), "{told}");
    }
    let told = context_files(&host, &path("/p"), &path("/p/a/b"), &allowed).await.left_out;
    assert_eq!(told.len(), 20);
}
