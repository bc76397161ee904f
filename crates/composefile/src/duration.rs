//! Spans of time, as Compose reads and prints them.

/// The seconds of a span: `1m30s` → 90
pub fn seconds(text: &str) -> f64 {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_alphabetic()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let end = after
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let each = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => 1.0,
        };
        seconds += number.parse::<f64>().unwrap_or_default() * each;
        rest = after;
    }
    seconds
}
