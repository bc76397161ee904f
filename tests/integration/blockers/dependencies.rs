//! Dependencies that would make the deployment fail (B20).

use testbed::Call;

use super::adopt;
use crate::bench::Bench;

const JOB: &str = "\
services:
  job:
    image: x:1
  web:
    image: y:1
    depends_on: {job: {condition: service_completed_successfully}}
";

fn with_job() -> Bench {
    let bench = Bench::new();
    bench.world(|world| world.exits.insert("web/job".to_owned(), 0));
    bench.started("web", JOB, None);
    bench
}

#[test]
fn b20_a_job_runs_again_before_portainer_runs_it() {
    let bench = with_job();
    // Nothing runs twice without it.
    bench.run("plan web").hides("runs twice");
    bench.run("plan web --rerun-jobs").says("runs twice");
    adopt(&bench, "web --rerun-jobs").succeeds("adopted web: web kept running");
    let journal = bench.requests();
    let at = |call| journal.iter().position(|one| one.call == call);
    assert!(at(Call::EngineStart).expect("a start") < at(Call::Create).expect("a create"));
}
