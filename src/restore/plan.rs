//! What a restore does to the containers, from the snapshot and from what is there.
//!
//! Invariant: pure. Planned anew after every change of the world, so that a run that was killed goes on
//! where it stopped.
#![deny(clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::container::{Inspected, NewIds};
use crate::snapshot::Snapshot;

/// The steps, by index into the saved containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The saved containers, those first that others need.
    pub order: Vec<usize>,
    /// Those that are there as they were, with the id they have now.
    pub keep: BTreeMap<usize, String>,
    /// Containers that took the place of saved ones, or that are not in the snapshot: id, name.
    pub remove: Vec<(String, String)>,
    /// Those that have to be made again.
    pub create: BTreeSet<usize>,
}

impl Plan {
    /// Plans from `there`, what the engine says of the project's containers now, and of all others that
    /// have the name of a saved one.
    pub fn new(snapshot: &Snapshot, there: &[Value]) -> Self {
        let saved = saved(snapshot);
        let order = order(&saved, snapshot);
        let mut plan = Self {
            order: order.clone(),
            ..Self::default()
        };
        let mut ids = NewIds::new();
        for index in order {
            let wanted = saved[index];
            let now = there
                .iter()
                .map(Inspected)
                .find(|now| now.name() == wanted.name());
            match now {
                Some(now) if is_as_it_was(wanted, now, &ids, &saved) => {
                    ids.insert(wanted.id().to_owned(), now.id().to_owned());
                    plan.keep.insert(index, now.id().to_owned());
                }
                _ => {
                    plan.create.insert(index);
                }
            }
        }
        let kept: BTreeSet<&String> = plan.keep.values().collect();
        plan.remove = there
            .iter()
            .map(Inspected)
            .filter(|now| !kept.contains(&now.id().to_owned()))
            .map(|now| (now.id().to_owned(), now.name().to_owned()))
            .collect();
        plan
    }

    /// Whether nothing has to be made or removed.
    pub fn is_settled(&self) -> bool {
        self.create.is_empty() && self.remove.is_empty()
    }
}

/// The saved containers; none where they are not known.
pub fn saved(snapshot: &Snapshot) -> Vec<Inspected<'_>> {
    let containers = snapshot.containers.known();
    containers.into_iter().flatten().map(Inspected).collect()
}

/// Whether `now` is `wanted`, or was made from it: the same configuration, and it shares what it shares
/// with the containers that stand for the saved ones.
///
/// `ids` are those of the saved containers that stay; what is shared with one outside of the snapshot is
/// compared as it is.
fn is_as_it_was(wanted: Inspected, now: Inspected, ids: &NewIds, saved: &[Inspected]) -> bool {
    let expected: Option<Vec<&str>> = wanted
        .shares_with()
        .into_iter()
        .map(|id| match ids.get(id) {
            Some(new) => Some(new.as_str()),
            None if saved.iter().any(|other| other.id() == id) => None,
            None => Some(id),
        })
        .collect();
    !now.is_going()
        && expected.is_some_and(|expected| expected == now.shares_with())
        && wanted.differences(now).is_empty()
}

/// The saved containers, each behind those that it needs: by its `depends_on` label, and by what it shares
/// with others. A circle is cut where it is found.
fn order(saved: &[Inspected], snapshot: &Snapshot) -> Vec<usize> {
    let (service, depends_on) = (snapshot.label("service"), snapshot.label("depends_on"));
    let needs: Vec<Vec<usize>> = saved
        .iter()
        .map(|container| {
            let services = container.depends_on(&depends_on);
            let shared = container.shares_with();
            saved
                .iter()
                .enumerate()
                .filter(|(_, other)| {
                    shared.contains(&other.id())
                        || other
                            .label(&service)
                            .is_some_and(|name| services.contains(&name))
                })
                .map(|(index, _)| index)
                .collect()
        })
        .collect();
    let mut order = Vec::with_capacity(saved.len());
    let mut begun = vec![false; saved.len()];
    let mut starts: Vec<usize> = (0..saved.len()).collect();
    starts.sort_by_key(|&index| !has_fixed_address(saved[index]));
    // An explicit stack: the number of containers is not ours to bound.
    for start in starts {
        let mut stack = vec![(start, 0)];
        while let Some((index, next)) = stack.pop() {
            if next == 0 && std::mem::replace(&mut begun[index], true) {
                continue;
            }
            match needs[index].get(next) {
                Some(&need) => {
                    stack.push((index, next + 1));
                    if !begun[need] {
                        stack.push((need, 0));
                    }
                }
                None => order.push(index),
            }
        }
    }
    order
}

