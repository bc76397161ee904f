//! Counted nouns for messages.

/// `n` and the plural of `noun` that fits it: `1 container`, `2 containers`, `0 entries`.
pub fn counted(n: usize, noun: &str) -> String {
    if n == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{n} {stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
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
}
