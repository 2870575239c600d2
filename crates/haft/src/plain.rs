//! Makes text of any origin safe to print on a terminal, in one line.

use haft_render::clean;

/// Makes a text safe for a terminal, in one line.
pub fn safe(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// Joins an error and its remedy, which may be several lines, into one line.
pub fn sentence(text: &str) -> String {
    let mut sentence = String::new();
    for line in clean(text).lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !sentence.is_empty() {
            sentence.push_str(if sentence.ends_with(['.', '!', '?', ':']) { " " } else { ". " });
        }
        sentence.push_str(line);
    }
    sentence
}
