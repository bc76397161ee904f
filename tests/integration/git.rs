//! `stacklift adopt --git`: a stack that Portainer deploys from a Git repository (M24, M25).

use std::{fs, time::Duration};

use rehearsal::{Call, Era, FaultKind, Files, Status, World};
use serde_json::{Value, json};

use crate::{
    bench::{Bench, MARKED, PLAIN, Run, done, id_of, instead, write_private},
    interrupted::killed_running,
};

const URL: &str = "https://git.example/stacks.git";

/// The flags of most tests.
const FLAGS: &str = "--git https://git.example/stacks.git --ref main --path blog/compose.yaml";

/// Its Compose file.
pub const FILE: &str = "blog/compose.yaml";

fn push(world: &mut World, files: &[(&str, &str)]) {
    let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let files: Files = files.iter().map(own).collect();
    let main = "refs/heads/main".to_owned();
    let repository = world.repositories.entry(URL.to_owned()).or_default();
    repository.default.clone_from(&main);
    repository.branches.insert(main, files);
}

/// The stack `web`, started by hand, and the repository with these files.
fn bench(compose: &str, env: Option<&str>, files: &[(&str, &str)]) -> Bench {
    bench_of(Era::Sync, compose, env, files)
}

fn bench_of(era: Era, compose: &str, env: Option<&str>, files: &[(&str, &str)]) -> Bench {
    let bench = Bench::of(era);
    bench.started("web", compose, env);
    bench.world(|world| push(world, files));
    bench
}

pub fn run(bench: &Bench, args: &str) -> Run {
    run_with(bench, args, &[])
}

pub fn run_with(bench: &Bench, args: &str, env: &[(&str, &str)]) -> Run {
    Run::of(bench.command(args).envs(env.iter().copied()))
}

/// The body of the one create.
pub fn sent(bench: &Bench) -> Value {
    let creates = bench.calls(Call::CreateGit);
    assert_eq!(creates.len(), 1);
    serde_json::from_slice(&creates[0].body).expect("JSON")
}

/// Whether Portainer was only read.
pub fn nothing_was_sent(bench: &Bench) -> bool {
    bench
        .requests()
        .iter()
        .all(|one| matches!(one.method.as_str(), "GET" | "HEAD") || one.call == Call::Preview)
}

#[test]
fn m24_a_stack_that_git_has_as_it_runs_is_adopted_from_there() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    let before = bench.containers("web");
    let flags = FLAGS.replace(" main", " refs/heads/main");
    let next = format!("stacklift adopt web {flags}\n");
    run(&bench, &format!("plan web {FLAGS}")).succeeds(&["keeps running", &next]);
    assert!(nothing_was_sent(&bench));
    run(&bench, &format!("adopt web {FLAGS} --auto-update 5m")).succeeds("adopted web: 1 container kept running\n  Git        blog/compose.yaml of https://git.example/stacks.git (main), commit ");
    assert_eq!(bench.containers("web"), before);
    let expected = json!({
        "name": "web",
        "repositoryURL": URL,
        "repositoryReferenceName": "refs/heads/main",
        "composeFile": FILE,
        "additionalFiles": [],
        "env": [],
        "autoUpdate": {"interval": "5m"},
        "repositoryAuthentication": false,
        "repositoryUsername": "",
        "tlsskipVerify": false,
        "fromAppTemplate": false,
    });
    assert_eq!(sent(&bench), expected);
    assert!(bench.calls(Call::Create).is_empty());
    // Portainer clones the repository for each: `.env` and the Compose file, twice in an adoption.
    assert_eq!(bench.calls(Call::Preview).len(), 2 + 4);
}

