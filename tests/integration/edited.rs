//! B22: after an adoption, the text in Portainer is the user's.

use std::{fs, time::Duration};

use rehearsal::{Call, Era, FaultKind};
use serde_json::Value;

use crate::{
    bench::{Bench, MARKED, PLAIN, Run, read_json},
    interrupted::killed_at,
};

const TEXT: &str = "services:\n  a:\n    image: x:1\n    environment:\n      TOKEN: ${TOKEN}\n";
const ADOPT: &str = "adopt web --wait 2s";
const REFUSED: &str = "error: web was edited in Portainer since the last adoption: adopting it would overwrite what Portainer has";
const STAYS: &str =
    "Portainer is right: keep editing it there. To write that version over your files:";
const OURS: &str = "Your files are right: to see what overwriting the edit would do, run:\n  stacklift plan web --overwrite\n";
const UNKNOWN: &str = "error: web in Portainer differs from the files, and it is unknown which was changed: adopting it would overwrite what Portainer has";

/// An adopted stack.
fn adopted(era: Era) -> Bench {
    let bench = Bench::of(era);
    bench.started("web", TEXT, Some(&format!("TOKEN={MARKED}\n")));
    bench.run(ADOPT).code(0);
    bench.forget_requests();
    bench
}

/// The user edits the files.
fn edit_files(bench: &Bench, comment: &str) {
    bench.write("web", "docker-compose.yml", &format!("{TEXT}# {comment}\n"));
}

/// The user edits the text in Portainer.
fn edit_text(bench: &Bench) {
    bench.change_record(|record| record.text = format!("{TEXT}# theirs\n"));
}

/// The user edits a variable in Portainer.
fn edit_variable(bench: &Bench) {
    let mut record = bench.first_record();
    record.env.as_mut().expect("variables")[0].value = format!("{MARKED}-theirs");
    bench.update_in_portainer(&record);
}

/// What `plan` and `plan --diff` say of an edit.
fn assert_named(bench: &Bench, loss: &str, diff: &str) {
    bench.run("plan web --output json").says(loss);
    assert_eq!(bench.run("plan web --diff").code(0).out, diff);
}

/// The entry of the stack in the list.
fn listed(bench: &Bench) -> Value {
    let report = bench.run("list --output json").code(0).report("list");
    report["stacks"][0].clone()
}

/// The state and the readiness of the stack in the list.
fn state(bench: &Bench) -> (String, String) {
    let one = listed(bench);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&one["state"]), text(&one["adopt"]["readiness"]))
}

fn adopt(bench: &Bench, more: &str) -> Run {
    bench.run(&format!("{ADOPT} {more}"))
}

/// The command that writes what Portainer has over the files.
fn export(bench: &Bench) -> String {
    format!(
        "stacklift export web --to {} --force",
        bench.dir("web").display()
    )
}

/// The adoption is refused, and nothing is sent.
fn assert_edited(bench: &Bench) {
    assert_eq!(state(bench), ("edited".to_owned(), "edited".to_owned()));
    let hint = format!(
        "\n  if Portainer is right, keep editing it there; to write that version over your files, run: {}\n",
        export(bench)
    );
    let overwrite = "hint: if your files are right, see what overwriting the edit would do: stacklift plan web --overwrite\n";
    bench.stops(ADOPT, &[REFUSED, &hint, overwrite]);
}

#[test]
fn b22_what_was_edited_in_portainer_and_exported_is_up_to_date() {
    for edit in [edit_text as fn(&Bench), edit_variable] {
        let bench = adopted(Era::Sync);
        let first = bench.first_record();
        edit(&bench);
        let dir = bench.dir("web");
        let export = format!("export web --to {} --force", dir.display());
        bench.succeeds(&export, "docker-compose.yml and .env");
        let expected = ("in-portainer".into(), "nothing-to-do".into());
        assert_eq!(state(&bench), expected);
        // The older version is an edit then, too.
        let back = |bench: &Bench, before: &rehearsal::Record| {
            bench.change_record(|record| {
                record.text.clone_from(&before.text);
                record.env.clone_from(&before.env);
            });
        };
        let theirs = bench.first_record();
        back(&bench, &first);
        assert_edited(&bench);
        back(&bench, &theirs);
        // Another edit there is no edit of the files.
        bench.change_record(|record| record.text.push_str("# theirs again\n"));
        bench.run("plan web").hides("your files differ");
        back(&bench, &theirs);
        // From now on, an edit of the files is an update.
        let file = dir.join("docker-compose.yml");
        let text = fs::read_to_string(&file).expect("a file");
        fs::write(&file, text + "# mine\n").expect("a file");
        assert_eq!(state(&bench).0, "both");
    }
}

