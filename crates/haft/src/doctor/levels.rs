//! What `haft doctor` says of the ways in which commands can be held to limits.
//!
//! **Invariant:** every attack that was tried is named, and each says what came of it now.

use haft_host::{Attack, Cell, Level, Probe};

use super::{Line, State, line};

/// One line for each way, behind one that says what they are used for.
pub(super) fn lines(probes: &[Probe]) -> Vec<Line> {
    let text = "commands run with all of your rights; rules and questions are what holds them";
    let mut lines = vec![line("sandbox", State::Missing, text)];
    lines.extend(probes.iter().map(of));
    lines
}

fn of(probe: &Probe) -> Line {
    let what = match probe.level {
        Level::Namespaces => "level N",
        Level::Landlock => "level L",
    };
    if let Some(why) = &probe.failed {
        return line(what, State::Missing, format!("does not work here: {why}"));
    }
    let group = |name: &str, cell: Cell| {
        let came = |attack: &&Attack| probe.of(**attack) == Some(cell);
        let words: Vec<&str> = Attack::ALL.iter().filter(came).map(|a| a.words()).collect();
        (!words.is_empty()).then(|| format!("{name} {}", words.join(", ")))
    };
    let groups =
        [("stops", Cell::Stopped), ("puts back", Cell::PutBack), ("does not stop", Cell::Open)];
    let text: Vec<String> = groups.iter().filter_map(|(name, cell)| group(name, *cell)).collect();
    let (state, begin) = if probe.works() {
        (State::Fine, "")
    } else {
        (State::Missing, "not used, since it holds too little: ")
    };
    line(what, state, format!("{begin}{}", text.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attack_is_told_with_what_came_of_it() {
        let cell = |attack: Attack| match attack {
            Attack::Protected => Cell::PutBack,
            Attack::List => Cell::Open,
            _ => Cell::Stopped,
        };
        let found = Attack::ALL.iter().map(|attack| (*attack, cell(*attack))).collect();
        let probe = Probe { level: Level::Landlock, failed: None, found };
        let told = of(&probe);
        assert!(told.state == State::Fine && told.what == "level L");
        let parts: Vec<&str> = told.text.split("; ").collect();
        assert!(parts[0].starts_with("stops writing outside, ") && parts[0].contains("TCP"));
        let rest = [
            "puts back changing what is protected",
            "does not stop listing the names of what is hidden",
        ];
        assert_eq!(parts[1..], rest);
        let open = probe.found.iter().map(|(attack, _)| (*attack, Cell::Open)).collect();
        let told = of(&Probe { found: open, ..probe });
        assert!(told.state == State::Missing && told.text.contains("too little"), "{}", told.text);
        let told = of(&Probe::failed(Level::Namespaces, "no".into()));
        assert!(told.state == State::Missing && told.text == "does not work here: no");
    }
}