#[test]
fn m24_what_differs_is_printed_as_a_patch_and_nothing_is_sent() {
    let text = PLAIN.replace("sleep 1000", "sleep 9");
    let bench = bench(PLAIN, None, &[(FILE, &text)]);
    let patch = "--- a/blog/compose.yaml\n+++ b/blog/compose.yaml\n@@ -1,4 +1,4 @@\n services:\n   a:\n     image: busybox:1.36\n-    command: sleep 9\n+    command: sleep 1000\n";
    let adopted = run(&bench, &format!("adopt web {FLAGS}")).code(1);
    assert!(adopted.out.ends_with(patch), "{adopted:#?}");
    adopted.says(&[
        "  1. deploying blog/compose.yaml of https://git.example/stacks.git (main) would change what runs\n     - a would be recreated: command differs\n     apply the patch below to the repository",
        "\nNothing was changed.\n",
    ]);
    let planned = run(&bench, &format!("plan web {FLAGS}")).code(1);
    assert!(planned.out.contains(patch), "{planned:#?}");
    let diff = run(&bench, &format!("plan web {FLAGS} --diff")).code(0);
    diff.prints(patch);
    let planned = run(&bench, &format!("plan web {FLAGS} --output json"));
    let report = planned.code(1).report("plan");
    assert_eq!(report["adopt"]["patch"], patch);
    assert_eq!(report["adopt"]["request"]["kind"], "create-git");
    let adopted = run(&bench, &format!("adopt web {FLAGS} --output json"));
    let report = adopted.code(1).report("adopt");
    assert_eq!(report["plan"]["patch"], patch);
    assert!(nothing_was_sent(&bench));
}

#[test]
fn m24_the_patch_hides_values_and_reveal_shows_them() {
    let of = |value: &str| format!("{PLAIN}    environment:\n      TOKEN: {value}\n");
    let bench = bench(&of("hunter2"), None, &[(FILE, &of("other"))]);
    run(&bench, &format!("adopt web {FLAGS}")).fails(&[
        "+      TOKEN: \"***\" (value changed)\n",
        "--reveal shows the patch",
    ]);
    run(&bench, &format!("plan web {FLAGS} --diff --reveal"))
        .succeeds("-      TOKEN: other\n+      TOKEN: hunter2\n");
}

#[test]
fn m24_an_equal_env_file_in_the_repository_is_not_sent_again() {
    let text = format!("{PLAIN}    env_file: .env\n");
    let files = [(FILE, text.as_str()), ("blog/.env", "# comment\nA='1'\n")];
    let own = bench(&text, Some("A=1\n"), &files);
    run(&own, &format!("adopt web {FLAGS}")).code(0);
    assert_eq!(sent(&own)["env"], json!([]));
    let other = format!("A=2\nSAME=1\nTOKEN={MARKED}\n");
    let files = [(FILE, text.as_str()), ("blog/.env", other.as_str())];
    let other = bench(&text, Some("A=1\nSAME=1\n"), &files);
    run(&other, &format!("adopt web {FLAGS}"))
        .fails(&[
            "+    env_file: ../stack.env\n",
            "- blog/.env in the repository differs from the variables of this host: A and TOKEN\n",
        ])
        .hides("Portainer cannot read")
        .hides(MARKED);
    assert!(nothing_was_sent(&other));
}

#[test]
fn m25_a_private_repository_needs_its_password_which_is_never_shown() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    bench.world(|world| {
        let repository = world.repositories.get_mut(URL).expect("a repository");
        repository.password = Some(MARKED.to_owned());
    });
    let folder = tempfile::tempdir().expect("a folder");
    let right = folder.path().join("right");
    write_private(&right, &format!("{MARKED}\n"));
    let with = |file: &std::path::Path| {
        format!(
            "adopt web -v {FLAGS} --git-user bob --git-password-file {}",
            file.display()
        )
    };
    run(&bench, &format!("adopt web {FLAGS} --git-user bob")).fails("--git-user needs a password");
    assert!(nothing_was_sent(&bench));
    run(&bench, &format!("{} --output json", with(&right))).code(0);
    let body = sent(&bench);
    assert_eq!(body["repositoryUsername"], "bob");
    assert_eq!(body["repositoryPassword"], MARKED);
    assert_eq!(body["repositoryAuthentication"], true);
    // From a variable, too. The stack is there then.
    let user = ("STACKLIFT_GIT_USER", "bob");
    let env = [("STACKLIFT_GIT_PASSWORD", MARKED), user];
    bench.world(|world| world.records.clear());
    run_with(&bench, &format!("plan web {FLAGS} --request"), &env)
        .succeeds("\"repositoryUsername\": \"bob\"")
        .hides("repositoryPassword");
}

