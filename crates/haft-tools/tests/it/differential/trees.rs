//! The trees that are searched, the same in every run.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::{Path, PathBuf},
};

use haft_testkit::{machine, world::World};

/// Makes a tree in a folder.
type Maker = fn(&Path);

/// A made tree with the world that calls go to.
pub(super) struct Tree {
    pub(super) name: &'static str,
    pub(super) world: World,
    /// Its root on the disk.
    pub(super) root: PathBuf,
    /// Of how many queries one is asked here.
    pub(super) share: usize,
}

impl Tree {
    /// Every tree.
    pub(super) fn all() -> Vec<Self> {
        let makers: [(&'static str, Maker); 6] = [
            ("plain", plain),
            ("ignores", ignores),
            ("names", names),
            ("contents", contents),
            ("links", links),
            ("many", many),
        ];
        makers.into_iter().map(|(name, make)| Self::made(name, make)).collect()
    }

    /// One more, for what is said of lines and not of names.
    pub(super) fn of_long_lines() -> Self {
        Self::made("long", long)
    }

    fn made(name: &'static str, make: Maker) -> Self {
        let share = match name {
            "names" | "links" => 3,
            "many" => 8,
            "long" => 400,
            _ => 1,
        };
        let none: [(&str, &[u8]); 0] = [];
        let world = World::local(haft_tools::builtin(), none).unwrap();
        let root = PathBuf::from(world.root.as_str().unwrap());
        make(&root);
        Self { name, world, root, share }
    }
}

/// A small generator of numbers; the seed is in the code, so that every tree is always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

fn put(root: &Path, path: impl AsRef<[u8]>, text: impl AsRef<[u8]>) {
    let path = root.join(OsStr::from_bytes(path.as_ref()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What programs of several languages look like.
fn plain(root: &Path) {
    put(
        root,
        "src/main.rs",
        "mod lib;\n\nfn main() {\n    let needle = lib::needle(1);\n    println!(\"{needle}\");\n}\n",
    );
    put(
        root,
        "src/lib.rs",
        "/// A needle.\npub fn needle(n: u32) -> u32 {\n    n + 1\n}\n\n// TODO: Needle NEEDLE\nfn \
         other() {}\n",
    );
    put(root, "src/deep/er/mod.rs", "use super::*;\nfn a() {}\nfn b() {}\nfn needle_x() {}\n");
    put(root, "src/deep/a.py", "def needle():\n\treturn None\n\n\nclass Needle:\n\tpass\n");
    put(root, "web/app.ts", "export const needle = (x: number) => x;\nneedle(1); needle(2);\n");
    put(root, "web/app.tsx", "export default () => <p>needle</p>;\n");
    put(root, "web/style.css", "p { color: red; }\n");
    put(root, "README.md", "# Needle\n\nA needle in a haystack.  \nfoo(bar) a.b a+b [x]\n");
    put(root, "Makefile", "all:\n\techo needle\n");
    put(root, ".github/workflows/ci.yml", "name: needle\non: push\n");
    put(root, ".env", "NEEDLE=1\n");
    put(root, "empty", "");
    put(root, "notes.txt", "no end of line: needle");
    put(root, "LICENSE", "nothing here\n");
    let lines: Vec<String> =
        (0..60).map(|n| format!("line {n}{}", if n % 7 == 0 { " needle" } else { "" })).collect();
    put(root, "docs/long.txt", lines.join("\n"));
    fs::create_dir(root.join("hollow")).unwrap();
}

/// The files that the ignore files are about.
const IGNORED_OR_NOT: &[&str] = &[
    "a.log",
    "keep.log",
    "out/x.txt",
    "sub/out/x.txt",
    "build/x.txt",
    "sub/build/x.txt",
    "build2/build",
    "#odd",
    "tmp/a/x",
    "tmp/x",
    "tmp/a/b/x",
    "tmp/y",
    "a.tmp",
    "b.tmp",
    "excluded.txt",
    "sub/excluded.txt",
    "sub/a.log",
    "sub/b.log",
    "sub/keep.log",
    "sub/local",
    "sub/yes.txt",
    "sub/no.txt",
    "sub/in/yes.txt",
    "sub/deep/a.rs",
    "sub/deep/a.md",
    "sub/deep/er/b.rs",
    "other/c.log",
    "other/d.tmp",
    "repo/a.rs",
    "repo/b.txt",
    "broken/a.rs",
    "broken/b.md",
    "broken/c.txt",
    "empty/a.log",
    "empty/a.rs",
    "spaces/a b.txt",
    "spaces/trail",
    "spaces/kept ",
    "spaces/other",
    "ends/blank ",
    "ends/blank",
    "ends/other",
    "case/upper.txt",
    "case/UPPER.txt",
    "case/fooxbar",
    "case/foo/bar",
    "case/x.md",
    "case/xx.md",
    "case/a.rs",
    "case/c.rs",
    "case/q/z",
    "case/z/q",
    "case/d/e/f",
    "case/D/e",
    ".hidden/a.rs",
    ".hidden/.b",
    ".c.rs",
];

/// Ignore files of every kind, one inside the other.
fn ignores(root: &Path) {
    put(root, ".gitignore", "*.log\n!keep.log\n/out\nbuild/\n# a comment\n\\#odd\ntmp/**/x\n");
    put(root, ".ignore", "*.tmp\n!b.tmp\n");
    put(root, ".git/info/exclude", "excluded.txt\n");
    put(root, ".git/config", "needle\n");
    put(root, "sub/.gitignore", "!a.log\nlocal\n*.txt\n!/yes.txt\n");
    put(root, "sub/deep/.gitignore", "*\n!.gitignore\n!*.rs\n");
    put(root, "other/.ignore", "!*.log\n");
    put(root, "repo/.git/info/exclude", "*.rs\n");
    put(root, "repo/.git/HEAD", "needle\n");
    put(root, "broken/.gitignore", b"[z-a]\n*.rs\n\xff\xfe\n*.md\n");
    put(root, "empty/.gitignore", "");
    put(root, "spaces/.gitignore", "a b.txt\ntrail   \nkept\\ \n");
    put(root, "ends/.gitignore", "blank\\ \r\nother\r\n");
    put(root, "case/.gitignore", "UPPER.txt\nfoo*bar\n?.md\n[ab].rs\n**/z\nd/**\n");
    for path in IGNORED_OR_NOT {
        put(root, path, format!("needle {path}\nNeedle\n"));
    }
}

/// Names that are hard to sort, to write and to read.
fn names(root: &Path) {
    let names: [&[u8]; 26] = [
        b"a.b",
        b"a/x.rs",
        b"a-b/x.rs",
        b"a0",
        b"ab/x",
        b"A/x.rs",
        b"B.rs",
        b"b.rs",
        b"~x.rs",
        b" lead.rs",
        b"trail .rs",
        b"two  blanks/x.rs",
        b"-dash.rs",
        b"!bang.rs",
        b"[br].rs",
        b"{cur}.rs",
        b"star*.rs",
        b"q?.rs",
        b"back\\slash.rs",
        "\u{e9}t\u{e9}.rs".as_bytes(),
        "e\u{301}.rs".as_bytes(),
        "\u{65e5}\u{672c}/\u{8a9e}.rs".as_bytes(),
        "\u{1f600}.rs".as_bytes(),
        b"caf\xe9.rs",
        b"\xff\xfe/x.rs",
        b"new\nline.rs",
    ];
    for name in names {
        put(root, name, "needle\nother\nneedle needle\n");
    }
    put(root, b"a/.x.y/.z", "needle\n");
    put(root, b"a/a/a/a", "needle\n");
}

/// Contents that are no plain text.
fn contents(root: &Path) {
    let utf16 = |little: bool| {
        let units = "first\nneedle \u{e9}\nthird\r\nneedle".encode_utf16();
        let mark = Some(0xFEFF);
        let bytes = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
        mark.into_iter().chain(units).flat_map(bytes).collect::<Vec<u8>>()
    };
    put(root, "utf16le.txt", utf16(true));
    put(root, "utf16be.txt", utf16(false));
    put(root, "utf8-mark.txt", "\u{feff}needle first\nsecond needle\n");
    put(root, "mark-alone.txt", "\u{feff}");
    put(root, "crlf.txt", "needle\r\nother\r\nend needle\r\n");
    put(root, "cr.txt", "needle\rother\rneedle\r");
    put(root, "mixed.txt", "needle\r\nother\nneedle\n\r\nneedle");
    put(root, "latin1.txt", b"caf\xe9 needle\n\xff\xfe needle \xe9\nna\xefve\n");
    put(root, "early.bin", b"\0needle\nneedle\n");
    put(root, "late-in-line.bin", b"needle\nother\nneedle\0needle\nneedle\n");
    let filler = format!("{}\n", "a long line that fills ".repeat(18)).repeat(172).into_bytes();
    put(root, "late.bin", [&b"needle\n"[..], &filler, b"needle\n\0\nneedle\n"].concat());
    put(root, "later.bin", [&filler[..], b"needle\n\0\nneedle\n"].concat());
    put(root, "big.txt", [&filler[..], b"needle\n", &filler, b"needle"].concat());
    put(root, "long-line.txt", format!("{}needle{}\n", "x".repeat(5_000), " y".repeat(5_000)));
    put(root, "many-in-line.txt", "needle ".repeat(300));
    put(root, "blank.txt", "\n\n\n");
    put(root, "one-end.txt", "\n");
    put(root, "empty.txt", "");
    put(root, "no-end.txt", "other\nneedle");
    put(root, "tabs.txt", "\tneedle\t\n\u{a0}needle\u{2028}x\n\u{b}needle\u{c}\n");
    put(root, "unicode.txt", "N\u{c9}EDLE n\u{e9}edle\nstra\u{df}e STRASSE\n\u{212a}elvin k\n");
    put(root, "edges.txt", "needleneedle\naneedle\nneedles\n_needle_ needle-x\n");
    put(root, "digits.txt", "123 \u{663}\u{664} 4five\nfoo_bar fooBar\n");
    put(root, "spans.txt", "begin\na\nb\nend\nbegin\nend\nbegin\n");
    put(root, "sub/gz.gz", b"\x1f\x8b\x08\0\0\0\0\0needle");
}

/// Links of every kind, and a pipe.
fn links(root: &Path) {
    put(root, "real/a.rs", "needle\n");
    put(root, "real/deep/b.rs", "needle\nneedle\n");
    put(root, "z.rs", "needle\n");
    put(root, "ruled/.gitignore", "*.rs\n");
    put(root, "ruled/c.rs", "needle\n");
    put(root, "ruled/c.txt", "needle\n");
    for (to, at) in [
        ("real", "to-folder"),
        ("real/a.rs", "to-file.rs"),
        ("nowhere", "broken.rs"),
        ("..", "real/up"),
        (".", "self"),
        ("loop2", "loop1"),
        ("loop1", "loop2"),
        ("../z.rs", "real/z-link.rs"),
        ("../real", "ruled/in"),
    ] {
        symlink(to, root.join(at)).unwrap();
    }
    machine::make_fifo(&root.join("pipe.rs"));
}

/// Three thousand files.
fn many(root: &Path) {
    let mut numbers = Numbers(20_261_121);
    let words = ["alpha", "beta", "gamma", "delta", "needle", "fn", "let", "x"];
    for file in 0..3_000 {
        let (top, low) = (numbers.below(12), numbers.below(9));
        let ends = ["rs", "txt", "py", "md", "log"];
        let end = ends[numbers.below(ends.len())];
        let mut text = String::new();
        for _ in 0..numbers.below(12) {
            for _ in 0..numbers.below(6) {
                // The word that is searched for stands in one of some twenty places.
                let most = if numbers.below(5) == 0 { 8 } else { 4 };
                let word = numbers.below(most);
                text.push_str(words[word]);
                text.push(' ');
            }
            text.push('\n');
        }
        put(root, format!("t{top}/u{low}/f{file}.{end}"), text);
    }
    for (at, rules) in [(".gitignore", "*.log\nt3/u4/\n"), ("t5/.gitignore", "!*.log\n/u2\n")] {
        put(root, at, rules);
    }
}

/// Lines without end between short ones, and content that is binary only far behind.
fn long(root: &Path) {
    let (short, endless) = ("line\n".repeat(50), format!("{}\n", "word; ".repeat(1_500_000)));
    put(root, "middle.js", [&short, "needle 0\n", &short, &endless, &short, "needle 1"].concat());
    put(root, "first.js", [&endless, &short, "needle 0\nline\nneedle 1\n"].concat());
    let far = format!("needle\n{}needle\n\0\nneedle\nneedle\n", "x\n".repeat(200_000));
    put(root, "far.bin", far);
}
