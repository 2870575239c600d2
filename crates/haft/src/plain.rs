//! Texts of any origin in one line that no terminal takes for a command.

use haft_render::clean;

/// A text that no terminal takes for a command, in one line.
pub fn safe(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// What went wrong and what to do, which may be several lines, in one line.
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