#[test]
fn m25_what_portainer_cannot_read_is_named() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    for (flags, hint) in [
        ("stacks.git --path nope.yaml", "check --path and --ref"),
        ("stacks.git --ref nope", "no such branch"),
        ("nope.git", "if the repository is private"),
    ] {
        let flags = format!("--git https://git.example/{flags}");
        let run = run(&bench, &format!("adopt web {flags}"));
        run.fails(&["error: Portainer cannot read ", hint, "Nothing was changed"]);
    }
    let certificate = "tls: failed to verify certificate: x509";
    let refused = "dial tcp 127.0.0.1:7009: connect: connection refused";
    for (reason, hint) in [
        (certificate, "--git-skip-tls-verify"),
        (refused, "has to reach the Git server"),
    ] {
        let message = format!("unable to clone git repository, error: {reason}");
        let body = json!({ "message": message, "details": message });
        bench.always(Call::Preview, instead(500, &body.to_string()));
        run(&bench, &format!("adopt web {FLAGS}")).fails(&[reason, hint]);
    }
    let credentials = "https://u:s3cr3t-x@git.example/a.git";
    let query = "https://git.example/a.git?s3cr3t-x";
    for wrong in ["git@git.example:a.git", credentials, query] {
        let refused = run(&bench, &format!("adopt web --git {wrong}"));
        refused.code(2).hides("s3cr3t-x");
    }
    run(&bench, "adopt --all --git https://git.example/stacks.git").code(2);
    run(&bench, "adopt web --ref main").code(2);
    assert!(nothing_was_sent(&bench));
}

/// Portainer clones before it responds, and deploys afterwards.
#[test]
fn n27_newer_versions_deploy_from_git_in_the_background() {
    let bench = bench_of(Era::Async, PLAIN, Some("A=1\n"), &[(FILE, PLAIN)]);
    let blocked = json!({"message": "Invalid request payload", "details": "address is blocked"});
    bench.once(Call::Preview, instead(400, &blocked.to_string()));
    bench.once(Call::Preview, instead(400, &blocked.to_string()));
    run(&bench, &format!("adopt web {FLAGS}")).fails("its SSRF protection may refuse the address");
    // The repository disappears after the last preview.
    let before = bench.containers("web");
    for _ in 0..3 {
        bench.world_with(Call::Preview, |_| ());
    }
    bench.world_with(Call::Preview, |world| world.repositories.clear());
    run(&bench, &format!("adopt web {FLAGS}")).fails("error: Portainer could not deploy web: Failed to prepare stack: unable to clone git repository: failed to clone git repository: repository not found\nNo container was changed; Portainer does not list the stack.\n");
    bench.world(|world| push(world, &[(FILE, PLAIN)]));
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("adopted web: 1 container kept running");
    assert_eq!(bench.containers("web"), before);
    bench.world(|world| push(world, &[(FILE, &newer())]));
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("updated web: a was down for");
    let record = bench.first_record();
    assert_eq!(record.status, Status::Active);
    assert_eq!(record.env.expect("variables")[0].name, "A");
}

#[test]
fn m24_a_branch_that_moves_while_it_is_deployed_is_noticed() {
    let moved = PLAIN.replace("services:", "# moved\nservices:");
    let late = bench(PLAIN, None, &[(FILE, PLAIN)]);
    let body = json!({ "StackFileContent": moved }).to_string();
    late.always(Call::File, done(200, &body));
    let before = late.containers("web");
    run(&late, &format!("adopt web {FLAGS}")).fails(&[
        "the branch got a new commit while Portainer deployed it: Portainer stack 1 has commit ",
        "the containers run as before",
    ]);
    assert_eq!(late.containers("web"), before);
}

#[test]
fn m24_a_branch_that_moves_while_a_git_stack_is_deployed_again_is_noticed() {
    let bench = adopted(None);
    bench.world(|world| push(world, &[(FILE, &newer())]));
    let moved = json!({ "StackFileContent": PLAIN }).to_string();
    bench.always(Call::File, done(200, &moved));
    let run = run(&bench, &format!("adopt web {FLAGS}")).fails(&[
        "the branch got a new commit while Portainer deployed it",
        "web-a-1 was recreated",
    ]);
    assert!(!run.err.contains("run as before"), "{}", run.err);
}