#[test]
fn b22_what_was_edited_in_portainer_is_not_overwritten() {
    for (edit, what) in [
        (edit_text as fn(&Bench), "its Compose file"),
        (edit_variable, "the variable TOKEN"),
    ] {
        let bench = adopted(Era::Sync);
        assert_eq!(state(&bench).1, "nothing-to-do");
        edit(&bench);
        let theirs = bench.first_record().text;
        assert_edited(&bench);
        let row = "web    1/1         edited in Portainer  keep editing it there\n";
        bench.succeeds("list", row);
        let plan = bench.run("plan web");
        let expected = format!(
            "web  1 container on this host, edited in Portainer since the last adoption\n\nAdopting it again would overwrite what was edited in Portainer: {what}.\n\n{STAYS}\n  {}\n{OURS}",
            export(&bench)
        );
        plan.prints(expected);
        let next = "\n  stacklift plan web --keep-variables --overwrite\n";
        bench.succeeds("plan web --keep-variables", next);
        let report = bench.run("plan web --output json").report("plan");
        assert_eq!(report["adopt"]["readiness"], "edited");
        assert_eq!(report["next_command"], Value::Null);
        let rest = "1 stack: 1 edited in Portainer; see stacklift list\n";
        let left_out =
            "web was left out: edited in Portainer; to see what to do, run: stacklift plan web\n";
        bench
            .succeeds("adopt --all --wait 2s", &[rest, left_out])
            .hides(row);
        bench.run("adopt --all --overwrite").code(2);
        assert!(bench.nothing_was_changed());
        assert_eq!(bench.first_record().text, theirs);
        bench.world(|world| world.down("web"));
        bench.succeeds("list", "start it in Portainer\n");
        bench.succeeds("plan web", "Portainer is right: start it there.");

        // B08: the edit is lost.
        let asked = format!("{ADOPT} --overwrite");
        let run = Run::of(&mut bench.asking(&asked)).code(1);
        run.says("what was edited in Portainer since the last adoption");
        assert!(bench.nothing_was_changed());
        let edit = format!(
            "Adopting it loses:\n  Portainer stack  what was edited in Portainer since the last adoption: {what}\n"
        );
        let next = "\nNext: stacklift adopt web --overwrite\n";
        for args in ["adopt web --overwrite --dry-run", "plan web --overwrite"] {
            bench.succeeds(args, &[&edit, "  +  a  ", next]);
        }
        adopt(&bench, "--overwrite").code(0);
        assert_eq!(state(&bench).0, "in-portainer");
        adopt(&bench, "").succeeds("up to date");
        let nothing = "\nadopt\nNothing to do: it is up to date in Portainer.\n\nmigrate\n";
        bench.succeeds("plan web --compare", nothing);
    }
}

#[test]
fn b22_the_printed_commands_overwrite_an_edit_after_which_a_service_crashed() {
    let bench = Bench::of(Era::Sync);
    let text = format!("{TEXT}  b:\n    image: x:1\n");
    bench.started("web", &text, Some("TOKEN=1\n"));
    bench.run(ADOPT).code(0);
    edit_text(&bench);
    bench.change_container("web-a-1", |one| one.exit(1, 0));
    bench.succeeds("plan web", OURS);
    let hint = "stopped services would be started: Portainer starts every service\n";
    bench.fails(
        "plan web --overwrite",
        &[hint, "pass --rerun-jobs to start them"],
    );
    let next = "adopt web --rerun-jobs --overwrite";
    let plan = "plan web --overwrite --rerun-jobs";
    bench.succeeds(plan, &format!("Next: stacklift {next}\n"));
    bench.run(&format!("{next} --yes --wait 2s")).code(0);
    assert_eq!(state(&bench).0, "in-portainer");
}

#[test]
fn a_plan_names_the_variables_that_an_update_changes() {
    let bench = adopted(Era::Sync);
    let env = |token: &str| bench.write("web", ".env", &format!("TOKEN={token}\nMORE=1\n"));
    env(MARKED);
    let copy = "\nPortainer's copy changes in";
    let says = format!("{copy} the variable MORE: add --diff to see it.\n");
    bench.succeeds("plan web", &says);
    env("new");
    edit_files(&bench, "one");
    let all = "1 line and the variables MORE and TOKEN: add --diff to see them.\n";
    bench.succeeds("plan web", &format!("{copy} {all}"));
}

