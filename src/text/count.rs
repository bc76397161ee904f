//! Counted nouns, lists and times for messages.

use std::fmt;

/// `n` and the plural of `noun` that fits it: `1 container`, `2 containers`, `0 entries`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {}", plural(n, noun))
}

/// `noun`, or its plural if there are not exactly one.
pub fn plural(n: usize, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if n == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// `a`, `a and b`, `a, b and c`; what exceeds six names is counted: `a, b, c, d, e and 4 more`.
pub fn listed(all: &[impl AsRef<str>]) -> String {
    const MOST: usize = 6;
    let names: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    let (shown, last) = match names.as_slice() {
        [] => return String::new(),
        [one] => return (*one).to_owned(),
        [shown @ .., last] if names.len() <= MOST => (shown, (*last).to_owned()),
        _ => (
            &names[..MOST - 1],
            format!("{} more", names.len() + 1 - MOST),
        ),
    };
    format!("{} and {last}", shown.join(", "))
}

/// One of several things: `a`, `a or b`, `a, b or c`.
pub fn any_of(all: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// How many files of one container are named.
const FILES_SHOWN: usize = 5;

/// The first of these files, and the number of the others, of which some may be `unlisted`. `None` without a file.
pub fn first_of(files: &[impl AsRef<str>], unlisted: usize) -> Option<String> {
    let shown: Vec<&str> = files.iter().take(FILES_SHOWN).map(AsRef::as_ref).collect();
    let more = match files.len() - shown.len() + unlisted {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!files.is_empty() || unlisted > 0).then(|| format!("{}{more}", shown.join(", ")))
}

/// `were removed`, of `was removed`.
pub fn of_many(verb: &str) -> String {
    let (first, rest) = verb.split_once(' ').unwrap_or((verb, ""));
    let first = match first {
        "is" => "are",
        "was" => "were",
        "has" => "have",
        same => same,
    };
    format!("{first} {rest}")
}

/// `db and web were removed`, of `was removed`; nothing without a name.
pub fn said(names: &[impl AsRef<str>], verb: &str) -> Option<String> {
    match names {
        [] => None,
        [one] => Some(format!("{} {verb}", one.as_ref())),
        names => Some(format!("{} {}", listed(names), of_many(verb))),
    }
}

/// One item a line, after a hyphen. The further lines of an item are below its text.
pub fn bulleted<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let lines = items.into_iter().map(|item| {
        let item = item.to_string().replace('\n', "\n    ");
        format!("  - {item}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// One item a line, after its number. The further lines of an item are below its text.
pub fn numbered<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let lines = (1..).zip(items).map(|(number, item)| {
        let item = item.to_string().replace('\n', "\n     ");
        format!("{number:>3}. {item}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// With more, only the shortest and the longest time are told.
const MOST_TIMES: usize = 4;

/// `web was down for 3.1 s, db for 3.4 s`: names with times in seconds. Empty without any.
pub fn down(times: &[(impl fmt::Display, f64)]) -> Option<String> {
    let [(first, time), rest @ ..] = times else {
        return None;
    };
    let shortest = times.iter().map(|(_, time)| *time).fold(*time, f64::min);
    let longest = times.iter().map(|(_, time)| *time).fold(*time, f64::max);
    if times.len() > MOST_TIMES {
        return Some(format!(
            "{} containers were down, each for {shortest:.1} to {longest:.1} s",
            times.len()
        ));
    }
    let told = format!("{first} was down for {}", seconds(*time));
    Some(rest.iter().fold(told, |told, (name, time)| {
        format!("{told}, {name} for {}", seconds(*time))
    }))
}

/// `down for up to 10 s, plus its start`: how long something is down that takes so many whole seconds to stop.
pub fn down_for(seconds: u32, start: &str) -> String {
    match seconds {
        0 => format!("down during {start}"),
        _ => format!("down for up to {seconds} s, plus {start}"),
    }
}

fn seconds(time: f64) -> String {
    if time < 0.1 {
        "less than 0.1 s".to_owned()
    } else {
        format!("{time:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noun_agrees_with_the_number() {
        assert_eq!(counted(1, "container"), "1 container");
        assert_eq!(counted(2, "container"), "2 containers");
        assert_eq!(counted(0, "bind mount"), "0 bind mounts");
        assert_eq!(counted(3, "directory"), "3 directories");
        assert_eq!(counted(3, "key"), "3 keys");
        assert_eq!(counted(2, "process"), "2 processes");
    }

    #[test]
    fn a_long_list_is_cut() {
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a", "b"]), "a and b");
        let expected = "a, b, c, d, e and f";
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f"]), expected);
        assert_eq!(
            listed(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e and 2 more"
        );
    }

    #[test]
    fn each_is_named_unless_there_are_many() {
        let down = |times: &[(&str, f64)]| super::down(times).unwrap_or_default();
        assert_eq!(down(&[]), "");
        assert_eq!(down(&[("a", 0.02)]), "a was down for less than 0.1 s");
        let two = [("web", 3.12), ("db", 3.4)];
        assert_eq!(down(&two), "web was down for 3.1 s, db for 3.4 s");
        let many = [two[0], two[1], two[0], two[0], two[0]];
        let told = "5 containers were down, each for 3.1 to 3.4 s";
        assert_eq!(down(&many), told);
    }
}
