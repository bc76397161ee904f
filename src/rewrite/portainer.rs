//! How Portainer reads what it stores (M07, M12).

use composefile::{
    interpolate::Lookup,
    reader::{Context, EnvFiles},
};

/// The name of the env file that Portainer writes.
pub const STACK_ENV: &str = "stack.env";

/// The container of Portainer sets these variables, and they override `stack.env`.
pub const SET_BY_PORTAINER: [&str; 3] = ["HOME", "HOSTNAME", "PATH"];

/// Stands for their values, which this program does not know.
pub const UNKNOWN: &str = "\0";

static NO_FILES: EnvFiles = EnvFiles::new();

/// The context in which Portainer reads a stack in `folder`. `home` and `shell` are those of its container.
pub fn context<'a>(
    folder: &'a str,
    home: &'a str,
    shell: Lookup<'a>,
    project: &'a str,
) -> Context<'a> {
    Context {
        stack_dir: folder,
        file: "docker-compose.yml",
        env_file: STACK_ENV,
        home: Some(home),
        shell,
        project: Some(project),
        overrides: &[],
        env_files: &NO_FILES,
    }
}