#[test]
fn a_stack_that_was_deleted_in_portainer_is_no_longer_there() {
    let bench = adopted(Era::Sync);
    bench.world(|world| world.records.clear());
    let state = "web  1 container on this host, no longer in Portainer\n";
    bench.succeeds("plan web", state);
}

#[test]
fn a_stack_whose_first_deployment_failed_was_not_in_portainer() {
    let bench = Bench::on_disk(PLAIN);
    bench.world(|world| world.add_image("busybox:1.36"));
    let plan = |state: &str| {
        let says = format!("web  no containers on this host, {state}\n");
        bench.succeeds("plan web", &says);
    };
    plan("not in Portainer yet");
    bench.once(Call::Create, FaultKind::LateFailure(Duration::ZERO));
    bench.fails("adopt web", "could not deploy web");
    assert!(bench.containers("web").is_empty());
    plan("not in Portainer");
    bench.run("adopt web").code(0);
    bench.world(|world| {
        world.records.clear();
        world.containers.clear();
    });
    plan("no longer in Portainer");
}

#[test]
fn b22_a_plan_names_what_was_edited_in_portainer() {
    let bench = adopted(Era::Sync);
    let lost =
        |what: &str| format!("what was edited in Portainer since the last adoption: {what}\"");
    edit_variable(&bench);
    let variables = "--- variables\t(in Portainer)\n+++ variables\t(to be sent)\n@@ -1,1 +1,1 @@\n-TOKEN=***\n+TOKEN=*** (value changed)\n";
    assert_named(&bench, &lost("the variable TOKEN"), variables);
    edit_text(&bench);
    bench.succeeds("plan web --diff", &["-# theirs\n", variables]);
    let json = bench.run("plan web --output json");
    json.says("its Compose file and the variable TOKEN");
    let own = "your files differ from the last adoption, too: `stacklift export --force` replaces them and keeps copies";
    bench.run("plan web").hides(own);
    bench.write("web", "docker-compose.yml", &format!("# mine\n{TEXT}"));
    bench.run("plan web").says(own);
    bench.run("plan web --overwrite").hides(own);
    // A variable that was only added to the file was not edited in Portainer.
    let bench = adopted(Era::Sync);
    edit_text(&bench);
    bench.write("web", ".env", &format!("TOKEN={MARKED}\nMORE=1\n"));
    let one = "overwrite what was edited in Portainer: its Compose file.\n";
    bench.run("plan web").says(one);
    edit_variable(&bench);
    let both = "edited in Portainer: its Compose file and the variable TOKEN.\n";
    bench.run("plan web").says(both);
}

#[test]
fn b34_a_diff_tells_which_value_of_an_env_file_changed() {
    let bench = Bench::new();
    let text = "services:\n  a:\n    image: x\n    env_file: a.env\n";
    let values = |title: &str| {
        let values = format!("KEPT={MARKED}\nTITLE={title}\n");
        bench.write("web", "a.env", &values);
    };
    bench.started("web", "services:\n  a:\n    image: x\n", None);
    bench.write("web", "docker-compose.yml", text);
    values("old");
    bench.run(ADOPT).code(0);
    values("new");
    let diff = bench.run("plan web --diff").code(0);
    diff.prints(
        "--- docker-compose.yml\t(in Portainer)\n+++ docker-compose.yml\t(to be sent)\n@@ -1,6 +1,6 @@\n services:\n   a:\n     image: x\n     environment:\n       KEPT: \"***\"\n-      TITLE: \"***\"\n+      TITLE: \"***\" (value changed)\n"
    );
}

#[test]
fn b17_an_edit_in_portainer_is_named_as_a_loss_and_kept_by_a_restore() {
    let edit = "what was edited in Portainer since the last adoption is removed, and kept in a new snapshot";
    let back = "to get back what was edited in Portainer: ";
    let bench = adopted(Era::Sync);
    let lost = "what was edited in Portainer since the last adoption";
    for args in ["restore web --dry-run", "migrate web --dry-run"] {
        bench.run(args).code(0).hides(lost);
    }
    edit_text(&bench);
    bench.succeeds("migrate web --dry-run", lost);
    let theirs = bench.first_record().text;
    bench.succeeds("restore web --dry-run", edit);
    let run = bench.succeeds("restore web", &[edit, back]);
    let all = run.all();
    let command = all.lines().find(|line| line.contains(back));
    let id = command.and_then(|line| line.split(" --to ").nth(1)?.split(' ').next());
    let id = id.expect("an ID");
    bench.run(&format!("restore web --to {id}")).code(0);
    assert_eq!(bench.first_record().text, theirs);
}