#[test]
fn m24_a_relative_path_in_the_repository_is_another_directory() {
    let mounts = |source: &str| format!("{PLAIN}    volumes: [\"{source}:/data\"]\n");
    let bench = bench(&mounts("/srv"), None, &[(FILE, &mounts("/srv"))]);
    run(&bench, &format!("adopt web {FLAGS}")).code(0);
    bench.world(|world| push(world, &[(FILE, &mounts("./data"))]));
    run(&bench, &format!("plan web {FLAGS}"))
        .succeeds("data of Portainer's copy of the repository is mounted at /data instead of /srv");
    run(&bench, &format!("adopt web {FLAGS} --yes")).code(0);
    let id = id_of(&bench.saved("")[0]);
    run(&bench, &format!("restore web --dry-run --to {id}")).succeeds(
        "files in /data/compose/1/blog/data may be lost: Portainer deletes its directory of the stack",
    );
    // What it mounts then stays.
    let text = mounts("./data").replace("sleep 1000", "sleep 9");
    bench.world(|world| push(world, &[(FILE, &text)]));
    let planned = run(&bench, &format!("plan web {FLAGS}")).code(0);
    assert!(!planned.out.contains("instead of"), "{}", planned.out);
}

#[test]
fn m24_an_interrupted_adoption_from_git_goes_on_with_its_repository() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    let adopt = bench.command(&format!("adopt web {FLAGS}"));
    killed_running(adopt, Call::CreateGit, &bench, FaultKind::Hang, || {});
    let words = FLAGS.replace(" main", " refs/heads/main");
    let next = format!("stacklift adopt web {words}\n");
    run(&bench, "list").succeeds(&["interrupted run", &next]);
    run(&bench, "plan web").succeeds(&format!("Next: {next}"));
    run(&bench, next.trim_start_matches("stacklift ").trim_end())
        .succeeds("adopted web: 1 container kept running");
}

#[test]
fn m24_a_portainer_stack_does_not_become_a_git_stack() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    run(&bench, "adopt web").code(0);
    bench.forget_requests();
    run(&bench, &format!("adopt web {FLAGS}"))
        .fails("  1. Portainer stack 1 is not from Git, and Portainer cannot link it to Git\n     - it would have to be deleted, which removes its containers\n     - web-a-1 would be interrupted\n     you can keep it as it is. To have it from Git all the same: stacklift restore web --to ");
    assert!(nothing_was_sent(&bench));
    // A second adoption has a snapshot of its own.
    let first = id_of(&bench.saved("")[0]);
    bench.stack("web", &newer(), None);
    bench.run("adopt web --yes").code(0);
    let undo = format!("restore web --to {first}");
    run(&bench, &format!("plan web {FLAGS}")).fails(&format!(" stacklift {undo}; then"));
    run(&bench, &format!("{undo} --yes")).code(0);
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("adopted web: 1 container kept running");
}

#[test]
fn m24_what_compose_cannot_read_is_not_compared() {
    let bench = bench(PLAIN, None, &[(FILE, PLAIN)]);
    let fails = "[ \"$1\" = version ] && { echo 2.26.1; exit; }\necho broken >&2\nexit 1\n";
    bench.script("docker-compose", fails);
    let says = "cannot compare what the repository deploys with what runs: ";
    bench.stops(&format!("adopt web {FLAGS}"), says);
}

/// The stack, adopted from the repository.
fn adopted(env: Option<&str>) -> Bench {
    let bench = bench(PLAIN, env, &[(FILE, PLAIN)]);
    run(&bench, &format!("adopt web {FLAGS}")).code(0);
    bench.forget_requests();
    bench
}

/// A newer Compose file.
fn newer() -> String {
    PLAIN.replace("sleep 1000", "sleep 9")
}

