//! What runs and has to be written into the text: names for anonymous volumes, and variables of another shell.

use std::collections::{BTreeMap, BTreeSet};

use composefile::path::clean;

use super::variables::{instead_of, is_literal, other_variables};

use crate::{
    compose::Service,
    finding::Finding,
    model::Container,
    plan::{Facts, Fate, Plan, losses::mounts, losses::replacement},
    rewrite::faithful::{Runs, ServiceRuns},
    text::sha256,
};

/// The flags that decide what an adoption does.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct AdoptFlags {
    /// Overwrite what was edited in Portainer
    ///
    /// Without this flag, stacklift refuses to adopt a stack that was edited in Portainer since the last adoption. To keep the edit, see `stacklift export`.
    #[arg(long)]
    pub overwrite: bool,
    /// Pull missing images first
    ///
    /// `adopt` pulls with the container command before anything is changed, and only if nothing else prevents the
    /// adoption. Images that the Compose file builds are not pulled.
    #[arg(long)]
    pub pull: bool,
    #[command(flatten)]
    pub keep: Keep,
}

impl AdoptFlags {
    /// The same, with `--overwrite`.
    #[must_use]
    pub fn overwriting(self) -> Self {
        Self {
            overwrite: true,
            ..self
        }
    }

    /// The flags that were given.
    pub fn words(self) -> Vec<&'static str> {
        let mut words = self.keep.flags();
        words.extend(self.overwrite.then_some("--overwrite"));
        words.extend(self.pull.then_some("--pull"));
        words
    }
}

/// What to do with running and finished containers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Keep {
    /// Do not name anonymous volumes of kept containers
    ///
    /// By default, the rewritten Compose file names every anonymous volume, so that its data stays with
    /// the service. This recreates the container once. With this flag, a container that is certain to
    /// keep running is not recreated, but its anonymous volumes may be lost when it is recreated later. Later adoptions do not
    /// recreate it to name them, either.
    #[arg(long = "keep-anonymous", hide_short_help = true)]
    pub anonymous: bool,
    /// Keep variables that only the running containers have
    ///
    /// Without this flag, stacklift refuses to adopt a stack if a running container has a variable that
    /// the files on disk do not give it, for example because it was started from another shell.
    /// Later adoptions keep these variables, too, until you change them in the files.
    #[arg(long = "keep-variables")]
    pub variables: bool,
    /// Allow containers that Portainer would not start
    ///
    /// These are running containers whose service is not in the Compose file or has no active profile, and containers
    /// that `compose run` started. Without this flag, stacklift refuses to adopt a stack that has any. They keep
    /// running, and Portainer removes them when the stack is deleted or stopped.
    #[arg(long = "leave-orphans")]
    pub orphans: bool,
    /// Allow finished and stopped containers to run again
    ///
    /// Portainer starts every container of a stack. Without this flag, stacklift refuses to adopt a stack
    /// with containers that have exited, such as one-shot jobs, or that somebody stopped. A stack in which nothing
    /// runs needs it only for a job that another service waits for. Such a job runs twice: `adopt` runs it first, and
    /// sends nothing to Portainer if it fails.
    #[arg(long = "rerun-jobs")]
    pub jobs: bool,
}

impl Keep {
    /// The flags that say the same.
    pub fn flags(self) -> Vec<&'static str> {
        let flags = [
            (self.anonymous, "--keep-anonymous"),
            (self.variables, "--keep-variables"),
            (self.orphans, "--leave-orphans"),
            (self.jobs, "--rerun-jobs"),
        ];
        let given = flags.into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, flag)| flag).collect()
    }
}

fn not_all_kept(service: &str) -> Finding {
    let what = format!(
        "service {service} has anonymous volumes and several containers, and not all of these keep running: --keep-anonymous cannot keep their data"
    );
    let hint = "start them all first, run a single container, or write a named volume or bind mount for the data";
    Finding::new(what, hint).short("anonymous volumes")
}

