//! What differs from the peers, and why it is left so.

/// One query whose answers differ.
pub(super) struct Known {
    pub(super) tool: &'static str,
    pub(super) tree: &'static str,
    /// The arguments of the tool.
    pub(super) query: &'static str,
    /// The peer that it was seen with.
    pub(super) version: &'static str,
    pub(super) reason: &'static str,
}

const FD: &str = "fd 10.5.0";
const RG: &str = "ripgrep 15.2.0";

const CIRCLES: &str = "fd leaves links out that lead in circles, with a word on its standard error; \
                       haft names such a link as a link, does not enter it, and counts it";
const LINE_ALONE: &str = "both find the lines, but a search of lines takes each alone, so that ripgrep \
                          then finds nothing to mark in those below the first; haft marks the match";
const DOT: &str = "haft takes ./ in front of a glob as the searched folder; with ripgrep such a glob \
                   matches nothing";
const WHOLE: &str = "the match ends inside a character; haft marks whole characters";
const COUNTED: &str = "below a folder ripgrep leaves a file out of its counts in which a NUL comes late, \
                       though it shows the lines before the NUL; haft counts what it shows";
const BEHIND: &str = "in a binary file that was named, haft counts the lines behind what told it so and \
                      does not show them, as ripgrep's own text; this is ripgrep's JSON, which does";

const FORMS: &str = "haft compares a glob that is not ASCII with names in their composed form (NFC); \
                     fd compares the bytes";

const DECODED: &str = "haft searches a file that is no UTF-8 as read decodes it for a character outside \
                       ASCII; ripgrep searches its bytes";

/// Every query whose answers differ.
pub(super) const KNOWN: &[Known] = &[
    known("find", "links", r#"{"follow":true,"limit":100000,"pattern":"*"}"#, FD, CIRCLES),
    known("find", "links", r#"{"follow":true,"limit":100000,"pattern":"[!a]*"}"#, FD, CIRCLES),
    known("find", "names", r#"{"limit":100000,"pattern":"*é*"}"#, FD, FORMS),
    known("find", "names", r#"{"hidden":false,"limit":100000,"pattern":"*é*"}"#, FD, FORMS),
    known("find", "names", r#"{"limit":100000,"no_ignore":true,"pattern":"*é*"}"#, FD, FORMS),
    known(
        "find",
        "names",
        r#"{"hidden":false,"limit":100000,"no_ignore":true,"pattern":"*é*"}"#,
        FD,
        FORMS,
    ),
    known("find", "names", r#"{"follow":true,"limit":100000,"pattern":"*é*"}"#, FD, FORMS),
    known("grep", "contents", r#"{"pattern":"é"}"#, RG, DECODED),
    known("grep", "plain", r#"{"pattern":"\\Aneedle"}"#, RG, LINE_ALONE),
    known("grep", "contents", r#"{"pattern":"\\Aneedle"}"#, RG, LINE_ALONE),
    known(
        "grep",
        "plain",
        r#"{"glob":"./src/*.rs","output_mode":"content","pattern":"needle"}"#,
        RG,
        DOT,
    ),
    known("grep", "contents", r#"{"pattern":"needle(?-u:\\W)"}"#, RG, WHOLE),
    known("grep", "contents", r#"{"output_mode":"count","pattern":"needle"}"#, RG, COUNTED),
    known("grep", "contents", r#"{"output_mode":"count","pattern":"^"}"#, RG, COUNTED),
    known("grep", "contents", r#"{"output_mode":"count","pattern":"$"}"#, RG, COUNTED),
    known("grep", "contents", r#"{"output_mode":"count","pattern":"(?i)needle"}"#, RG, COUNTED),
    known(
        "grep",
        "contents",
        r#"{"multiline":true,"output_mode":"count","pattern":"needle"}"#,
        RG,
        COUNTED,
    ),
    known(
        "grep",
        "contents",
        r#"{"multiline":true,"output_mode":"count","pattern":"e"}"#,
        RG,
        COUNTED,
    ),
    known(
        "grep",
        "contents",
        r#"{"-i":true,"multiline":true,"output_mode":"count","pattern":"[a-z]"}"#,
        RG,
        COUNTED,
    ),
    known(
        "grep",
        "long",
        r#"{"output_mode":"content","path":"far.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known("grep", "long", r#"{"glob":"*.rs","path":"far.bin","pattern":"needle"}"#, RG, BEHIND),
    known(
        "grep",
        "long",
        r#"{"glob":"/*.txt","no_ignore":true,"path":"far.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"output_mode":"content","path":"early.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"glob":"*.rs","path":"early.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"glob":"/*.txt","no_ignore":true,"path":"early.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"output_mode":"content","path":"late.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"glob":"*.rs","path":"late.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"glob":"/*.txt","no_ignore":true,"path":"late.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"output_mode":"content","path":"late-in-line.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"glob":"*.rs","path":"late-in-line.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
    known(
        "grep",
        "contents",
        r#"{"glob":"/*.txt","no_ignore":true,"path":"late-in-line.bin","pattern":"needle"}"#,
        RG,
        BEHIND,
    ),
];

const fn known(
    tool: &'static str,
    tree: &'static str,
    query: &'static str,
    version: &'static str,
    reason: &'static str,
) -> Known {
    Known { tool, tree, query, version, reason }
}