#[test]
fn b22_changed_files_are_an_update_that_loses_nothing() {
    for era in [Era::Sync, Era::Async] {
        let bench = adopted(era);
        for text in ["one", "two"] {
            edit_files(&bench, text);
            assert_eq!(state(&bench).1, "ready");
            let report = bench.run("plan web --output json").json();
            assert_eq!(report["adopt"]["losses"], Value::Array(Vec::new()));
            assert!(report["next_command"] != Value::Null, "{report}");
            adopt(&bench, "").code(0);
        }
        edit_text(&bench);
        bench.forget_requests();
        assert_edited(&bench);
        // The user takes the edit over.
        edit_files(&bench, "theirs");
        adopt(&bench, "").succeeds("up to date");
        edit_files(&bench, "three");
        adopt(&bench, "").code(0).hides("up to date");
    }
}

#[test]
fn b22_where_nothing_is_known_of_a_last_send_any_difference_counts() {
    let bench = adopted(Era::Sync);
    fs::remove_dir_all(bench.state()).expect("the state directory");
    assert_eq!(state(&bench).1, "nothing-to-do");
    edit_files(&bench, "new");
    assert_eq!(state(&bench), ("both".to_owned(), "edited".to_owned()));
    let differs = "web    1/1         in Portainer, file differs  stacklift plan web";
    assert_eq!(row(&bench), differs);
    bench.stops(ADOPT, UNKNOWN);
    let next = export(&bench);
    let expected = format!(
        "web  1 container on this host, in Portainer, which differs from the files\n\nIt is unknown whether Portainer's copy or your files were changed. Adopting it would overwrite what Portainer has.\n\n{STAYS}\n  {next}\n{OURS}"
    );
    assert_eq!(bench.run("plan web").out, expected);
    // Portainer's data was put back to an earlier time: the last adoption was that of another Portainer stack.
    let bench = adopted(Era::Sync);
    edit_text(&bench);
    let file = bench.saved("last-sent").pop().expect("a file");
    let sent = fs::read_to_string(&file).expect("what was sent");
    fs::write(&file, sent.replace("\"id\":\"1\"", "\"id\":\"8\"")).expect("another ID");
    assert_eq!(row(&bench), differs);
    bench.succeeds("plan web", "in Portainer, which differs from the files\n");
}

#[test]
fn b22_a_restore_puts_back_what_was_last_sent_with_the_text() {
    for era in [Era::Sync, Era::Async] {
        let bench = adopted(era);
        edit_files(&bench, "one");
        adopt(&bench, "").code(0);
        bench.run("restore web").code(0);
        assert_eq!(state(&bench).1, "ready");
        adopt(&bench, "").code(0);
        // What the user had edited stays edited.
        edit_text(&bench);
        let theirs = bench.first_record().text;
        adopt(&bench, "--overwrite").code(0);
        bench.run("restore web").code(0);
        assert_eq!(bench.first_record().text, theirs);
        bench.forget_requests();
        assert_edited(&bench);
        // The same after a migration, which overwrites it.
        bench.run("migrate web --force").code(0);
        bench.run("restore web").code(0);
        assert_eq!(bench.first_record().text, theirs);
        assert_eq!(state(&bench).1, "edited");
    }
}

#[test]
fn b22_what_a_killed_or_failed_run_sent_does_not_count_as_edited() {
    for era in [Era::Sync, Era::Async] {
        for kind in [FaultKind::Hang, FaultKind::HangAfter] {
            let bench = adopted(era);
            edit_files(&bench, "one");
            killed_at(Call::Update, &bench, ADOPT, kind.clone(), || {});
            assert_ne!(state(&bench).1, "edited", "{era:?} {kind:?}");
            edit_files(&bench, "two");
            assert_ne!(state(&bench).1, "edited", "{era:?} {kind:?}");
            adopt(&bench, "").code(0);
            assert!(bench.first_record().text.ends_with("# two\n"));
        }
        // N15: the old text, and the new variables.
        let bench = adopted(era);
        bench.write("web", ".env", &format!("TOKEN={MARKED}\nMORE=1\n"));
        edit_files(&bench, "one");
        bench.once(Call::Update, FaultKind::LateFailure(Duration::ZERO));
        adopt(&bench, "").code(1);
        edit_files(&bench, "two");
        adopt(&bench, "").code(0);
        assert!(bench.first_record().text.ends_with("# two\n"));
    }
}

