//! The flags that name a Git repository.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};

use super::super::options;

/// The repository that Portainer deploys the stack from.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("values").multiple(true))]
pub(in crate::cli) struct GitArguments {
    /// Let Portainer take the file from this repository
    ///
    /// The stack becomes a Git stack. Portainer reads the repository first. If deploying it would change a container, nothing is sent, and a
    /// patch for the repository is printed. Only for one stack at a time.
    #[arg(long = "git", value_name = "URL", value_parser = url, group = "values")]
    pub git: Option<String>,
    /// Branch of the repository, or refs/tags/NAME [default: its default branch]
    #[arg(long = "ref", value_name = "REF", value_parser = reference, requires = "git")]
    #[arg(hide_short_help = true)]
    pub reference: Option<String>,
    /// Compose file in the repository [default: the name of the stack's Compose file]
    #[arg(long, value_name = "FILE", value_parser = path, requires = "git")]
    #[arg(hide_short_help = true)]
    pub path: Option<String>,
    /// Further Compose file in the repository, which overrides those before it; can be repeated
    #[arg(long = "additional-file", value_name = "FILE", value_parser = path, requires = "git")]
    #[arg(hide_short_help = true)]
    pub additional: Vec<String>,
    /// How often Portainer looks for a new commit and deploys it, such as 5m [default: never]
    #[arg(long, value_name = "DURATION", value_parser = interval, requires = "git")]
    #[arg(hide_short_help = true)]
    pub auto_update: Option<String>,
    /// User name for the repository; also `STACKLIFT_GIT_USER`
    #[arg(long, value_name = "NAME", requires = "git", hide_short_help = true)]
    pub git_user: Option<String>,
    /// File with the password or token for the repository; also `STACKLIFT_GIT_PASSWORD`
    ///
    /// The first line is the password. There is no flag for the password itself.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "git")]
    #[arg(hide_short_help = true)]
    pub git_password_file: Option<PathBuf>,
    /// Let Portainer accept any certificate of the Git server
    #[arg(long, requires = "git", hide_short_help = true)]
    pub git_skip_tls_verify: bool,
    /// Show the values of variables in a diff, a request, or the patch for the repository
    #[arg(long, requires = "values", hide_short_help = true)]
    pub reveal: bool,
}

impl GitArguments {
    /// The flags for a command that is printed.
    pub(in crate::cli) fn flags(&self) -> Vec<String> {
        let file = self.git_password_file.as_ref();
        let file = file.map(|file| file.to_string_lossy().into_owned());
        let given = [
            ("--git", self.git.as_slice()),
            ("--ref", self.reference.as_slice()),
            ("--path", self.path.as_slice()),
            ("--additional-file", &self.additional),
            ("--auto-update", self.auto_update.as_slice()),
            ("--git-user", self.git_user.as_slice()),
            ("--git-password-file", file.as_slice()),
        ];
        let words = |(flag, values): (&str, &[String])| {
            let of_one = |value: &String| [flag.to_owned(), value.clone()];
            values.iter().flat_map(of_one).collect::<Vec<_>>()
        };
        let no_tls = self.git_skip_tls_verify;
        let no_tls = no_tls.then(|| "--git-skip-tls-verify".to_owned());
        given.into_iter().flat_map(words).chain(no_tls).collect()
    }
}

fn url(text: &str) -> Result<String, String> {
    let mut schemes = ["http://", "https://"].iter();
    let Some(after) = schemes.find_map(|scheme| text.strip_prefix(scheme)) else {
        return Err("expected an http:// or https:// URL: Portainer reads no others".to_owned());
    };
    let host = after.split('/').next().unwrap_or_default();
    if host.contains('@') || text.contains(['?', '#']) {
        return Err("it contains credentials or a query, which Portainer would store and show: pass --git-user and --git-password-file instead".to_owned());
    }
    if host.is_empty() || text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err("expected the URL of a repository".to_owned());
    }
    // Portainer removes it when it deploys, and not when it reads a file.
    Ok(text.trim_end_matches('/').to_owned())
}

/// The full name. Portainer reads files with a short one, and deploys only with the full one (M24).
fn reference(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err("expected the name of a branch".to_owned());
    }
    if text.starts_with("refs/") {
        return Ok(text.to_owned());
    }
    Ok(format!("refs/heads/{text}"))
}

fn path(text: &str) -> Result<String, String> {
    let path = text.strip_prefix("./").unwrap_or(text);
    let is_name = |part: &str| !["", ".", ".."].contains(&part);
    if path.split('/').all(is_name) && !path.contains(char::is_control) {
        return Ok(path.to_owned());
    }
    Err("expected the path of a file from the root of the repository".to_owned())
}

/// As Portainer writes it.
fn interval(text: &str) -> Result<String, String> {
    options::duration(text)?;
    let has_unit = text.ends_with(|c: char| !c.is_ascii_digit());
    Ok(text.to_owned() + if has_unit { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m24_what_portainer_accepts_of_a_repository() {
        assert_eq!(url("https://h/a.git/").as_deref(), Ok("https://h/a.git"));
        for text in [
            "git@h:a.git",
            "ssh://h/a",
            "https://",
            "https://u:p@h/a",
            "/a",
            "https://h/a b",
            "https://h/a?token=t",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
        assert_eq!(reference("main").as_deref(), Ok("refs/heads/main"));
        assert_eq!(reference("refs/tags/v1").as_deref(), Ok("refs/tags/v1"));
        let expected = Ok("blog/compose.yaml");
        assert_eq!(path("./blog/compose.yaml").as_deref(), expected);
        for text in ["", "/a", "../a", "a/../b", "a/", "a//b", "."] {
            assert!(path(text).is_err(), "{text}");
        }
        assert_eq!(interval("300").as_deref(), Ok("300s"));
        assert_eq!(interval("5m").as_deref(), Ok("5m"));
        assert!(interval("5 minutes").is_err());
    }
}
