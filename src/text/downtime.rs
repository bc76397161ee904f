//! How long something was down, in words.

/// With more, only the shortest and the longest time are told.
use std::fmt::Display;

const MOST: usize = 4;

/// `web was down for 3.1 s, db for 3.4 s`: names with times in seconds. Empty without any.
pub fn down(times: &[(impl Display, f64)]) -> Option<String> {
    let [(first, time), rest @ ..] = times else {
        return None;
    };
    let shortest = times.iter().map(|(_, time)| *time).fold(*time, f64::min);
    let longest = times.iter().map(|(_, time)| *time).fold(*time, f64::max);
    if times.len() > MOST {
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

fn seconds(time: f64) -> String {
    if time < 0.1 {
        "less than 0.1 s".to_owned()
    } else {
        format!("{time:.1} s")
    }
}

#[cfg(test)]
mod tests {
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