/// `docker compose up -d` in the old directory.
fn deploy_by_hand(bench: &Bench, text: &str) {
    bench.started("web", text, Some(&format!("TOKEN={MARKED}\n")));
}

fn row(bench: &Bench) -> String {
    let list = bench.run("list").code(0).out;
    list.lines().nth(1).expect("a row").to_owned()
}

#[test]
fn what_was_deployed_by_hand_since_the_adoption_is_not_called_up_to_date() {
    let bench = adopted(Era::Sync);
    // The same configuration, also in a new container.
    deploy_by_hand(&bench, TEXT);
    assert_eq!(row(&bench), "web    1/1         in Portainer  up to date");
    deploy_by_hand(&bench, &format!("{TEXT}    command: sleep 2\n"));
    let differs = "web    1/1         in Portainer, file differs  keeps running";
    assert_eq!(row(&bench), differs);
    // The file is as it was, the container is not.
    bench.write("web", "docker-compose.yml", TEXT);
    assert_eq!(state(&bench), ("redeployed".to_owned(), "ready".to_owned()));
    let plan = bench.run("plan web").code(0).out;
    let expected = "web  1 container on this host, in Portainer, but containers were started outside of it since\n";
    assert!(plan.starts_with(expected), "{plan}");
    bench.forget_requests();
    adopt(&bench, "--yes").succeeds("updated web");
    assert_eq!(bench.calls(Call::Update).len(), 1);
    assert_eq!(row(&bench), "web    1/1         in Portainer  up to date");
}

#[test]
fn an_edit_in_portainer_does_not_hide_what_was_deployed_by_hand_since() {
    let bench = adopted(Era::Sync);
    edit_text(&bench);
    let edited = "web    1/1         edited in Portainer  keep editing it there";
    assert_eq!(row(&bench), edited);
    bench.world(|world| world.now += 60_000);
    deploy_by_hand(&bench, &format!("{TEXT}    command: sleep 2\n"));
    let differ = "web    1/1         edited, containers differ  stacklift plan web";
    assert_eq!(row(&bench), differ);
    assert_eq!(state(&bench).0, "edited-redeployed");
    let plan = bench.run("plan web").code(0).out;
    let next = export(&bench);
    let expected = format!(
        "and may differ from what Portainer has: \"Update the stack\" in Portainer deploys its version again.\n\n{STAYS}\n  {next}\n{OURS}"
    );
    assert!(plan.ends_with(&expected), "{plan}");
    // Portainer deploys it again.
    let now = bench.world(|world| world.now / 1000);
    bench.change_record(|record| record.updated = now);
    // The files were edited, too.
    let both = edited.replace("keep editing it there", "stacklift plan web");
    assert_eq!(row(&bench), both);
}

#[test]
fn without_a_memory_of_the_adoption_its_configuration_tells_what_runs() {
    let bench = adopted(Era::Sync);
    let file = bench.saved("last-sent").pop().expect("a file");
    let mut sent = read_json(&file);
    let hashes = sent.as_object_mut().expect("fields").remove("hashes");
    assert_eq!(hashes.expect("hashes").as_array().map(Vec::len), Some(1));
    fs::write(&file, sent.to_string()).expect("written");
    assert_eq!(row(&bench), "web    1/1         in Portainer  up to date");
    adopt(&bench, "").succeeds("up to date");
}

