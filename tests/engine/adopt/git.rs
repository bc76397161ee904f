//! A stack from Git: what Portainer deploys from the clone is compared with what runs, by real config hashes (M24).

use testbed::Files;

use super::{Case, Origin, by, scenario::Scenario};
use crate::sameness::ids;

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

/// The patch is enough, which has the long syntax for what Compose 5 created (B39): then no container is touched. A later commit recreates every container, and data stays.
fn a_git_stack_keeps_what_runs(case: Case) {
    let files = [(".env", "NAME=joe\nTOKEN='1 # 2'\n"), ("data/kept", "")];
    let scenario = Scenario::new(case, TEXT, &files);
    let stack = &scenario.stack;
    let project = stack.host.project.as_str();
    let push = |text: String| {
        stack.rehearsal.git(|git| {
            let main = "refs/heads/main".to_owned();
            let repository = git.repositories.entry(URL.to_owned()).or_default();
            repository.default.clone_from(&main);
            let files = Files::from([("blog/compose.yaml".to_owned(), text)]);
            repository.branches.insert(main, files);
        });
    };
    let adopt = format!("adopt $PROJECT --git {URL} --path blog/compose.yaml");
    let text = stack.text();
    push(text.clone());
    let before = scenario.state();
    let data = format!("{}/data", stack.dir().display());
    let data = match case.origin {
        Origin::Two => format!("{data}:/data"),
        Origin::Five => format!("{{type: bind, source: {data}, target: /data, bind: {{}}}}"),
    };
    stack.run(&adopt).fails(&[
        "+    env_file: ../stack.env",
        &data,
        "env file .env not found",
    ]);
    let text = text
        .replace("env_file: .env", "env_file: ../stack.env")
        .replace("'./data:/data'", &data);
    push(text.clone());
    let adopted = stack.run(&adopt).code(0);
    adopted.says(&format!("adopted {project}: 2 containers kept running"));
    let kept = stack.containers();
    assert_eq!(ids(&kept), ids(&before.containers));
    if case.origin == Origin::Five {
        return;
    }
    push(format!("# a new commit\n{text}"));
    let updated = stack.run(&adopt).code(0);
    updated.says(&format!("updated {project}: "));
    let (now, kept) = (stack.ids(), ids(&kept));
    assert!(now.iter().all(|id| kept.values().all(|old| old != id)));
    assert_eq!(scenario.state().data, before.data);
}
by! { a_git_stack_keeps_what_runs:
    by_old OLD "needs a container engine: run scripts/test"
    by_newer_with_5 NEWER_FROM_FIVE "needs a container engine, STACKLIFT_TEST_NEWER and STACKLIFT_TEST_COMPOSE_5: run scripts/test"
}