/// What was edited in Portainer: the text, and the value of the variable.
fn portainer_has(bench: &Bench, text: &str, value: &str) {
    bench.change_record(|record| {
        text.clone_into(&mut record.text);
        value.clone_into(&mut record.env.as_mut().expect("variables")[0].value);
    });
}

#[test]
fn b22_a_git_stack_is_left_to_its_repository() {
    let bench = adopted(None);
    let told = "is deployed from Git: edit blog/compose.yaml of https://git.example/stacks.git (main) in the repository";
    for text in [PLAIN, &newer()] {
        bench.stack("web", text, None);
        run(&bench, "adopt web").succeeds(&["web ", told]);
        run(&bench, "plan web").succeeds(&["web ", told]);
        run(&bench, "list").succeeds(&["in Portainer, from Git", "edit it in Git"]);
        for args in ["plan web --request", "plan web --diff"] {
            run(&bench, args)
                .succeeds("nothing would be sent: Portainer deploys the stack from Git");
        }
        let report = run(&bench, "adopt web --output json")
            .code(0)
            .report("adopt");
        assert_eq!(report["git"]["path"], FILE);
    }
    run(&bench, "render web")
        .says("the last adoption deployed it from Git: this is about the files on this host");
    // Also if it does not run, or if the branch has moved.
    bench.world(|world| push(world, &[(FILE, &newer())]));
    run(&bench, "adopt web").succeeds(told);
    assert!(nothing_was_sent(&bench));
}

#[test]
fn m24_an_update_of_a_git_stack_is_a_new_deployment_which_recreates_everything() {
    let bench = adopted(Some("A=1\n"));
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("nothing new to deploy");
    assert!(nothing_was_sent(&bench));
    let before = bench.containers("web");
    // What was edited in Portainer stays.
    portainer_has(&bench, PLAIN, "2");
    bench.world(|world| push(world, &[(FILE, &newer())]));
    let planned = run(&bench, &format!("plan web {FLAGS} --output json"));
    let planned = planned.code(0).report("plan");
    let redeploy = json!({"kind": "redeploy", "portainer_stack": "1"});
    assert_eq!(planned["adopt"]["request"], redeploy);
    let fate = "the repository changes command";
    assert_eq!(planned["adopt"]["services"][0]["fate"]["reason"], fate);
    run(&bench, &format!("plan web {FLAGS}")).succeeds(&[
        "in Portainer from Git, commit ",
        "Portainer's copy differs from Git in 1 line: add --diff",
    ]);
    run(&bench, &format!("plan web {FLAGS} --diff")).prints("--- blog/compose.yaml\t(in Portainer)\n+++ blog/compose.yaml\t(in Git)\n@@ -1,4 +1,4 @@\n services:\n   a:\n     image: busybox:1.36\n-    command: sleep 1000\n+    command: sleep 9\n");
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("updated web: a was down for");
    let redeploys = bench.calls(Call::Redeploy);
    let body: Value = serde_json::from_slice(&redeploys[0].body).expect("JSON");
    let expected = json!({
        "repositoryReferenceName": "refs/heads/main",
        "repositoryAuthentication": false,
        "repositoryUsername": "",
        "env": [{"name": "A", "value": "2"}],
        "prune": false,
        "pullImage": false,
    });
    assert_eq!((redeploys.len(), body), (1, expected));
    assert_ne!(bench.containers("web"), before);
    assert!(bench.calls(Call::Update).is_empty());
    // The repository may have a `.env` of its own by then.
    let text = format!("{}    env_file: .env\n", newer());
    bench.world(|world| push(world, &[(FILE, &text), ("blog/.env", "A=3\n")]));
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("updated web: a was down for");
    bench.forget_requests();
    run(&bench, &format!("adopt web --git {URL} --path other.yaml"))
        .fails("Portainer stack 1 is deployed from blog/compose.yaml of https://git.example/stacks.git (main), not from other.yaml");
    assert!(nothing_was_sent(&bench));
    // A restore never sends a text: that would end the link.
    run(&bench, "restore web --dry-run")
        .succeeds("the Portainer stack stays as it is, because it is deployed from Git");
    run(&bench, "restore web").succeeds("is deployed from Git, so its Compose file stays as it is");
    assert!(bench.calls(Call::Update).is_empty());
    assert!(bench.first_record().git.is_some());
    // The containers are those of an earlier commit.
    let again = "its containers were restored from another commit: to keep them, revert the commit in the repository; to deploy the commit again, redeploy the stack in Portainer, or adopt it with --git again";
    run(&bench, "plan web").succeeds(again);
    run(&bench, "list").succeeds("in Portainer, containers differ  restored from another commit");
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("updated web: a was down for");
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("nothing new to deploy");
}

