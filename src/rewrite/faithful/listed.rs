//! The files that `env_file` names.

use composefile::{
    document::Node,
    reader::Reader,
    services::{EnvFile, Service},
};

use super::{Finding, Kind};

/// One env file that a service names.
#[derive(Clone)]
pub(super) struct Listed<'d> {
    /// The node of the path.
    pub(super) path: Node<'d>,
    /// The absolute path.
    pub(super) file: String,
    pub(super) is_required: bool,
    /// Whether it is read in the default format.
    pub(super) is_plain: bool,
}

impl Listed<'_> {
    /// Whether it is the file that gives the variables of the project.
    pub(super) fn is_own(&self, reader: &Reader<'_, '_>) -> bool {
        self.file == reader.own_env && self.is_plain
    }

    /// The file, for people: as written if the text contains a variable, whose value must not be shown.
    pub(super) fn shown(&self) -> &str {
        let written = self.path.as_str().unwrap_or_default();
        if written.contains('$') {
            written
        } else {
            &self.file
        }
    }

    /// The blocker for a file that must exist.
    pub(super) fn missing(&self, service: Service<'_>) -> Finding {
        let (file, service) = (self.shown(), service.name);
        let message = format!("the env file {file} of service {service} does not exist");
        let hint = "create it: Compose rejects the stack without it";
        Finding::at(self.path, Kind::MissingEnvFile, message, hint)
    }
}

/// The env files that a service names, in order. Leaves out paths that cannot be interpolated, which
/// block the rewrite like every such text.
pub(super) fn listed<'d>(reader: &Reader<'_, '_>, service: Service<'d>) -> Vec<Listed<'d>> {
    let read = |file: EnvFile<'d>| {
        let word = |text: Option<&'d str>| reader.read(text?).ok();
        let format = word(file.format);
        Some(Listed {
            path: file.node,
            file: reader.base().local(&reader.read(file.path).ok()?),
            is_required: word(file.required).as_deref() != Some("false"),
            is_plain: format.is_none_or(|format| matches!(&*format, "" | ".env")),
        })
    };
    service.env_files().into_iter().filter_map(read).collect()
}
