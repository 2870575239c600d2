//! What a shell reports of itself after its start-up files have run.
//!
//! **Invariant:** a report counts only if it is whole, from its first mark to its last.

/// Runs the start-up files of bash in their order and reports what they set, even where one of them
/// ends the shell or would become another program.
///
/// Nothing of it is seen by the files but the function `exec`, and the descriptor 199 to which the
/// report goes. What was a function or an alias before is none of theirs: they begin with neither.
pub(super) const BASH: &str = r#"exec 199>&3 3>&-
haft_start_up_report() {
  builtin trap - EXIT DEBUG ERR RETURN
  builtin set -f +aeuxvT
  builtin set +o posix
  builtin unset -v HISTFILE
  IFS=$' \t\n'
  {
    builtin printf 'haft:variables\0'
    for haft_name in $(builtin compgen -e); do
      [[ -n ${!haft_name+x} ]] && builtin printf '%s=%s\0' "$haft_name" "${!haft_name}"
    done
    builtin printf 'haft:functions\0'
    haft_exported=$'\n'$(builtin declare -Fx)$'\n'
    for haft_name in $(builtin compgen -A function); do
      case $haft_name in haft_start_up_* | exec) builtin continue ;; esac
      builtin printf '%s\0' "$haft_name"
      builtin declare -f -- "$haft_name"
      [[ $haft_exported == *$'\n'"declare -fx $haft_name"$'\n'* ]] &&
        builtin printf 'builtin declare -fx -- %q\n' "$haft_name"
      builtin printf '\0'
    done
    builtin printf 'haft:aliases\0'
    for haft_name in $(builtin compgen -A alias); do
      builtin printf '%s\0' "$haft_name"
      builtin alias -- "$haft_name"
      builtin printf '\0'
    done
    builtin printf 'haft:variables of functions\0'
    (haft_start_up_variables)
    builtin printf 'haft:options\0'
    for haft_name in extglob globstar nullglob; do
      builtin shopt -q "$haft_name" && builtin printf '%s\0\0' "$haft_name"
    done
    builtin printf 'haft:end\0'
  } >&199
}
haft_start_up_variables() {
  haft_exported=$'\n'$(builtin compgen -e)$'\n'
  for haft_name in $(builtin compgen -v); do
    case $haft_name in haft_* | HAFT_* | BASH*) builtin continue ;; esac
    [[ $haft_exported == *$'\n'"$haft_name"$'\n'* ]] && builtin continue
    builtin test -R "$haft_name" && builtin continue
    haft_all=$haft_name[@]
    haft_value="${!haft_all}"
    builtin eval "haft_keys=(\"\${!$haft_name[@]}\")"
    ((${#haft_value} > 32768 || ${#haft_keys[@]} > 1024)) && builtin continue
    builtin printf '%s\0' "$haft_name"
    builtin declare -p -- "$haft_name"
    builtin printf '\0'
    for haft_key in "${haft_keys[@]}"; do
      builtin eval "haft_value=\${$haft_name[\$haft_key]}"
      builtin printf '%s[\0%s=%s\0' "$haft_name" "$haft_key" "$haft_value"
    done
  done
}
exec() { [[ $# -eq 0 ]] || builtin exit; }
trap haft_start_up_report EXIT
[[ -r /etc/profile ]] && . /etc/profile
for haft_name in ~/.bash_profile ~/.bash_login ~/.profile; do
  [[ -r $haft_name ]] && break
  haft_name=
done
[[ -n $haft_name ]] && . "$haft_name"
[[ -r ~/.bashrc ]] && ! { [[ -n $haft_name ]] && [[ $(< "$haft_name") == *bashrc* ]]; } && . ~/.bashrc
haft_start_up_report"#;

/// Runs the start-up files of a shell like the first ones, and reports the variables even where one
/// of them ends it. What `ENV` names it has read itself, unless a file says so only then.
pub(super) const PLAIN: &str = r#"exec 9>&3 3>&-
haft_start_up_report() {
  trap - EXIT
  printf 'haft:variables\0' >&9
  /usr/bin/env -0 >&9
  printf 'haft:functions\0haft:aliases\0haft:variables of functions\0haft:options\0haft:end\0' >&9
}
haft_env=$ENV
trap haft_start_up_report EXIT
[ -r /etc/profile ] && . /etc/profile
[ -r ~/.profile ] && . ~/.profile
[ "$ENV" != "$haft_env" ] && [ -r "$ENV" ] && . "$ENV"
haft_start_up_report"#;

/// Reports the variables, in whatever shell.
pub(super) const ANY: &str = "printf 'haft:variables\\0' >&3; /usr/bin/env -0 >&3; \
    printf 'haft:functions\\0haft:aliases\\0haft:variables of functions\\0haft:options\\0haft:end\\0' >&3";

/// What was reported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report<'a> {
    /// Exported variables.
    pub(super) variables: Vec<(&'a [u8], &'a [u8])>,
    /// Functions: their names, and what makes them.
    pub(super) functions: Vec<(&'a [u8], &'a [u8])>,
    /// The same of aliases.
    pub(super) aliases: Vec<(&'a [u8], &'a [u8])>,
    /// The same of variables that are not exported. What they hold follows: their names with `[`,
    /// and each key, `=`, value.
    pub(super) kept: Vec<(&'a [u8], &'a [u8])>,
    /// The options that functions may need and that are on: their names, and nothing.
    pub(super) options: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> Report<'a> {
    /// Takes a report apart; none where it is not whole.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut parts =
            bytes.split(|b| *b == 0).skip_while(|part| *part != b"haft:variables").skip(1);
        let mut report = Self::default();
        for part in parts.by_ref().take_while(|part| *part != b"haft:functions") {
            let at = part.iter().position(|b| *b == b'=');
            report.variables.extend(at.map(|at| (&part[..at], &part[at + 1..])));
        }
        let mut pairs = |end: &[u8]| {
            let mut all = Vec::new();
            loop {
                match parts.next()? {
                    name if name == end => return Some(all),
                    name => all.push((name, parts.next()?)),
                }
            }
        };
        report.functions = pairs(b"haft:aliases")?;
        report.aliases = pairs(b"haft:variables of functions")?;
        report.kept = pairs(b"haft:options")?;
        report.options = pairs(b"haft:end")?;
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_whole_or_not_at_all() {
        let bytes = b"junk\0haft:variables\0A=1=2\0B=\0haft:functions\0f\0f () \n{ :\n}\n\0\
            haft:aliases\0ll\0alias ll='ls -l'\n\0haft:variables of functions\0v\0declare -- v=\"1\"\n\0v[\x000=1\0\
            haft:options\0nullglob\0\0haft:end\0";
        let report = Report::read(bytes).unwrap();
        assert_eq!(report.variables, [(&b"A"[..], &b"1=2"[..]), (b"B", b"")]);
        assert_eq!(report.functions, [(&b"f"[..], &b"f () \n{ :\n}\n"[..])]);
        assert_eq!(report.aliases, [(&b"ll"[..], &b"alias ll='ls -l'\n"[..])]);
        let kept = [(&b"v"[..], &b"declare -- v=\"1\"\n"[..]), (b"v[", b"0=1")];
        assert_eq!(report.kept, kept);
        assert_eq!(report.options, [(&b"nullglob"[..], &b""[..])]);
        for end in 0..bytes.len() - 1 {
            assert_eq!(Report::read(&bytes[..end]), None, "{end}");
        }
    }
}
