//! What the fuzz targets call of this module that is private otherwise.

use anyhow::Result;

use super::settings::Settings;

/// The settings that a settings file with this text gives.
pub fn settings(text: &str) -> Result<impl std::fmt::Debug + use<>> {
    Settings::of_file(text)
}
