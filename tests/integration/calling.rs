//! C01–C11: how the program is called.

use crate::{
    bench::{Bench, PLAIN},
    screen::screen,
};

/// Its ID is needed next, and takes a real engine 5 ms.
#[test]
fn the_engine_is_asked_for_its_id_while_portainer_lists_the_stacks() {
    let bench = Bench::on_disk(PLAIN);
    let base = format!("{}/not/it", bench.base_url());
    bench.run(&["web", "--base-url", &base]).code(1);
    let ids = |bench: &Bench| {
        let requests = bench.requests();
        let all = requests.iter().filter(|one| one.path.ends_with("/info"));
        all.count()
    };
    assert_eq!(ids(&bench), 1);
    bench.forget_requests();
    bench.run("web").code(0);
    assert_eq!(ids(&bench), 1);
}

/// The short help on a terminal of this width.
fn short_help(bench: &Bench, command: &str, columns: u16) -> String {
    let args = format!("{command} -h");
    screen(bench.command(args.trim()).env("NO_COLOR", "1"), columns)
}

#[test]
fn the_short_help_is_one_screen() {
    let bench = Bench::new();
    assert_eq!(
        short_help(&bench, "", 80),
        "\
Moves a running Compose stack into Portainer

Usage: stacklift [OPTIONS] <COMMAND>
       stacklift [OPTIONS] <STACK>   the same as `stacklift migrate <STACK>`

Commands:
  plan         Show what adopting a stack would do
  adopt        Move a running stack into Portainer
  restore      Roll back a stack to a snapshot
  list         List every stack, and what adopting it would interrupt
  doctor       Check everything that the other commands need
  config       Show the settings; `config init` writes them
  export       Export a Portainer stack as compose.yaml and .env
  rehearse     Try it with a simulated Portainer and Docker
  migrate      Stop a stack and recreate it in Portainer
  completions  Print a completion script for a shell
  help         Print this message or the help of the given subcommand(s)

Options:
  -q, --quiet    Print only warnings and errors
  -v, --verbose  Print each request, and errors in full
  -h, --help     Print help (see more with '--help')
  -V, --version  Print version

stacklift <COMMAND> -h   the flags of a command
stacklift --help         examples, settings files, variables and exit codes
"
    );
    for flag in ["--dry-run", "--git <URL>", "--access <WHO>"] {
        assert!(short_help(&bench, "adopt", 80).contains(flag), "{flag}");
    }
    let help = short_help(&bench, "", 80);
    for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
        let command = line.split(' ').next().unwrap_or_default();
        if !command.is_empty() && !command.starts_with('-') && command != "help" {
            let lines = short_help(&bench, command, 80).lines().count();
            assert!(lines <= 26, "{command}: {lines} lines");
        }
    }
}
