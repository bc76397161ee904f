//! The ways in which programs escape a character.

use std::fmt::Write as _;

/// `c` itself, and its escaped forms in JSON, YAML, Go, shells, Compose, URLs and HTML. None is empty.
pub(super) fn encodings(c: char) -> Vec<String> {
    let mut all = vec![c.to_string()];
    if c.is_ascii_alphanumeric() {
        return all;
    }
    let (mut unicode, mut percent) = (String::new(), String::new());
    // Writing to a String does not fail.
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(unicode, "\\u{unit:04x}");
    }
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        let _ = write!(percent, "%{byte:02X}");
    }
    all.extend([upper(&unicode, "\\u"), unicode]);
    all.extend([percent.to_lowercase(), percent]);
    if c.is_ascii() {
        let code = u32::from(c);
        all.extend([format!("\\x{code:02x}"), format!("\\x{code:02X}")]);
        all.extend([
            format!("\\{c}"),
            format!("&#{code};"),
            format!("&#x{code:x};"),
        ]);
    }
    let more: &[&str] = match c {
        '\n' => &["\\n", "\r\n"],
        '\r' => &["\\r"],
        '\t' => &["\\t"],
        ' ' => &["+"],
        '$' => &["$$"],
        '\'' => &["''", "'\\''", "'\"'\"'", "&apos;"],
        '"' => &["\"\"", "&quot;"],
        '<' => &["&lt;"],
        '>' => &["&gt;"],
        '&' => &["&amp;"],
        // Escaped once and several times.
        '\\' => &["\\\\", "\\\\\\\\", "\\\\\\\\\\\\\\\\"],
        _ => &[],
    };
    all.extend(more.iter().map(|&text| text.to_owned()));
    all
}

/// `text` in upper case, except for its prefix `marker` wherever it occurs.
fn upper(text: &str, marker: &str) -> String {
    text.to_uppercase().replace(&marker.to_uppercase(), marker)
}