#[test]
fn b14_a_restore_deletes_the_git_stack_that_an_adoption_created() {
    let bench = adopted(Some("A=1\n"));
    let edited = "what was edited in Portainer";
    portainer_has(&bench, PLAIN, "2");
    run(&bench, "restore web --dry-run").succeeds(edited);
    // A later commit, which Portainer deployed, is no edit.
    portainer_has(&bench, &newer(), "1");
    run(&bench, "restore web")
        .succeeds("restored web: 1 container")
        .hides(edited);
    assert!(bench.world(|world| world.records.is_empty()));
    assert_eq!(bench.containers("web").len(), 1);
}

#[test]
fn m24_a_git_stack_that_was_deleted_is_recreated_from_its_repository() {
    let bench = bench(PLAIN, Some("A=1\n"), &[(FILE, PLAIN)]);
    let password = [("STACKLIFT_GIT_PASSWORD", MARKED)];
    bench.world(|world| {
        let repository = world.repositories.get_mut(URL).expect("a repository");
        repository.password = Some(MARKED.to_owned());
    });
    let adopt = format!("adopt web {FLAGS} --git-user bob --git-skip-tls-verify --auto-update 5m");
    run_with(&bench, &adopt, &password).code(0);
    let first = sent(&bench);
    bench.world(|world| push(world, &[(FILE, &newer())]));
    run_with(&bench, &adopt, &password).code(0);
    bench.world(|world| world.records.clear());
    bench.forget_requests();
    for args in ["restore web --dry-run", "restore web"] {
        run(&bench, args).fails(&[
            "Portainer cannot read blog/compose.yaml from https://git.example/stacks.git: status 400: Invalid git credential",
            "for a private repository, set STACKLIFT_GIT_PASSWORD",
        ]);
    }
    let told = "the Portainer stack is recreated from blog/compose.yaml of https://git.example/stacks.git (main) as it is now, with a new ID";
    for args in ["restore web --dry-run", "restore web -v"] {
        assert!(nothing_was_sent(&bench));
        let restored = run_with(&bench, args, &password).code(0);
        let other = ": its repository has another Compose file than the snapshot";
        assert_eq!(restored.err.contains(other), !args.contains("--dry-run"));
        restored.says(told).hides(MARKED);
    }
    assert_eq!(sent(&bench), first);
    assert!(bench.calls(Call::Create).is_empty());
    assert!(bench.world(|world| world.records.values().all(|one| one.git.is_some())));
    for path in bench.saved("") {
        let text = fs::read_to_string(&path).expect("a snapshot");
        assert!(!text.contains(MARKED), "{}", path.display());
    }
}

/// Its containers have the labels of the Portainer stack that was deleted.
#[test]
fn m24_a_recreated_git_stack_is_deployed_again() {
    let bench = adopted(None);
    for text in [newer(), PLAIN.to_owned()] {
        bench.world(|world| push(world, &[(FILE, &text)]));
        run(&bench, &format!("adopt web {FLAGS}")).code(0);
    }
    bench.world(|world| world.records.clear());
    run(&bench, "restore web").code(0);
    bench.world(|world| push(world, &[(FILE, &newer())]));
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("updated web: a was down for");
}

