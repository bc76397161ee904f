//! What `export` reports.

use schemars::JsonSchema;
use serde::Serialize;

/// What `stacklift export --output json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "The output of `stacklift export --output json`")]
pub struct ExportReport {
    /// The version of this format: 1.
    pub version: u32,
    pub stacks: Vec<ExportedStack>,
}

/// A stack that was to be exported.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ExportedStack {
    pub stack: String,
    /// The directory, as it was given; null if nothing was written.
    pub dir: Option<String>,
    /// The names of the files in it.
    pub files: Vec<String>,
    /// How many variables they have.
    pub variables: usize,
    /// What to know about them.
    pub notes: Vec<String>,
    /// Whether the stack has data in Portainer's directory, which is deleted with the stack in Portainer.
    #[serde(skip)]
    pub moves_data: bool,
    /// Why nothing was written.
    pub error: Option<String>,
}
