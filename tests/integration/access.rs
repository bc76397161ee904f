//! B23: who may use a stack in Portainer.

use serde_json::json;
use testbed::{Call, ResourceControl};

use crate::bench::{Bench, Run, refusal};

/// `a` belongs to the team ops by a label, `b` to nobody.
const LABELED: &str = "services:\n  a:\n    image: x\n    labels:\n      io.portainer.accesscontrol.teams: ops\n  b:\n    image: x\n";

/// A stack that was started by hand, two teams, and the user ann.
fn started() -> Bench {
    let bench = Bench::new();
    bench.world(|world| world.add_user("ptr_ann", "ann"));
    bench.access(|access| access.teams = vec!["ops".to_owned(), "dev".to_owned()]);
    bench.started("web", LABELED, None);
    bench
}

/// The users and teams of the stack.
fn of_stack(bench: &Bench) -> (Vec<u64>, Vec<u64>) {
    let control = bench.first_record().control;
    (control.users, control.teams)
}

/// The teams of each container with rights of its own.
fn of_containers(bench: &Bench) -> Vec<(String, Vec<u64>)> {
    let controls = bench.access(|access| access.controls.clone());
    bench.world(|world| {
        let own = controls.iter();
        let own = own.filter_map(|(id, one)| Some((world.containers.get(id)?, one)));
        own.map(|(container, one)| (container.name.clone(), one.teams.clone()))
            .collect()
    })
}

/// Gives a container of the stack to the teams with these IDs, as a user does in Portainer.
fn give(bench: &Bench, container: &str, teams: &[u64]) {
    let id = bench.container(container).id;
    let control = ResourceControl {
        id: 500,
        teams: teams.to_vec(),
        ..ResourceControl::default()
    };
    bench.access(|access| access.controls.insert(id, control));
}

#[test]
fn b23_without_access_a_team_keeps_a_container_until_it_is_recreated() {
    let bench = started();
    let plan = bench.run("plan web").code(0);
    assert_eq!(
        bench.shown(&plan),
        "web  2 containers on this host, not in Portainer yet

  =  a, b  keep running

Adopting it loses nothing and interrupts nothing.
What changes (not every setting is compared):
  a  until it is recreated, team ops can use it in Portainer, but not the stack; to share both: --access team:ops

Next: stacklift adopt web
"
    );
    assert!(
        bench.access(|access| access.controls.is_empty()),
        "a plan stores nothing"
    );
    bench.run("adopt web").code(0).hides("\n  access");
    let own = vec![("web-a-1".to_owned(), vec![1])];
    let expected = ((vec![], vec![]), own);
    assert_eq!((of_stack(&bench), of_containers(&bench)), expected);
    bench.succeeds("adopt web", "up to date");

    let changed = LABELED.replace("    labels", "    command: b\n    labels");
    bench.write("web", "docker-compose.yml", &changed);
    let lost = "a  the access of team ops in Portainer; to keep it: --access team:ops";
    bench.succeeds("plan web", &["Adopting it loses:", lost]);
    bench.run("adopt web --yes").code(0);
    assert_eq!(of_containers(&bench), []);
}

#[test]
fn b23_a_container_of_administrators_only_is_not_opened_unsaid() {
    let bench = started();
    give(&bench, "web-b-1", &[]);
    let opened = "only administrators may use web-b-1 now: afterwards, team ops may, too";
    for (access, says) in [("team:ops", true), ("admins", false)] {
        let run = bench.run(&format!("plan web --access {access}")).code(0);
        let text = format!("{}{}", run.out, run.err).replace('\n', " ");
        assert_eq!(text.contains(opened), says, "{text}");
    }
}

