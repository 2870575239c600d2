//! Each part of a page that Markdown has a form for.

use haft_page::{Limits, Page, read};

fn page(html: &str) -> Page {
    read(html.as_bytes(), None, "https://a.example/docs/page.html?x=1", &Limits::default()).unwrap()
}

fn markdown(html: &str) -> String {
    page(html).markdown
}

#[test]
fn links_and_pictures_are_absolute() {
    for (html, wanted) in [
        ("<a href=b.html>b</a>", "[b](https://a.example/docs/b.html)"),
        ("<a href=/b>b</a>", "[b](https://a.example/b)"),
        ("<a href='//c.example/d e'>b</a>", "[b](https://c.example/d%20e)"),
        ("<a href='?q=1'>b</a>", "[b](https://a.example/docs/page.html?q=1)"),
        ("<base href=/other/><a href=b>b</a>", "[b](https://a.example/other/b)"),
        (
            "<base href=https://c.example/d/><img src=e.png alt='an  e'>",
            "![an e](https://c.example/d/e.png)",
        ),
        ("<a href=w_(x)>b</a>", "[b](https://a.example/docs/w_%28x%29)"),
        ("<a href='mailto:a@b.example'>b</a>", "[b](mailto:a@b.example)"),
        ("<a href='https://c.example/'>https://c.example/</a>", "https://c.example/"),
        ("<a href='javascript:alert(1)'>b</a>", "b"),
        ("<a href='data:text/html,x'>b</a>", "b"),
        ("<a href='http://[bad'>b</a>", "b"),
        ("<a href=x><b>b</b> c</a>", "[**b** c](https://a.example/docs/x)"),
        ("<img src='data:image/png;base64,AAAA' alt=drawn>", "drawn"),
        ("<img src=dot.gif width=1 height=1>x", "x"),
        ("<img data-src=late.png alt=late src=''>", "![late](https://a.example/docs/late.png)"),
        (
            "<a href=x><img src=y.png alt=z></a>",
            "[![z](https://a.example/docs/y.png)](https://a.example/docs/x)",
        ),
    ] {
        assert_eq!(markdown(html).trim_end(), wanted, "{html}");
    }
    assert_eq!(page("<a href=a>a</a> <a href=b>b</a> <a href='javascript:x'>c</a>").links, 2);
}