fn has_fixed_address(container: Inspected) -> bool {
    let networks = container.0.pointer("/NetworkSettings/Networks");
    let mut endpoints = networks.and_then(Value::as_object).into_iter().flatten();
    endpoints.any(|(_, endpoint)| {
        let address = endpoint.pointer("/IPAMConfig/IPv4Address");
        address
            .and_then(Value::as_str)
            .is_some_and(|address| !address.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::{Known, TextFile, VERSION};

    fn container(name: &str, service: &str, depends_on: &str, network_mode: &str) -> Value {
        json!({
            "Id": format!("{name:0<64}"),
            "Name": format!("/{name}"),
            "Image": "sha256:1",
            "Config": {"Labels": {
                "com.docker.compose.service": service,
                "com.docker.compose.depends_on": depends_on,
            }},
            "HostConfig": {"NetworkMode": network_mode},
            "State": {"Running": true},
        })
    }

    fn snapshot(containers: Vec<Value>) -> Snapshot {
        Snapshot {
            version: VERSION,
            taken: String::new(),
            command: "migrate".to_owned(),
            stack: "web".to_owned(),
            dir: "/opt/stacks/web".to_owned(),
            tool: "docker".to_owned(),
            base_url: String::new(),
            endpoint: 1,
            compose: TextFile {
                name: String::new(),
                text: String::new(),
            },
            env: None,
            record: Known::Known(None),
            containers: Known::Known(containers),
            networks: Known::Known(Vec::new()),
            volumes: Known::Known(Vec::new()),
            changes: BTreeMap::new(),
        }
    }

    #[test]
    fn those_first_that_others_need() {
        let vpn = format!("{:0<64}", "vpn");
        let snapshot = snapshot(vec![
            container("torrent", "torrent", "", &format!("container:{vpn}")),
            container(
                "app",
                "app",
                "db:service_started:false,cache:service_healthy:true",
                "x",
            ),
            container("cache", "cache", "db:service_started:false", "x"),
            container("db", "db", "app:service_started:false", "x"),
            container("vpn", "vpn", "", "x"),
        ]);
        let plan = Plan::new(&snapshot, &[]);
        let names: Vec<&str> = plan
            .order
            .iter()
            .map(|&index| saved(&snapshot)[index].name())
            .collect();
        // `db` and `app` need each other: the circle is cut.
        assert_eq!(names, ["vpn", "torrent", "db", "cache", "app"]);
        assert_eq!(plan.create.len(), 5);
    }

    #[test]
    fn what_is_there_as_it_was_stays() {
        let app = container("app", "app", "", "x");
        let mut other = container("db", "db", "", "x");
        let snapshot = snapshot(vec![app.clone(), other.clone()]);
        other["Image"] = json!("sha256:2");
        let stranger = container("new", "new", "", "x");
        let plan = Plan::new(&snapshot, &[app, other, stranger]);
        assert_eq!(plan.keep.keys().copied().collect::<Vec<_>>(), [0]);
        assert_eq!(plan.create.iter().copied().collect::<Vec<_>>(), [1]);
        let removed: Vec<&str> = plan.remove.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(removed, ["db", "new"]);
    }

    #[test]
    fn what_shares_with_a_container_that_is_made_again_is_made_again() {
        let vpn = container("vpn", "vpn", "", "x");
        let id = vpn["Id"].as_str().expect("an id").to_owned();
        let torrent = container("torrent", "torrent", "", &format!("container:{id}"));
        let snapshot = snapshot(vec![torrent.clone(), vpn]);
        let plan = Plan::new(&snapshot, &[torrent]);
        assert_eq!(plan.create.len(), 2);
        assert_eq!(plan.remove.len(), 1);
    }
}
