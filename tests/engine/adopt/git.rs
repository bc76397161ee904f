//! A stack from Git: what Portainer deploys from the clone is compared with what runs, by real config hashes (M24).

use testbed::Files;

use super::cases;
use crate::{
    bench::{Case, Stack},
    host::Compose,
    state::Happened,
};

cases! { [by_old by_newer_with_5] a_git_stack_keeps_what_runs }

const URL: &str = "https://git.example/stacks.git";
const TEXT: &str = "services:
  web:
    $SLEEP
    env_file: .env
    volumes: ['./data:/data']
    stop_grace_period: 1s
  db:
    $SLEEP
    environment: {NAME: '${NAME}'}
    stop_grace_period: 1s
";

/// The patch is enough, which has the long syntax for what Compose 5 created (B39): then no container is touched. A later commit
/// recreates every container, and data stays.
fn a_git_stack_keeps_what_runs(case: Case) {
    let files = [(".env", "NAME=joe\nTOKEN='1 # 2'\n"), ("data/kept", "")];
    let stack = Stack::by(case).running(TEXT, &files);
    let push = |text: &str| {
        stack.rehearsal.git(|git| {
            let main = "refs/heads/main".to_owned();
            let repository = git.repositories.entry(URL.to_owned()).or_default();
            repository.default.clone_from(&main);
            let files = Files::from([("blog/compose.yaml".to_owned(), text.to_owned())]);
            repository.branches.insert(main, files);
        });
    };
    let adopt = format!("adopt $PROJECT --git {URL} --path blog/compose.yaml");
    let text = stack.text();
    push(&text);
    let before = stack.state();
    let data = format!("{}/data", stack.root().join("$PROJECT").display());
    let data = match case.origin {
        Compose::Two => format!("{data}:/data"),
        Compose::Five => format!("{{type: bind, source: {data}, target: /data, bind: {{}}}}"),
    };
    let patch = ["+    env_file: ../stack.env", &data];
    let run = stack.run(&adopt);
    run.fails(&patch).says("env file .env not found");
    let text = text
        .replace("env_file: .env", "env_file: ../stack.env")
        .replace("'./data:/data'", &stack.host.filled(&data));
    push(&text);
    let adopted = stack.run(&adopt);
    adopted.succeeds("adopted $PROJECT: 2 containers kept running");
    let kept = stack.containers();
    before.containers.assert_untouched(&kept);
    if case.origin == Compose::Five {
        return;
    }
    push(&format!("# a new commit\n{text}"));
    stack.run(&adopt).succeeds("updated $PROJECT: ");
    let now = stack.state();
    let happened = kept.happened(&now.containers);
    assert_eq!([happened["db"], happened["web"]], [Happened::Recreated; 2]);
    assert_eq!(now.data, before.data);
}