/// What runs and has to be written into the text, and what prevents the adoption. `facts` and `plan` are those of the
/// text without it.
pub fn runs(facts: &Facts, plan: &Plan) -> (Runs, Vec<Finding>) {
    let keep = facts.keep;
    let last_sent = facts.record.as_ref().map(|record| record.last_sent);
    let (mut runs, mut blockers) = (Runs::default(), Vec::new());
    let sent = facts.projects.sent.iter();
    for service in sent.flat_map(|project| &project.services) {
        let mut planned = plan.services.iter();
        let planned = planned.find(|other| other.service == service.name);
        let stays = planned.is_some_and(|plan| plan.fate.is_unchanged());
        let containers: Vec<&Container> = facts.of_service(&service.name).collect();
        let mut found = ServiceRuns {
            containers: containers.len(),
            ..ServiceRuns::default()
        };
        let inherited = inherited_volumes(facts, service);
        let leaves = last_sent.is_some_and(|last| last.left_anonymous.contains(&service.name));
        for &container in &containers {
            let mut unnamed = unnamed_volumes(container, service);
            unnamed.retain(|_, name| !inherited.contains(name.as_str()));
            if !(stays && (keep.anonymous || leaves)) {
                found.volumes.extend(unnamed);
            } else if !unnamed.is_empty() {
                runs.left_anonymous.insert(service.name.clone());
            }
        }
        if keep.anonymous && containers.len() > 1 && !found.volumes.is_empty() {
            found.volumes.clear();
            blockers.push(not_all_kept(&service.name));
        }
        let fate = planned.map(|plan| &plan.fate);
        let is_replaced = !found.volumes.is_empty()
            || matches!(fate, Some(Fate::Recreated(_) | Fate::Unknown(_)));
        let mut starts_again = true;
        for &container in &containers {
            let (foreign, is_in_hash) = match facts.hashed(container, &service.name) {
                Some(hashed) if is_replaced => {
                    let foreign = replacement::unhashed_variables(facts, container, hashed);
                    (foreign, false)
                }
                None if !stays => {
                    let foreign = replacement::foreign_variables(facts, container, service);
                    (foreign, true)
                }
                _ => continue,
            };
            let deployed = facts.projects.deployed.as_ref();
            let deployed = deployed.and_then(|project| project.service(&service.name));
            // The user has changed the files since, unless the last adoption kept the variable.
            let is_deployed = |name: &str, value: &str| {
                let given = deployed.and_then(|deployed| deployed.environment.get(name));
                let kept = last_sent.map(|last| last.kept_instead_of(&service.name, name));
                kept.flatten().is_none() && given.is_some_and(|given| given == value)
            };
            let foreign = foreign.into_iter().flatten();
            for (name, value) in foreign.filter(|(name, value)| !is_deployed(name, value)) {
                starts_again &= is_in_hash;
                found.variables.insert(name.to_owned(), value.to_owned());
            }
        }
        if containers.is_empty() {
            found.volumes.extend(remembered_volumes(facts, service));
        }
        let is_created = matches!(fate, Some(Fate::Started(_) | Fate::Recreated(_)));
        if is_created && containers.len() < 2 {
            let paths = new_anonymous(facts, service);
            let left = (!paths.is_empty()).then(|| service.name.clone());
            if keep.anonymous {
                runs.left_anonymous.extend(left);
            } else if service.replicas() == 1 {
                for path in paths {
                    let name = created_name(facts, &service.name, &path);
                    found.volumes.entry(path).or_insert(name);
                }
            } else {
                runs.unnamed.extend(left);
            }
        }
        let all = found.volumes.iter();
        let created = all.filter(|(path, name)| **name == created_name(facts, &service.name, path));
        runs.created.extend(created.map(|(_, name)| name.clone()));
        found.instead_of = instead_of(service, found.variables.keys());
        // An earlier adoption kept it, and the files say the same as then.
        let is_kept = |name: &str| {
            let kept = last_sent?.kept_instead_of(&service.name, name)?;
            Some(found.instead_of.get(name)? == kept)
        };
        let is_other = |name: &&String| !keep.variables && is_kept(name.as_str()) != Some(true);
        let others: Vec<String> = found.variables.keys().filter(is_other).cloned().collect();
        found.variables.retain(|name, _| !others.contains(name));
        // No shell gives a container another value than a literal: the files were edited.
        let is_edited = |name: &String| {
            let kept = last_sent.and_then(|last| last.kept_instead_of(&service.name, name));
            kept.is_none() && is_literal(facts, &service.name, name)
        };
        let foreign: Vec<String> = others.into_iter().filter(|name| !is_edited(name)).collect();
        if !foreign.is_empty() {
            blockers.push(other_variables(facts, service, &foreign, starts_again));
        }
        runs.services.insert(service.name.clone(), found);
    }
    (runs, blockers)
}

