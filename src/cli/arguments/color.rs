//! `--color`.

use std::ffi::OsString;

use clap::{ColorChoice, ValueEnum as _};

/// Decides the color of all streams from now on. Without a choice, the environment decides for each of them.
pub(super) fn use_color(choice: Option<ColorChoice>) {
    match choice.unwrap_or_default() {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// The value of `--color` in arguments that were not parsed.
pub(super) fn color_of(arguments: impl Iterator<Item = OsString>) -> Option<ColorChoice> {
    let texts = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let mut texts = texts.take_while(|text| text != "--");
    let mut found = None;
    while let Some(text) = texts.next() {
        let value = match text.strip_prefix("--color") {
            Some("") => texts.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => continue,
        };
        let choice = value.and_then(|value| ColorChoice::from_str(&value, false).ok());
        found = choice.or(found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_color_of_the_help_and_of_errors() {
        let color = |arguments: &[&str]| color_of(arguments.iter().map(OsString::from));
        let expected = Some(ColorChoice::Never);
        assert_eq!(color(&["--help", "--color", "never"]), expected);
        assert_eq!(color(&["--color=always", "-x"]), Some(ColorChoice::Always));
        for none in [
            &["--color"][..],
            &["--color=x"],
            &["--colors"],
            &["--", "--color=never"],
        ] {
            assert_eq!(color(none), None, "{none:?}");
        }
    }
}