#[test]
fn b23_access_is_set_for_the_stack_and_its_containers() {
    let bench = started();
    give(&bench, "web-b-1", &[2]);
    let args = "--access team:Ops --access user:ann";
    let plan = bench.run(&format!("plan web {args}")).code(0);
    plan.says(&[
        "Adopting it loses:\n  b  the access of team dev in Portainer",
        "Access afterwards: user ann and team Ops.",
        "Next: stacklift adopt web --access user:ann --access team:Ops",
    ]);
    assert_eq!(of_containers(&bench).len(), 1);
    Run::of(&mut bench.asking(&*format!("adopt web {args}"))).fails("--yes");
    let adopt = format!("adopt web {args}");
    let run = bench.succeeds(&adopt, "adopted web: 2 containers kept running");
    run.says("  access     user ann and team Ops\n");
    let expected = ((vec![2], vec![1]), vec![]);
    assert_eq!((of_stack(&bench), of_containers(&bench)), expected);
    bench.forget_requests();
    bench.succeeds(&adopt, "web is up to date in Portainer");
    assert!(bench.calls(Call::Access).is_empty());

    let again = bench.succeeds("adopt web --access public --output json", "");
    let report = again.json();
    assert_eq!(report["outcome"], "adopted");
    assert_eq!(report["access"], json!(["public"]));
    let says = "updated web: access is now administrators only";
    bench.succeeds("adopt web --access admins", says);
    assert_eq!(of_stack(&bench), (vec![], vec![]));
}

#[test]
fn b23_an_update_keeps_the_access_and_a_restore_brings_it_back() {
    let bench = started();
    bench.run("adopt web --access team:ops").code(0);
    let changed = LABELED.replace("  b:", "  b:\n    command: b");
    bench.write("web", "docker-compose.yml", &changed);
    bench.run("adopt web --yes").code(0);
    assert_eq!(of_stack(&bench), (vec![], vec![1]));
    let lost = "the access of team ops";
    bench.run("plan web --compare").says(lost);
    // That the team loses it is said, and asked about.
    let says = "Portainer stack  the access of team ops\n";
    bench.succeeds("plan web --access admins", says);
    let run = Run::of(&mut bench.asking("adopt web --access admins"));
    run.fails("without confirmation: ");
    assert_eq!(of_stack(&bench), (vec![], vec![1]));
    bench
        .run("migrate web --dry-run --access team:dev")
        .says(&[lost, "Access afterwards: team dev."]);
    bench.succeeds("migrate web --access team:dev", "access team dev");
    assert_eq!(of_stack(&bench), (vec![], vec![2]));
    bench.succeeds("restore web --yes", "restored web");
    assert_eq!(of_stack(&bench), (vec![], vec![1]));
}

#[test]
fn b23_names_are_looked_up_before_anything_is_done() {
    let bench = started();
    let says = "error: --access admins excludes every other --access";
    bench.fails("adopt web --access admins --access team:ops", says);
    let teams = ["Portainer has no team nope", "Portainer has: ops, dev"];
    for command in ["adopt web", "plan web", "migrate web"] {
        bench.fails(&format!("{command} --access team:nope"), &teams);
    }
    let users = "hint: Portainer has: admin, ann";
    bench.fails("adopt --all --access user:nope", users);
    let expected = "expected public, admins, user:NAME or team:NAME";
    bench.rejects("adopt web --access ops", expected);
    let run = bench.run_with("adopt web --access team:ops", "STACKMGR_API_KEY", "ptr_ann");
    let error = "cannot look up the users and teams of --access";
    run.fails(&[error, "use an administrator's API key"]);
    assert!(bench.nothing_was_changed());
}

#[test]
fn b23_access_that_could_not_be_set_is_an_error_and_is_set_by_the_next_run() {
    for command in ["adopt", "migrate"] {
        let bench = started();
        bench.once(Call::Access, refusal());
        let says = "web runs in Portainer, but its access rights could not be set";
        bench.fails(&format!("{command} web --access team:ops"), says);
        assert_eq!(of_stack(&bench), (vec![], vec![]));
        bench.succeeds("adopt --all --access team:ops", "access is now team ops");
        assert_eq!(of_stack(&bench), (vec![], vec![1]));
    }
}

#[test]
fn b23_a_failed_adoption_gives_nobody_access() {
    let bench = started();
    bench.world(|world| world.exits.insert("web/b".to_owned(), 3));
    let text = format!("{LABELED}    command: sleep 2\n");
    bench.write("web", "docker-compose.yml", &text);
    let says = "b of web does not run: it exited with code 3";
    bench.fails("adopt web --access public --wait 2s", says);
    assert_eq!(of_stack(&bench), (vec![], vec![]));
    assert!(!bench.first_record().control.public);
}
