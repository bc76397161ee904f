//! Names that may be meant by one that is unknown.

/// The least similarity (Jaro) of a name that is suggested.
const SIMILAR: f64 = 0.8;

/// The names that `typed` probably misspells, the closest first.
pub fn near<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let similarity = |name: &str| strsim::jaro(&typed.to_lowercase(), &name.to_lowercase());
    let rated = names.into_iter().map(|name| (similarity(name), name));
    let mut near: Vec<(f64, &str)> = rated
        .filter(|(similarity, name)| *similarity >= SIMILAR && *name != typed)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.into_iter().map(|(_, name)| name).collect()
}