#[test]
fn the_command_for_a_lost_file_writes_it_where_the_stack_is_found() {
    for has_other_files in [false, true] {
        let bench = Bench::web(PLAIN);
        adopt(&bench, "").code(0);
        let dir = bench.dir("web");
        fs::remove_file(dir.join("docker-compose.yml")).expect("the file");
        let mut command = format!("stacklift export web --to {}", dir.display());
        if has_other_files {
            bench.write("web", "data", "x");
            command.push_str(" --force");
        }
        bench.succeeds("list", &format!("no Compose file: {command}\n"));
        let error = "error: web is in Portainer, and has no Compose file on this host";
        let hint = format!("to write it to files: {command}\n");
        bench.fails("plan web", &[error, &hint]);
        bench.write("web", ".env", "A=1\n");
        bench.succeeds("list", "--force\n");
        fs::remove_file(dir.join(".env")).expect("the file");
        bench.run(command.trim_start_matches("stacklift ")).code(0);
        bench.run("plan web").says("web is up to date in Portainer");
        bench.run("list").says("up to date");
        if has_other_files {
            assert_eq!(fs::read_to_string(dir.join("data")).expect("a file"), "x");
        }
    }
}

#[test]
fn a_name_with_another_case_is_another_stack() {
    let bench = adopted(Era::Sync);
    let says = [
        "error: there is no stack named WEB: ",
        "hint: did you mean web?",
    ];
    bench.fails("plan WEB", &says);
}

#[test]
fn b22_a_variable_that_an_adoption_kept_is_not_dropped_by_the_next_one() {
    for is_killed in [false, true] {
        let text = "services:\n  a:\n    image: x:1\n    volumes: [/cache]\n    environment: [B]\n";
        let bench = Bench::web(text);
        bench.change_container("web-a-1", |one| {
            let variables = one.config["Env"].as_array_mut();
            variables.expect("a list").push("B=other-shell".into());
        });
        let first = format!("{ADOPT} --yes --keep-variables");
        if is_killed {
            killed_at(Call::Create, &bench, &first, FaultKind::HangAfter, || {});
            // It ends the wait for the request of the killed run.
            bench.run(&format!("{ADOPT} --yes"));
        } else {
            bench.run(&first).code(0);
        }
        bench.forget_requests();
        bench.run("plan web").says("web is up to date in Portainer");
        bench.succeeds("list", "up to date");
        adopt(&bench, "").succeeds("up to date");
        assert!(bench.nothing_was_changed());
        // The files give it another value since.
        bench.stack("web", &text.replace("[B]", "[B=mine]"), None);
        let needed =
            "a does not run with the variables of its files: B has another value in the files";
        bench.fails("plan web", needed);
        bench.stops(&format!("{ADOPT} --yes"), needed);
        bench.succeeds(&format!("{ADOPT} --keep-variables"), "up to date");
        bench.run("plan web").says("web is up to date in Portainer");
        assert!(bench.nothing_was_changed());
    }
}

#[test]
fn b22_volumes_that_an_adoption_left_without_names_are_not_named_by_the_next_one() {
    for is_started in [true, false] {
        let text = "services:\n  a:\n    image: x:1\n    volumes: [/cache]\n";
        let bench = Bench::web(text);
        if !is_started {
            bench.world(|world| world.containers.clear());
        }
        adopt(&bench, "--yes --keep-anonymous").code(0);
        bench.forget_requests();
        bench.run("plan web").says("web is up to date in Portainer");
        bench.succeeds("list", "up to date");
        bench.run("adopt --all --yes").code(0);
        assert!(bench.nothing_was_changed());
        // A container that is recreated anyway gets the names.
        bench.stack("web", &text.replace("x:1", "x:2"), None);
        bench.run("plan web --diff").says("external: true");
    }
}

/// A container that the last adoption kept still names the directory in which it was started.
#[test]
fn a_stack_can_move_to_a_directory_that_says_what_portainer_has() {
    let bench = adopted(Era::Sync);
    let to = bench.home().join("moved");
    let dir = to.display();
    let over = bench.stack("over", PLAIN, None);
    let from = bench.dir("web");
    let other = format!("1. web was adopted from {}, not", from.display());
    let run = bench.fails(&format!("plan web --dir {}", over.display()), &*other);
    run.hides("  2. ");
    bench.run(&format!("export web --to {dir}")).code(0);
    let moved = format!("plan web --dir {dir}");
    bench.run(&moved).says("web is up to date in Portainer");
    bench.run(&format!("adopt web --dir {dir}")).code(0);
    // The next edit is made there.
    let file = to.join("compose.yaml");
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("{text}# new\n")).expect("written");
    bench.succeeds(&moved, "Next: stacklift adopt web");
    // Containers that were deployed there by hand since are others.
    bench.change_container("web-a-1", |one| {
        let hash = "com.docker.compose.config-hash".to_owned();
        one.labels.insert(hash, "other".to_owned());
    });
    bench.fails(&moved, "containers of project web were started in");
}
