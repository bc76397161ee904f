//! The text of a scalar, and the type that Compose gives it.

use super::Style;

/// The text of a scalar without its quotes.
pub(super) fn inside(style: Style, written: &str) -> &str {
    let quotes = usize::from(matches!(style, Style::SingleQuoted | Style::DoubleQuoted));
    let end = written.len().saturating_sub(quotes);
    written.get(quotes..end).unwrap_or_default()
}

/// The type that Compose gives a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarType {
    /// `null`, `~`, or no value.
    Null,
    /// `true` or `false`. `yes` and `on` are text.
    Bool,
    /// A number in any notation of YAML.
    Number,
    /// A date, with or without a time.
    Timestamp,
    /// The `<<` that merges a mapping.
    Merge,
    /// Text.
    Text,
}

impl ScalarType {
    /// The type of an untagged scalar.
    pub(super) fn of(value: &str, style: Style) -> Self {
        match (style, value) {
            _ if Self::is_null(value, style) => Self::Null,
            (Style::Plain, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") => Self::Bool,
            (Style::Plain, "<<") => Self::Merge,
            (Style::Plain, number) if is_number(number) => Self::Number,
            (Style::Plain, date) if is_timestamp(date) => Self::Timestamp,
            _ => Self::Text,
        }
    }

    /// Whether an untagged scalar is null.
    pub(super) fn is_null(value: &str, style: Style) -> bool {
        style == Style::Plain && matches!(value, "" | "~" | "null" | "Null" | "NULL")
    }

    /// The type of a tagged scalar.
    pub(super) fn of_tagged(tag: &str, value: &str, style: Style) -> Self {
        match tag {
            "!!str" | "!" | "!!binary" => Self::Text,
            "!!null" => Self::Null,
            "!!bool" => Self::Bool,
            "!!int" | "!!float" => Self::Number,
            "!!timestamp" => Self::Timestamp,
            "!!merge" => Self::Merge,
            _ => Self::of(value, style),
        }
    }
}

/// Whether a plain scalar reads as a number: `12`, `-1.5e3`, `0x1F`, `0o17`, `1_000`, `.inf`.
fn is_number(value: &str) -> bool {
    let unsigned = value.strip_prefix(['+', '-']).unwrap_or(value);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => return true,
        ".nan" | ".NaN" | ".NAN" => return unsigned.len() == value.len(),
        _ if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') => return false,
        _ => {}
    }
    let digits = unsigned.replace('_', "");
    let radix = |prefix: &str, radix| {
        let rest = digits.strip_prefix(prefix)?;
        Some(!rest.is_empty() && rest.chars().all(|c| c.is_digit(radix)))
    };
    radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .unwrap_or_else(|| digits.parse::<f64>().is_ok())
}

/// Whether a plain scalar reads as a date: `2001-2-3`, `2001-02-03T04:05:06Z`, `2001-02-03 04:05:06.7`. The numbers are not
/// checked.
fn is_timestamp(value: &str) -> bool {
    let (date, time) = value.split_once(['T', 't', ' ']).unwrap_or((value, "::"));
    let fits = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    let lengths: Vec<usize> = date.split('-').map(str::len).collect();
    let is_date = date.bytes().all(fits) && matches!(lengths[..], [4, 1 | 2, 1 | 2]);
    is_date && time.matches(':').count() > 1
}