#[test]
fn m24_a_new_commit_that_fails_is_left_to_the_repository() {
    let bench = adopted(None);
    let before = bench.containers("web");
    bench.world(|world| push(world, &[(FILE, &newer())]));
    let adopt = format!("adopt web {FLAGS}");
    let again = "again. Its automatic update deploys the repository again within 5m, which may remove every container: revert the commit now";
    for interval in [None, Some("5m")] {
        bench.change_record(|record| record.auto_update = Some(json!({ "Interval": interval })));
        bench.once(Call::Redeploy, FaultKind::LateFailure(Duration::ZERO));
        run(&bench, &adopt)
            .fails("which does not run: fix it in the repository, then run the command again")
            .hides(&["stacklift restore", "of before"])
            .says(interval.map_or("again\n", |_| again));
        assert_eq!(bench.containers("web").len(), before.len());
        run(&bench, "list").succeeds(&["failed run", "edit it in Git"]);
        let plan = run(&bench, &format!("plan web {FLAGS}")).code(0);
        plan.says(&[
            "the last adoption of this version failed",
            "\n\nNext: fix what failed, then stacklift adopt web ",
        ]);
        // Nothing is repaired.
        let run = run(&bench, "adopt web").succeeds("is deployed from Git");
        run.says("warning: the last adoption failed: ");
    }
    // Portainer has the commit already. It is deployed again all the same.
    run(&bench, &adopt).succeeds("updated web: a was down for");
    run(&bench, "list").succeeds("in Portainer, from Git");
}

#[test]
fn m24_a_git_stack_is_deployed_again_if_anything_of_it_changed_or_nothing_runs() {
    let text = PLAIN.replace("1000", "${TIME}");
    let files = [(FILE, text.as_str()), ("blog/.env", "TIME=1000\n")];
    let bench = bench(&text, Some("TIME=1000\n"), &files);
    run(&bench, &format!("adopt web {FLAGS}")).code(0);
    let adopt = format!("adopt web {FLAGS}");
    run(&bench, &adopt).succeeds("nothing new to deploy");
    // Only the variables of the repository change.
    let other = [(FILE, text.as_str()), ("blog/.env", "TIME=1001\n")];
    bench.world(|world| push(world, &other));
    run(&bench, &adopt).succeeds("updated web: a was down for");
    run(&bench, &adopt).succeeds("nothing new to deploy");
    bench.world(|world| world.down("web"));
    run(&bench, "list").succeeds("redeploy it in Portainer");
    for args in ["plan web", "adopt web"] {
        run(&bench, args).succeeds("no container runs: redeploy the stack in Portainer");
    }
    run(&bench, &adopt).succeeds("updated web");
    assert_eq!(bench.containers("web").len(), 1);
    // An image that is missing is named before anything is removed.
    let other = text.replace("busybox:1.36", "missing:1");
    bench.world(|world| push(world, &[(FILE, &other), ("blog/.env", "TIME=1001\n")]));
    run(&bench, &format!("plan web {FLAGS} --auto-update 9m")).fails("1 image is not on this host");
}

/// An equal `.env` in the repository makes variables unnecessary, unless a service reads `stack.env`.
#[test]
fn m24_portainer_writes_the_stack_env_that_a_repository_reads() {
    let text = format!("{PLAIN}    env_file: .env\n");
    let sends = text.replace(".env", "../stack.env");
    let other = text.replace("sleep 1000", "sleep 9");
    let env = ("blog/.env", "A=1\n");
    let bench = bench(&text, Some(env.1), &[(FILE, &other), env]);
    let plan = run(&bench, &format!("plan web {FLAGS}"));
    plan.fails("+    command: sleep 1000\n").hides("stack.env");
    bench.world(|world| push(world, &[(FILE, &sends), env]));
    run(&bench, &format!("adopt web {FLAGS}")).succeeds("1 container kept running");
    assert_eq!(sent(&bench)["env"], json!([{"name": "A", "value": "1"}]));
}

