//! One adoption: the stack before and after, what the plan said, and a redeployment from Portainer.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testbed::{Record, Status, Variable};

use crate::{
    bench::Stack,
    client,
    host::wait_until,
    run::Run,
    state::{Happened, State},
};

/// An adoption that succeeded.
pub struct Adopted<'s> {
    stack: &'s Stack,
    before: State,
    pub after: State,
    pub happened: BTreeMap<String, Happened>,
    pub run: Run,
}

impl Stack {
    /// The kind of the fate of each service in `stacklift plan`.
    pub fn plan(&self, options: &str) -> BTreeMap<String, String> {
        let run = self.run(&format!("plan $PROJECT --output=json {options}"));
        let report = run.json();
        let planned = report["adopt"]["services"].as_array().unwrap().iter();
        let fates = planned.map(|planned| {
            let fate = [&planned["service"], &planned["fate"]["kind"]];
            let [service, kind] = fate.map(|text| text.as_str().unwrap().to_owned());
            (service, kind)
        });
        fates.collect()
    }

    /// Plans and adopts. Every byte, variable and mount is there afterwards, what the plan said happened, and exactly the
    /// services `recreated` have other containers.
    #[track_caller]
    pub fn adopts(&self, recreated: &[&str]) -> Adopted<'_> {
        self.adopts_with(recreated, "")
    }

    #[track_caller]
    pub fn adopts_with(&self, recreated: &[&str], options: &str) -> Adopted<'_> {
        let before = self.state();
        let fates = self.plan(options);
        let run = self.run(&format!("adopt $PROJECT {options}")).code(0);
        let after = self.state();
        let happened = before.containers.happened(&after.containers);
        for (service, happened) in &happened {
            let true_fates: &[&str] = match happened {
                Happened::Untouched => &["unchanged", "left-behind", "unknown"],
                Happened::Recreated => &["recreated", "unknown"],
                Happened::Started => &["started", "restarted", "unknown"],
                Happened::Removed => &[],
            };
            let fate = fates[service].as_str();
            assert!(
                true_fates.contains(&fate),
                "{service}: {fate} -> {happened:?}"
            );
        }
        before.assert_kept(&after);
        let changed = happened.iter().filter(|one| *one.1 == Happened::Recreated);
        let changed: Vec<&str> = changed.map(|(service, _)| service.as_str()).collect();
        assert_eq!(changed, recreated, "{run:#?}");
        Adopted {
            stack: self,
            before,
            after,
            happened,
            run,
        }
    }

    fn deployed(&self) -> Record {
        let records = self.rehearsal.world(|world| world.records.clone());
        let mut records = records.into_values();
        records
            .find(|record| record.name == self.host.project)
            .unwrap()
    }

    /// The text that Portainer has.
    pub fn text_in_portainer(&self) -> String {
        self.deployed().text
    }

    /// Sends a PUT with this text and the variables that Portainer has, and waits for its end.
    #[track_caller]
    pub fn update(&self, text: &str) {
        let record = self.deployed();
        let env = record.env.unwrap_or_default();
        let variable = |one: &Variable| json!({ "name": one.name, "value": one.value });
        let body = json!({
            "stackFileContent": text,
            "env": env.iter().map(variable).collect::<Vec<_>>(),
            "prune": false,
            "pullImage": false,
        });
        let path = format!("/api/stacks/{}?endpointId=1", record.id);
        assert_eq!(self.send("PUT", &path, &body), 200);
        wait_until(|| self.deployed().status != Status::Deploying);
        assert_eq!(self.deployed().status, Status::Active);
    }

    /// Sends a request to Portainer without the program. Returns the status of the response.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> u16 {
        let headers = [("X-API-Key", self.rehearsal.key())];
        client::send(&self.rehearsal, method, path, &headers, &body.to_string()).status
    }
}

impl Adopted<'_> {
    /// A redeployment from Portainer with the same text changes nothing, and a second adoption has nothing to do.
    #[track_caller]
    pub fn stays(&self) {
        let stack = self.stack;
        stack.update(&stack.text_in_portainer());
        let now = stack.state();
        self.after.containers.assert_untouched(&now.containers);
        self.before.assert_kept(&now);
        stack.run("adopt $PROJECT").succeeds("up to date");
        now.containers.assert_untouched(&stack.containers());
    }
}