#[test]
fn code_keeps_its_language_and_its_blanks() {
    for (html, wanted) in [
        (
            "<pre><code class='language-rust'>fn a() {\n\tb();\n\n    c\n}\n</code></pre>",
            "```rust\nfn a() {\n\tb();\n\n    c\n}\n```",
        ),
        (
            "<div class='highlight-python notranslate'><div class=highlight><pre><span></span><span class=k>if</span> a:\n    b\n</pre></div></div>",
            "```python\nif a:\n    b\n```",
        ),
        ("<pre class='brush:js'>a  b</pre>", "```js\na  b\n```"),
        ("<pre data-lang=go>a</pre>", "```go\na\n```"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<pre><code>one<br>two</code><button>Copy</button></pre>", "```\none\ntwo\n```"),
        ("<pre><div>one</div><div>  two</div></pre>", "```\none\n  two\n```"),
        (
            "<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre></td><td class=code><pre>a\n b</pre></td></tr></table>",
            "```\na\n b\n```",
        ),
        ("<ul><li>x<pre>a\n  b</pre></li></ul>", "- x\n\n  ```\n  a\n    b\n  ```"),
        ("a <code>b  c</code> d", "a `b c` d"),
        ("<code>a`b</code>", "``a`b``"),
        ("<code><a href=x>Vec</a></code>", "[`Vec`](https://a.example/docs/x)"),
        (
            "<div><p><span><a href='#t1'>1</a></span><span>a</span></p><p><span><a href='#t2'>2</a></span><span>  b</span></p><p><span><a href='#t3'>3</a></span><span>c</span></p></div>",
            "```\na\n  b\nc\n```",
        ),
    ] {
        assert_eq!(markdown(html).trim_end(), wanted, "{html}");
    }
}

#[test]
fn tables_are_rows_and_those_that_place_things_are_not() {
    for (html, wanted) in [
        ("<table><tr><th>a<th>b<tr><td>1<td>2|3</table>", "| a | b |\n|---|---|\n| 1 | 2\\|3 |"),
        ("<table><tr><td>1<td>2<tr><td>3<td>4</table>", "| | |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"),
        (
            "<table><thead><tr><td>a<td>b<tbody><tr><td colspan=2>1</table>",
            "| a | b |\n|---|---|\n| 1 | |",
        ),
        (
            "<table><tr><th>a<th>b<tr><td rowspan=2>1<td>2<tr><td>3</table>",
            "| a | b |\n|---|---|\n| 1 | 2 |\n| | 3 |",
        ),
        (
            "<table><tr><th>a<th>b<tr><td><p>1<p>2<td><ul><li>x<li>y</ul></table>",
            "| a | b |\n|---|---|\n| 1<br>2 | x<br>y |",
        ),
        ("<table><caption>C</caption><tr><th>a<tr><td>1</table>", "C\n\na\n\n1"),
        ("<table><tr><td>left<td><h2>T</h2><p>text</table>", "left\n\n## T\n\ntext"),
    ] {
        assert_eq!(markdown(html).trim_end(), wanted, "{html}");
    }
}

#[test]
fn lists_quotes_terms_and_folded_parts() {
    for (html, wanted) in [
        ("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", "- a\n  - b\n  - c\n- d"),
        ("<ol start=9><li>a<li>b<p>c</p></ol>", "9. a\n10. b\n\n    c"),
        ("<p>x<ul><li><p>a</p><p>b</p></ul><p>y", "x\n\n- a\n\n  b\n\ny"),
        (
            "<blockquote><p>a<p>b<blockquote>c</blockquote></blockquote>d",
            "> a\n>\n> b\n>\n> > c\n\nd",
        ),
        ("<dl><dt>a<dd>b<p>c</p><dt>d<dd>e</dl>", "a\n: b\n\n  c\n\nd\n: e"),
        ("<details><summary>More</summary><p>inner</p></details>", "**More**\n\ninner"),
        ("<h2>A <i>b</i> <a class=headerlink href=#a>¶</a></h2>c", "## A *b*\n\nc"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("a<br>b<br><br>c", "a\nb\n\nc"),
        ("<p>a <b> b </b>c <em></em><s>d</s> <b><b>e</b></b>", "a **b** c ~~d~~ **e**"),
        ("<p>a<!-- b -->c<script>d</script><style>e</style><noscript>f</noscript>", "ac"),
        (
            "<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x^2</annotation></semantics></math>",
            "$x^2$",
        ),
    ] {
        assert_eq!(markdown(html).trim_end(), wanted, "{html}");
    }
}

#[test]
fn what_is_around_the_text_is_left_out() {
    let text = "Text that is long enough to be an article of its own. ".repeat(8);
    let text = text.trim_end();
    let around = "<header><a href=/>Home</a></header><nav>N</nav><aside>A</aside><div class=cookie-banner>We use cookies</div>";
    for content in ["main", "article", "div role=main"] {
        let end = content.split(' ').next().unwrap();
        let html = format!("{around}<{content}><h1>T</h1><p>{text}</p></{end}><footer>F</footer>");
        let page = page(&html);
        assert_eq!(page.markdown, format!("# T\n\n{text}\n"));
        assert!(page.article);
    }
    let whole = page(&format!("{around}<h1>T</h1><p>short</p><footer>F</footer>"));
    assert_eq!((whole.markdown.as_str(), whole.article), ("# T\n\nshort\n", false));
    // A class that names a tool around most of the page is only a name.
    let named = page(&format!("<body><div class='sidebar'><p>{text}</p></div>"));
    assert_eq!(named.markdown, format!("{text}\n"));
}

#[test]
fn a_page_that_sends_on_says_where() {
    let note = page("<meta http-equiv=Refresh content='0; URL=/there'>").note.unwrap();
    assert!(note.contains("/there"), "{note}");
    assert!(page("<p></p>").note.unwrap().contains("no text"));
    assert_eq!(page("<title> a\n b </title><p>c").title.as_deref(), Some("a b"));
}