/// The anonymous volumes of a container that the text does not name yet, by their path.
fn unnamed_volumes(container: &Container, service: &Service) -> BTreeMap<String, String> {
    let named = service.volumes();
    let named = named.map(|(mount, volume)| (clean(&mount.target), volume.name.clone()));
    let named: Vec<(String, String)> = named.collect();
    let volumes = container.anonymous_volumes();
    let volumes = volumes.map(|(volume, target)| (clean(target), volume.to_owned()));
    volumes.filter(|volume| !named.contains(volume)).collect()
}

/// The anonymous volumes that a service gets by `volumes_from`. They get their names in the other service, or none.
fn inherited_volumes<'a>(facts: &Facts<'a>, service: &Service) -> BTreeSet<&'a str> {
    let sources = service.texts("volumes_from");
    let names = sources.iter().filter_map(|from| from.split(':').next());
    let containers = names.flat_map(|from| facts.of_service(from));
    let volumes = containers.flat_map(Container::anonymous_volumes);
    volumes.map(|(name, _)| name).collect()
}

/// The volumes of a service whose containers were removed: what Portainer has may have been all that named them. Without those
/// that were deleted, and those in whose place the text mounts something else.
fn remembered_volumes(facts: &Facts, service: &Service) -> BTreeMap<String, String> {
    let named = facts.before.last_sent.volumes(&service.name);
    let exist = named.filter(|(path, name)| {
        facts.host.has_volume(name) && !mounts::mounts_other(facts, service, path)
    });
    let owned = exist.map(|(path, name)| (path.clone(), name.clone()));
    owned.collect()
}

/// The paths at which each container of a service has an anonymous volume; none if the volumes of the engine are unknown.
fn new_anonymous(facts: &Facts, service: &Service) -> BTreeSet<String> {
    if facts.host.volumes.is_none() {
        return BTreeSet::new();
    }
    let image = service.image.as_ref();
    let image = image.and_then(|image| facts.host.image(image));
    mounts::anonymous(facts, service, image)
}

