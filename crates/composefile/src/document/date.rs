//! Dates without quotes. YAML reads them as a time, and Compose passes on the text that Go prints for it (N31).

/// What a value gets in place of a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Printed {
    /// This text, such as `2024-01-01 00:00:00 +0000 UTC`.
    Text(String),
    /// A text that depends on the time zone of the host: the date has an offset, such as `+01:00`.
    InLocalZone,
}

/// What Compose makes of a scalar without quotes and tags; `None` if it is not a date.
pub fn printed(value: &str) -> Option<Printed> {
    let (date, time) = match value.find(['T', 't', ' ']) {
        Some(at) => (&value[..at], Some(value[at..].split_at(1))),
        None => (value, None),
    };
    let day = day(date)?;
    let (clock, is_utc) = match time {
        None => ("0:0:0", true),
        Some((" ", clock)) => (clock.trim_start_matches(' '), true),
        Some((_, rest)) => match rest.strip_suffix('Z') {
            Some(clock) => (clock, true),
            None => (without_offset(rest)?, false),
        },
    };
    let clock = time_of_day(clock)?;
    Some(if is_utc {
        Printed::Text(format!("{day} {clock} +0000 UTC"))
    } else {
        Printed::InLocalZone
    })
}

/// `2001-2-3` with all zeros.
fn day(date: &str) -> Option<String> {
    let [year, month, day] = numbers(date, '-')?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let is_day = date.find('-') == Some(4) && (1..=last).contains(&day);
    is_day.then(|| format!("{year:04}-{month:02}-{day:02}"))
}

/// `4:5:6.70` with all zeros in front and none at the end.
fn time_of_day(clock: &str) -> Option<String> {
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|one| one.is_ascii_digit());
    if hour > 23 || minute > 59 || second > 59 || !is_fraction {
        return None;
    }
    let nanoseconds = fraction.get(..9).unwrap_or(fraction).trim_end_matches('0');
    let point = if nanoseconds.is_empty() { "" } else { "." };
    Some(format!(
        "{hour:02}:{minute:02}:{second:02}{point}{nanoseconds}"
    ))
}

/// A time without its offset, such as `-05:00`.
fn without_offset(time: &str) -> Option<&str> {
    let (clock, offset) = time.split_at_checked(time.rfind(['+', '-'])?)?;
    let digits: Vec<&str> = offset[1..].split(':').collect();
    let is_number = |one: &&str| one.len() == 2 && one.bytes().all(|one| one.is_ascii_digit());
    (digits.len() == 2 && digits.iter().all(is_number)).then_some(clock)
}

/// Three numbers, all but the first of one or two digits.
fn numbers(text: &str, separator: char) -> Option<[u16; 3]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let number = |at: usize| {
        let part: &str = parts.get(at)?;
        let is_number = part.len() <= 2 || at == 0 && part.len() <= 4;
        let is_number = is_number && part.bytes().all(|one| one.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    };
    let all = [number(0)?, number(1)?, number(2)?];
    (parts.len() == 3).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text was printed by Compose 2.26.1.
    #[test]
    fn n31_a_date_is_printed_as_go_prints_it() {
        for (written, printed_text) in [
            ("2024-01-01", "2024-01-01 00:00:00 +0000 UTC"),
            ("2024-01-1", "2024-01-01 00:00:00 +0000 UTC"),
            ("0000-02-29", "0000-02-29 00:00:00 +0000 UTC"),
            ("2024-01-01T10:00:00Z", "2024-01-01 10:00:00 +0000 UTC"),
            ("2024-1-1t1:2:3.5Z", "2024-01-01 01:02:03.5 +0000 UTC"),
            ("2024-1-1   1:2:3", "2024-01-01 01:02:03 +0000 UTC"),
            ("2024-01-01 10:00:00,5", "2024-01-01 10:00:00.5 +0000 UTC"),
            ("2024-01-01 10:00:00.000", "2024-01-01 10:00:00 +0000 UTC"),
            (
                "2024-01-01t10:00:00.123456789123Z",
                "2024-01-01 10:00:00.123456789 +0000 UTC",
            ),
        ] {
            let expected = Printed::Text(printed_text.to_owned());
            assert_eq!(printed(written), Some(expected), "{written}");
        }
        for offset in ["2001-12-14t21:59:43.10-05:00", "2024-01-01T10:00:00+00:00"] {
            assert_eq!(printed(offset), Some(Printed::InLocalZone), "{offset}");
        }
        for text in [
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-001-01",
            "204-01-01",
            "2024-01-01T10:00:00",
            "2024-01-01T1:2:3z",
            "2024-01-01 10:00",
            "2024-01-01 10:00:00Z",
            "2024-01-01 10:00:60",
            "2024-01-01 24:00:00",
            "2024-01-01 00:00:00 +0000 UTC",
            "2024-01-01T10:00:00+1:00",
            "2024-01-01-01",
            "2024-01-é",
            "1.2.3",
            "",
        ] {
            assert_eq!(printed(text), None, "{text}");
        }
    }
}