#[test]
fn m24_env_files_of_a_repository_are_compared() {
    let text = format!("{PLAIN}    env_file: [./app.env, ../all.env]\n");
    let files = [
        (FILE, text.as_str()),
        ("blog/app.env", "A=1\n"),
        ("all.env", "B=1\n"),
    ];
    let bench = Bench::new();
    let of_host = text.replace("../", "").replace("./", "");
    let dir = bench.stack("web", &of_host, None);
    for (path, text) in &files[1..] {
        let name = path.trim_start_matches("blog/");
        fs::write(dir.join(name), text).expect("a file");
        let folder = dir.to_str().expect("UTF-8");
        bench.world(|world| world.add_stack(folder, [(name, *text)]));
    }
    bench.start_as("web", &dir);
    let other = text.replace("sleep 1000", "sleep 9");
    bench.world(|world| push(world, &[(FILE, &other), files[1], files[2]]));
    run(&bench, &format!("plan web {FLAGS}"))
        .fails("; what it changes of `env_file` is not needed");
    bench.world(|world| push(world, &files));
    let before = bench.containers("web");
    run(&bench, &format!("adopt web {FLAGS}")).code(0);
    assert_eq!(bench.containers("web"), before);
    let read = bench.calls(Call::Preview);
    let read = |file: &str| {
        let file = format!("\"targetFile\":\"{file}\"");
        read.iter()
            .any(|one| String::from_utf8_lossy(&one.body).contains(&file))
    };
    assert!(read("blog/app.env") && read("all.env"));
}

#[test]
fn n29_versions_that_look_for_env_files_in_the_root_of_the_repository() {
    let text = format!("{PLAIN}    env_file: app.env\n");
    let env = "blog/app.env";
    let bench = Bench::new();
    let dir = bench.stack("web", &text, None);
    fs::write(dir.join("app.env"), "A=1\n").expect("a file");
    let folder = dir.to_str().expect("UTF-8");
    bench.world(|world| world.add_stack(folder, [("app.env", "A=1\n")]));
    bench.start_as("web", &dir);
    let files = [(FILE, text.as_str()), (env, "A=1\n")];
    bench.world(|world| push(world, &files));
    for (version, is_refused) in [
        ("2.39.3", false),
        ("2.39.4", true),
        ("2.43.1", true),
        ("2.44.0", false),
    ] {
        bench.faults().clear();
        bench.always(
            Call::Status,
            instead(200, &json!({"Version": version}).to_string()),
        );
        let plan = run(&bench, &format!("plan web {FLAGS}"));
        if is_refused {
            plan.fails(&[
                "looks for the env files of blog/compose.yaml in the root of the repository",
                "app.env",
                "upgrade Portainer to 2.44 or later",
            ]);
        } else {
            plan.hides("looks for the env files");
        }
    }
}

#[test]
fn n31_a_date_in_a_repository_is_part_of_the_patch() {
    let text = format!("{PLAIN}    labels: {{built: 2024-01-01}}\n");
    let bench = bench_of(Era::Async, &text, None, &[(FILE, &text)]);
    run(&bench, &format!("plan web {FLAGS}")).fails(&[
        "Compose in Portainer rejects dates without quotes",
        "+    labels: {built: \"2024-01-01 00:00:00 +0000 UTC\"}",
    ]);
}

#[test]
fn m24_several_compose_files_of_a_repository_are_compared_as_one() {
    let more = "services:\n  a:\n    command: sleep 1000\n";
    let base = PLAIN.replace("    command: sleep 1000\n", "");
    let files = [(FILE, base.as_str()), ("blog/more.yaml", more)];
    let bench = bench(PLAIN, None, &files);
    let before = bench.containers("web");
    let flags = format!("{FLAGS} --additional-file blog/more.yaml");
    run(&bench, &format!("adopt web {flags}")).code(0);
    assert_eq!(sent(&bench)["additionalFiles"], json!(["blog/more.yaml"]));
    assert_eq!(bench.containers("web"), before);
    run(&bench, &format!("adopt web {flags}")).succeeds("nothing new to deploy");
}

/// They are about the text that Portainer gets without Git.
#[test]
fn m24_a_plan_with_git_has_no_notes_about_another_text() {
    let text = format!("{PLAIN}    volumes: [\"${{D}}/x:/x\"]\n");
    let bench = bench(&text, Some("D=./d\n"), &[(FILE, &text)]);
    let note = "note: docker-compose.yml:5: the path contains a variable";
    run(&bench, "plan web").succeeds(note);
    run(&bench, "adopt web").code(0);
    run(&bench, &format!("plan web {FLAGS}"))
        .code(1)
        .hides("note: ");
}