/// The name of the volume that an adoption creates instead of an anonymous one. It is always the same, so that the plan shows
/// what is sent.
fn created_name(facts: &Facts, service: &str, path: &str) -> String {
    sha256(&[facts.project, service, path].join("\0"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        compose::{ComposeVersion, Project, Read},
        model::Variable,
        plan::{
            adoption, fates,
            tests::{World, container, world},
        },
    };

    const PLAIN: &str = "services:\n  web:\n    image: x\n    environment: {A: 1, B: }\n";

    /// What Compose computes the hash of the container's label from.
    const HASHED: &str = r#"{"environment":{"A":"1","B":"hunter2","C":"hunter2"},"image":"x"}"#;

    /// What a container of `web` with an anonymous volume and two other variables adds.
    fn found(world: &World, keep: Keep) -> (Runs, Vec<String>) {
        world.with_facts(|facts| {
            let facts = Facts { keep, ..*facts };
            let (runs, blockers) = runs(&facts, &fates(&facts));
            (runs, blockers.iter().map(ToString::to_string).collect())
        })
    }

    #[test]
    fn an_address_that_the_network_does_not_have_is_refused() {
        let text = "services: {web: {image: x, networks: {n: {ipv4_address: 10.1.0.9}}}}\nnetworks: {n: {}}";
        let mut world = running(text);
        for (now, expected) in [("10.2.0.9", true), ("10.1.0.8", false), ("", false)] {
            world.containers[0]["NetworkSettings"]["Networks"] =
                json!({"web_n": {"IPAddress": now, "IPPrefixLen": 16}});
            let is_refused = world.with_facts(|facts| {
                let mut all = adoption(facts).blockers.into_iter();
                all.any(|one| one.message.starts_with("web needs the address 10.1.0.9"))
            });
            assert_eq!(is_refused, expected, "{now}");
        }
    }

    #[test]
    fn b38_an_address_that_another_service_keeps_is_refused() {
        let text = "services: {web: {image: x, networks: {n: {ipv4_address: 10.1.0.9}}}, other: {image: x}}\nnetworks: {n: {}}";
        let mut world = running(text);
        world.containers.push(container("web-other-1", "other"));
        for (holder, expected) in [(1, true), (0, false)] {
            for (at, container) in world.containers.iter_mut().enumerate() {
                let address = if at == holder { "10.1.0.9" } else { "10.1.0.8" };
                container["NetworkSettings"]["Networks"] =
                    json!({"web_n": {"IPAddress": address, "IPPrefixLen": 16}});
            }
            let is_refused = world.with_facts(|facts| {
                let mut all = adoption(facts).blockers.into_iter();
                let what = "the address 10.1.0.9 in network web_n is used by web-other-1";
                all.any(|one| one.message == what)
            });
            assert_eq!(is_refused, expected, "{holder}");
        }
    }

    fn running(compose: &str) -> World {
        let mut world = world(compose);
        let web = &mut world.containers[0];
        web["Mounts"] = json!([
            {"Type": "volume", "Name": "0a".repeat(32), "Destination": "/data"},
            {"Type": "volume", "Name": "web_named", "Destination": "/named"},
        ]);
        web["Config"]["Env"] = json!(["PATH=/bin", "VERSION=1", "A=1", "B=hunter2", "C=hunter2"]);
        web["Config"]["Labels"]["com.docker.compose.config-hash"] = json!(sha256(HASHED));
        web["Config"]["Labels"]["com.docker.compose.version"] = json!("2.29.2");
        world
    }

    /// The same, whose files have the configuration of the container.
    fn as_it_runs(compose: &str) -> World {
        let web: serde_json::Value = serde_json::from_str(HASHED).expect("JSON");
        let config = json!({"services": {"web": web}});
        let read = Read {
            config,
            printed_by: ComposeVersion(2, 29, 2),
            folder: None,
        };
        let project = Project::new(&read, &BTreeMap::new(), None);
        World {
            on_disk: Some(project.clone()),
            read: Some(project),
            ..running(compose)
        }
    }

    #[test]
    fn anonymous_volumes_are_named_and_other_variables_refused() {
        let mut world = running(PLAIN);
        // A container of `docker compose run` and one of no service.
        for (name, service, oneoff) in [("web-run-1", "web", "True"), ("web-old-1", "old", "False")]
        {
            let mut other = container(name, service);
            other["Config"]["Labels"]["com.docker.compose.oneoff"] = json!(oneoff);
            other["Mounts"] =
                json!([{"Type": "volume", "Name": "0b".repeat(32), "Destination": "/data"}]);
            world.containers.push(other);
        }
        let (runs, blockers) = found(&world, Keep::default());
        let web = &runs.services["web"];
        assert_eq!((runs.services.len(), web.containers), (1, 1));
        assert_eq!(web.volumes, [("/data".to_owned(), "0a".repeat(32))].into());
        assert!(web.variables.is_empty());
        let start =
            "web does not run with the variables of its files: B and C are not in the files\n";
        assert!(blockers[0].starts_with(start), "{blockers:?}");
        assert!(blockers[0].ends_with(" and run `docker compose up -d`"));
        assert!(!blockers[0].contains("hunter2"));
    }

    #[test]
    fn a_value_that_was_edited_in_the_file_is_a_change() {
        let world = running("services: {web: {image: x, environment: [A=2, 'B=${B}', C]}}");
        let (_, blockers) = found(&world, Keep::default());
        let said = ": B and C are not in the files\npass --keep-variables to keep the values of the containers, or add B and C to .env, and to `environment` of the service if it is not there; ";
        assert!(blockers[0].contains(said), "{blockers:?}");
        let world =
            running("services: {web: {image: x, environment: [A, 'B=${OTHER:-x}', C=hunter2]}}");
        let (_, blockers) = found(&world, Keep::default());
        let said = ": A and OTHER are not in the files\n";
        assert!(blockers[0].contains(said), "{blockers:?}");
        let world = running("services: {web: {image: x, environment: {A: 2, B: x, C: 'y'}}}");
        let (runs, blockers) = found(&world, Keep::default());
        assert!(blockers.is_empty(), "{blockers:?}");
        assert!(runs.services["web"].variables.is_empty(), "{runs:?}");
    }

    #[test]
    fn the_command_that_starts_a_stack_names_its_files() {
        let command = |files: &str| {
            let files: Vec<String> = files.split(", ").map(str::to_owned).collect();
            crate::plan::adoption::variables::up(&files)
        };
        assert_eq!(command("compose.yaml"), "docker compose up -d");
        assert_eq!(command("web.yml"), "docker compose -f web.yml up -d");
        let expected = "docker compose -f compose.yaml -f 'a b.yml' up -d";
        assert_eq!(command("compose.yaml, a b.yml"), expected);
    }

    #[test]
    fn variables_that_the_portainer_stack_gives_may_change() {
        let mut world = running(PLAIN);
        world.deployed = Some((
            "services: {web: {image: x, environment: {A: 1, B: '${B}'}}}",
            vec![Variable::new("B", "hunter2")],
        ));
        let (_, blockers) = found(&world, Keep::default());
        let only = "web does not run with the variables of its files: C is not in the files\n";
        assert!(blockers[0].starts_with(only), "{blockers:?}");
    }

    #[test]
    fn a_container_that_certainly_stays_is_left_alone() {
        let keep = Keep {
            anonymous: true,
            ..Keep::default()
        };
        let world = as_it_runs(PLAIN);
        let (runs, blockers) = found(&world, keep);
        assert_eq!((runs.is_empty(), blockers), (true, Vec::new()));
        let (runs, blockers) = found(&world, Keep::default());
        assert_eq!((runs.is_empty(), blockers), (false, Vec::new()));
    }

    /// `proxies` of the Docker configuration, which are in no file and no hash.
    #[test]
    fn n34_variables_that_are_in_no_hash_are_refused_and_kept() {
        let mut world = as_it_runs(PLAIN);
        let env = world.containers[0]["Config"]["Env"].as_array_mut();
        let proxy = "http://proxy:3128";
        env.expect("a list")
            .push(json!(format!("HTTP_PROXY={proxy}")));
        let (runs, blockers) = found(&world, Keep::default());
        assert!(runs.services["web"].variables.is_empty(), "{runs:?}");
        let [blocker] = blockers.as_slice() else {
            panic!("{blockers:?}");
        };
        let start =
            "web does not run with the variables of its files: HTTP_PROXY is not in the files\n";
        assert!(blocker.starts_with(start), "{blocker}");
        assert!(blocker.contains("add HTTP_PROXY to .env"), "{blocker}");
        assert!(
            blocker.ends_with("`docker compose up -d --force-recreate`"),
            "{blocker}"
        );
        let keep = Keep {
            variables: true,
            ..Keep::default()
        };
        let (runs, blockers) = found(&world, keep);
        let kept = [("HTTP_PROXY".to_owned(), proxy.to_owned())].into();
        assert_eq!(
            (&runs.services["web"].variables, blockers),
            (&kept, Vec::new())
        );
        // A container that stays keeps them.
        let keep = Keep {
            anonymous: true,
            ..Keep::default()
        };
        let (runs, blockers) = found(&world, keep);
        assert_eq!(
            (runs.services["web"].variables.len(), blockers),
            (0, Vec::new())
        );
    }

    #[test]
    fn a_volume_that_the_text_names_already_adds_nothing() {
        let volume = "0a".repeat(32);
        let compose = format!(
            "services:\n  web:\n    image: x\n    environment: [A, B=hunter2, C=hunter2]\n    volumes: ['v1:/data/']\nvolumes:\n  v1: {{external: true, name: '{volume}'}}\n"
        );
        let (runs, _) = found(&running(&compose), Keep::default());
        assert!(runs.services["web"].volumes.is_empty(), "{runs:?}");
    }
}
