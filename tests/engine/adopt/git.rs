//! A stack from Git: what Portainer deploys from the clone is compared with what runs, by real config hashes (M24).

use std::fs;

use rehearsal::Files;

use super::{Case, by_old_portainer, scenario::Scenario};

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

/// The patch is enough: then no container is touched. A later commit recreates every container, and data stays.
fn a_git_stack_keeps_what_runs(case: Case) {
    let files = [(".env", "NAME=joe\nTOKEN='1 # 2'\n"), ("data/kept", "")];
    let scenario = Scenario::stopped(case, TEXT, &[]);
    let stack = &scenario.stack;
    fs::create_dir(stack.dir().join("data")).expect("a directory");
    for (name, text) in files {
        stack.file(name, text);
    }
    scenario.start();
    let project = stack.host.project.as_str();
    let push = |text: String| {
        stack.rehearsal.world(|world| {
            let main = "refs/heads/main".to_owned();
            let repository = world.repositories.entry(URL.to_owned()).or_default();
            repository.default.clone_from(&main);
            let files = Files::from([("blog/compose.yaml".to_owned(), text)]);
            repository.branches.insert(main, files);
        });
    };
    let flags = ["--git", URL, "--path", "blog/compose.yaml"];
    let adopt = [&["adopt", project, "--yes"], &flags[..]].concat();
    let text = fs::read_to_string(stack.dir().join("docker-compose.yml")).expect("the file");
    push(text.clone());
    let before = scenario.state();
    let refused = stack.run(&adopt).code(1);
    let data = format!("{}/data:/data", stack.dir().display());
    refused.says(&[
        "+    env_file: ../stack.env",
        &data,
        "Portainer cannot read .env",
    ]);
    let text = text
        .replace("env_file: .env", "env_file: ../stack.env")
        .replace("./data:/data", &data);
    push(text.clone());
    let adopted = stack.run(&adopt).code(0);
    adopted.says(&[&format!("adopted {project}: 2 containers kept running")]);
    assert_eq!(scenario.state().containers.len(), 2);
    let ids = stack.ids();
    let kept = before.containers.values();
    let mut kept: Vec<&str> = kept.filter_map(|one| one["Id"].as_str()).collect();
    let mut now: Vec<&str> = ids.iter().map(String::as_str).collect();
    kept.sort_unstable();
    now.sort_unstable();
    assert_eq!(now, kept);
    push(format!("# a new commit\n{text}"));
    let updated = stack.run(&adopt).code(0);
    updated.says(&[&format!("updated {project}: ")]);
    assert!(stack.ids().iter().all(|id| !ids.contains(id)));
    assert_eq!(scenario.state().data, before.data);
}
by_old_portainer! { a_git_stack_keeps_what_runs }
