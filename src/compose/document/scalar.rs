//! What a scalar is: how it is written, and the type compose gives it.

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// `'…'`
    SingleQuoted,
    /// `"…"`
    DoubleQuoted,
    /// A `|` block.
    Literal,
    /// A `>` block.
    Folded,
}

/// The type that compose's YAML reader gives a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarType {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`; `yes` and `on` are text.
    Bool,
    /// Anything that reads as a number.
    Number,
    /// The `<<` that merges a mapping.
    Merge,
    /// Text.
    Text,
}

impl ScalarType {
    /// The type of an untagged scalar.
    pub(super) fn of(value: &str, style: Style) -> Self {
        match (style, value) {
            (Style::Plain, "" | "~" | "null" | "Null" | "NULL") => Self::Null,
            (Style::Plain, "true" | "True" | "TRUE" | "false" | "False" | "FALSE") => Self::Bool,
            (Style::Plain, "<<") => Self::Merge,
            (Style::Plain, number) if is_number(number) => Self::Number,
            _ => Self::Text,
        }
    }

    /// The type of a scalar with a tag, which is written in front of it.
    pub(super) fn of_tagged(tag: &str, value: &str, style: Style) -> Self {
        match tag {
            "!!str" | "!" | "!!binary" => Self::Text,
            "!!null" => Self::Null,
            "!!bool" => Self::Bool,
            "!!int" | "!!float" => Self::Number,
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
