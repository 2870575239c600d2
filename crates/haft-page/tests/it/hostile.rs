//! Pages that are written to hang, to fill memory, or to overflow the stack: each comes to an end.

use haft_page::{Limits, Page, read};

fn page(html: &str) -> Page {
    read(html.as_bytes(), None, "https://a.example/", &Limits::default()).unwrap()
}

#[test]
fn nesting_of_any_depth_keeps_its_text() {
    let deepest = ["div", "ul><li", "b", "table><tr><td", "a href=x"].map(|tag| (tag, 100_000));
    let deep = [
        "blockquote",
        "span",
        "dl><dd",
        "svg",
        "font size=1",
        "section",
        "details",
        "q",
        "pre",
        "button",
        "select",
        "template",
        "math",
        "frameset",
        "optgroup",
        "ruby><rt",
        "noscript",
    ];
    for (tag, depth) in deepest.into_iter().chain(deep.map(|tag| (tag, 10_000))) {
        let html = format!("<p>before</p>{}<p>inner", format!("<{tag}>").repeat(depth));
        let page = page(&html);
        assert!(page.markdown.len() < 1 << 20, "{tag}: {}", page.markdown.len());
        assert!(page.markdown.starts_with("before"), "{tag}");
    }
    let deep = format!("{}inner{}after", "<div>".repeat(100_000), "</div>".repeat(100_000));
    assert_eq!(page(&deep).markdown, "inner\n\nafter\n");
    // On a small stack, too.
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let found = thread.spawn(move || page(&deep).markdown).unwrap().join().unwrap();
    assert_eq!(found, "inner\n\nafter\n");
}

#[test]
fn what_is_hidden_stays_so_however_deep() {
    for depth in [10, 190, 210, 250, 260, 300, 5_000] {
        for tag in ["div", "span", "b"] {
            let html = format!(
                "<style>.bait {{ display: none }}</style><p>before</p>{}<p>seen</p><p hidden>unseen</p>\
                 <p class=bait>unseen</p><span style='display:none'>unseen<i>unseen</i></span>\
                 <noscript>unseen</noscript><p>inner</p>{}<p>after</p>",
                format!("<{tag}>").repeat(depth),
                format!("</{tag}>").repeat(depth),
            );
            let markdown = page(&html).markdown;
            assert!(!markdown.contains("unseen"), "{tag} {depth}: {markdown}");
            assert!(
                ["before", "seen", "inner", "after"].iter().all(|word| markdown.contains(word)),
                "{tag} {depth}: {markdown}"
            );
        }
    }
}

#[test]
fn a_page_over_the_limits_is_cut_and_said_to_be() {
    let limits = Limits { bytes: 100_000, nodes: 1_000_000, markdown: 1 << 20 };
    let long = "<p>word ".repeat(30_000);
    let page = read(long.as_bytes(), None, "", &limits).unwrap();
    assert!(page.cut && page.markdown.len() < 100_000);
    let limits = Limits { nodes: 1_000, ..Limits::default() };
    let page = read(long.as_bytes(), None, "", &limits).unwrap();
    assert!(page.cut && page.markdown.matches("word").count() < 1_500);
    let limits = Limits { markdown: 1_000, ..Limits::default() };
    let page = read(long.as_bytes(), None, "", &limits).unwrap();
    assert!(page.cut && page.markdown.len() <= 1_001);
    let page = read(b"<p>a", None, "", &Limits::default()).unwrap();
    assert!(!page.cut);
}

#[test]
fn twenty_megabytes_are_read_to_the_limit() {
    let long =
        format!("<p>{}</p>\n", "Twenty megabytes without an end. ".repeat(20)).repeat(32_000);
    assert!(long.len() > 20_000_000);
    let page = page(&long);
    assert!(page.cut && page.markdown.len() <= Limits::default().markdown);
}

fn many(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().concat()
}

#[test]
fn what_makes_much_of_little_is_bounded() {
    // Every paragraph opens again what was open before.
    let fonts = many(4_000, |at| format!("<p><font size={at}>x</p>"));
    let limits = Limits { nodes: 100_000, ..Limits::default() };
    assert!(read(fonts.as_bytes(), None, "", &limits).unwrap().markdown.len() < 100_000);
    // Each attribute is compared with those before it.
    let attributes = many(120_000, |at| format!(" a{at}"));
    assert!(page(&format!("<p{attributes}>text")).markdown.ends_with("text\n"));
    let quoted = many(60_000, |at| format!(" a{at}='>'"));
    assert!(page(&format!("<p{quoted}>text")).markdown.contains("text"));
    // Long values and comments are left as they are.
    let value = "x y ".repeat(20_000);
    assert_eq!(page(&format!("<p title='{value}'>text<!-- {value} -->")).markdown, "text\n");
    let bodies = many(100_000, |at| format!("<body a{at}>"));
    assert_eq!(page(&format!("{bodies}text")).markdown, "text\n");
    let cells = "<table><tr><th>a<th>b</tr>".to_owned()
        + &"<tr><td colspan=100000 rowspan=65000>x".repeat(2_000);
    assert!(page(&cells).markdown.len() < 4 << 20);
    let items = "<ul><li>".repeat(300) + &"<li>x".repeat(20_000);
    assert!(page(&items).markdown.len() < 2 << 20);
    let tools = "<div class=sidebar>".repeat(250) + "<main>" + &"<p>x y z".repeat(20_000);
    assert!(page(&tools).markdown.contains("x y z"));
    let links = "<a href=x>".repeat(50_000) + "end";
    assert!(page(&links).markdown.contains("end"));
}

#[test]
fn broken_pages_are_pages() {
    for html in [
        "<",
        "</",
        "<!",
        "<!--",
        "<a href='",
        "&#x110000;&#0;&amp",
        "<![CDATA[x",
        "<table><p>x<table>y",
        "\0<p>a\0b",
        "<p>\u{feff}a",
        "</p></div></body></html>text",
        "<frameset><frame src=a><frame>",
        "<select><option>x",
        "<svg><p>x</svg>",
        "<body><head><title>x",
        "<plaintext>a<b>c",
        "<textarea><p>x",
    ] {
        let page = page(html);
        assert!(!page.markdown.contains('\0'), "{html}");
    }
    assert_eq!(
        page("<frameset><frame src=a></frameset>").markdown,
        "[frame](https://a.example/a)\n"
    );
}
