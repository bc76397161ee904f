//! What the literal rewrite is said to lose (B01, B02) beside what it loses before the compose program.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

use composefile::document::Document;
use serde_json::{Map, Value};
use stacklift::rewrite::{
    combine as compare,
    damage::damages,
    env::{contract_env, stack_env},
    literal,
    loss::{Owner, TextLoss, TextLossKind, losses},
};

use crate::judge::{Judge, with_context};

/// A stack's name as Portainer normalises it (M02).
fn normalised(name: &str) -> String {
    let kept = |c: &char| matches!(c, '-' | '_' | 'a'..='z' | '0'..='9');
    name.to_lowercase().chars().filter(kept).collect()
}

/// What came of one stack.
#[derive(Default)]
pub struct Account {
    pub loadable: bool,
    /// Differences that nothing names.
    pub silent: Vec<String>,
    /// What is said to be lost and is not.
    pub false_alarms: Vec<String>,
}

/// Every profile is compared, also those that are not active.
const ALL: [&str; 2] = ["--profile", "*"];
const OVERRIDE: &str = "docker-compose.override.yml";

/// A place in a configuration, step by step.
type Place = Vec<String>;

pub fn account(judge: &Judge<'_>) -> Account {
    let mut account = Account::default();
    let Some(host) = judge.host() else {
        return account;
    };
    let mut options = Vec::from(ALL);
    if host.dir.join(OVERRIDE).exists() {
        options.extend(["-f", OVERRIDE]);
    }
    let Ok(original) = judge.original(&host, &options) else {
        return account;
    };
    account.loadable = true;
    let dir = host.dir.to_str().expect("UTF-8").to_owned();
    let text = host.text.clone();
    // What is not understood is sent with a warning that says so.
    let Ok(document) = Document::parse(&text) else {
        return account;
    };
    let literal = literal::rewrite(&text, &dir);
    let env = contract_env(host.env.as_deref().unwrap_or_default());
    let project = normalised(dir.rsplit('/').next().unwrap_or_default());
    let damages = damages(&document, &literal, &dir);
    let said = with_context(&host, |context| {
        losses(&document, host.env.as_deref(), context, &project)
    });
    let held = match judge.held(
        &host.root,
        &project,
        &literal,
        &stack_env(&env.variables),
        &ALL,
    ) {
        Ok(held) => held,
        Err(why) => {
            if damages.is_empty() && !said.iter().any(|loss| explains(loss, &why)) {
                account.silent.push(format!("refused: {why}"));
            }
            return account;
        }
    };
    let builds = local_builds(&original);
    let (before, after) = (comparable(original), comparable(held));
    let moved = compare::differences(&before, &after).into_iter();
    let real: BTreeSet<Place> = moved.map(|(place, ..)| place).chain(builds).collect();
    let claims = said.iter().map(|loss| (loss, Claim::of(loss, &document)));
    let claims: Vec<_> = claims.collect();
    let is_claimed = |place: &&Place| claims.iter().any(|(_, claim)| claim.covers(place));
    let unclaimed: Vec<_> = real.iter().filter(|place| !is_claimed(place)).collect();
    if damages.is_empty() {
        let places = unclaimed.iter().map(|place| place.join("."));
        account.silent.extend(places);
        count_paths(&real, &said, &mut account);
    } else if unclaimed.is_empty() {
        let damages = damages.iter().map(ToString::to_string);
        account.false_alarms.extend(damages);
    }
    for (loss, claim) in &claims {
        if !is_unseen(loss) && !real.iter().any(|place| claim.covers(place)) {
            account.false_alarms.push(loss.to_string());
        }
    }
    account
}

/// Whether a loss is of what a configuration does not show: the content of a secret, or a file that only
/// `COMPOSE_FILE` names.
fn is_unseen(loss: &TextLoss) -> bool {
    match &loss.kind {
        TextLossKind::Value { place, .. } => {
            matches!(loss.owner, Owner::Secret(_) | Owner::Config(_))
                && place.ends_with(".environment")
        }
        TextLossKind::IgnoredFile { file } => file != OVERRIDE,
        _ => false,
    }
}

/// Whether a loss explains why Portainer's Compose rejects the result.
fn explains(loss: &TextLoss, why: &str) -> bool {
    match &loss.kind {
        TextLossKind::Unreadable { named_by, .. } => *named_by != "build",
        TextLossKind::UnreadableEnv => why.contains("stack.env"),
        TextLossKind::Path { .. } => why.contains("invalid spec"),
        TextLossKind::Value { variables, .. } => variables.iter().any(|name| why.contains(name)),
        _ => false,
    }
}

/// As many paths of a service are said to move as do.
fn count_paths(real: &BTreeSet<Place>, said: &[TextLoss], account: &mut Account) {
    let mut moved: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for place in real {
        let steps: Vec<&str> = place.iter().map(String::as_str).collect();
        if let ["services", service, "volumes", _, "source"]
        | ["services", service, "develop", .., "path"] = steps[..]
        {
            moved.entry(service).or_default().0 += 1;
        }
    }
    for loss in said {
        if let (Owner::Service(service), TextLossKind::Path { .. }) = (&loss.owner, &loss.kind) {
            moved.entry(service).or_default().1 += 1;
        }
    }
    for (service, (moved, claimed)) in moved {
        let message = format!("{moved} paths of {service} move, {claimed} are said to");
        match claimed.cmp(&moved) {
            Ordering::Less => account.silent.push(message),
            Ordering::Equal => {}
            Ordering::Greater => account.false_alarms.push(message),
        }
    }
}

/// The places that a loss speaks of.
struct Claim {
    place: Place,
    /// The keys that may stand behind it; none is any.
    keys: &'static [&'static str],
}

impl Claim {
    fn of(loss: &TextLoss, document: &Document<'_>) -> Self {
        let owner: Vec<&str> = match &loss.owner {
            Owner::Service(name) => vec!["services", name],
            Owner::Volume(name) => vec!["volumes", name],
            Owner::Secret(name) => vec!["secrets", name],
            Owner::Config(name) => vec!["configs", name],
            Owner::File | Owner::Env => vec![],
        };
        let mut place: Place = owner.iter().map(|&step| step.to_owned()).collect();
        let mut keys: &'static [&'static str] = &[];
        match &loss.kind {
            TextLossKind::Variable { name, .. } => {
                place.extend(["environment".to_owned(), name.clone()]);
            }
            TextLossKind::UnknownVariables { .. } => place.push("environment".to_owned()),
            TextLossKind::Path { .. } if owner.first() == Some(&"services") => {
                keys = &["volumes", "develop"];
            }
            TextLossKind::Unreadable {
                named_by: "build", ..
            } => keys = &["build"],
            TextLossKind::Project { .. } => keys = &["name"],
            TextLossKind::Replaced { place: written }
            | TextLossKind::Value { place: written, .. } => {
                place.extend(steps_below(&owner, written, document));
            }
            _ => {}
        }
        Self { place, keys }
    }

    fn covers(&self, place: &Place) -> bool {
        let is_key = |key: &String| self.keys.contains(&key.as_str());
        place.starts_with(&self.place)
            && (self.keys.is_empty() || place.get(self.place.len()).is_some_and(is_key))
    }
}

/// The key that a text stands at below its owner, and the variable where that is `environment`; nothing for
/// a text that is written elsewhere.
fn steps_below(owner: &[&str], written: &str, document: &Document<'_>) -> Vec<String> {
    let Some(below) = written.strip_prefix(&owner.join(".")) else {
        return Vec::new();
    };
    let below = below.trim_start_matches('.');
    let key = below.split(['.', '[']).next().unwrap_or_default();
    let mut steps = vec![key.to_owned()];
    if key == "environment" {
        let rest = &below[key.len()..];
        let number = || rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
        let of_item = |index| {
            let root = document.root().expect("a root");
            let service = owner.iter().try_fold(root, |node, step| node.get(step))?;
            let item = service.get(key)?.items().nth(index)?;
            item.as_str()?.split('=').next()
        };
        let name = match number() {
            Some(index) => of_item(index),
            None => rest.strip_prefix('.'),
        };
        steps.extend(name.map(str::to_owned));
    }
    steps
}

/// The builds that read this host.
fn local_builds(config: &Value) -> Vec<Place> {
    let services = config["services"].as_object().into_iter().flatten();
    services
        .filter(|(_, service)| service.get("build").is_some_and(compare::is_local))
        .map(|(name, _)| vec!["services".into(), name.clone(), "build".into()])
        .collect()
}

/// A configuration whose members have names instead of numbers, whose paths have one form, and without what
/// the project's name gives a name; builds are left out.
fn comparable(mut config: Value) -> Value {
    compare::without_fragments(&mut config);
    let project = config["name"].as_str().unwrap_or_default().to_owned();
    let services = config["services"].as_object_mut().map(Map::values_mut);
    for service in services.into_iter().flatten() {
        let Some(service) = service.as_object_mut() else {
            continue;
        };
        service.retain(|key, _| !key.starts_with("x-"));
        if service.get("build").is_some_and(compare::is_local) {
            service.remove("build");
        }
        let mut by_target = Map::new();
        let mounts = service.get_mut("volumes").and_then(Value::as_array_mut);
        for mount in mounts.into_iter().flatten() {
            clean(&mut mount["source"]);
            let target = mount["target"].as_str().unwrap_or_default().to_owned();
            by_target.insert(target, mount.take());
        }
        service.insert("volumes".into(), by_target.into());
        let environment = service.entry("environment").or_insert(Value::Null);
        if environment.is_null() {
            *environment = Map::new().into();
        }
    }
    for section in ["secrets", "configs", "volumes", "networks"] {
        let members = config[section].as_object_mut().map(Map::iter_mut);
        for (key, member) in members.into_iter().flatten() {
            clean(&mut member["file"]);
            if member["name"] == format!("{project}_{key}") {
                member["name"] = Value::Null;
            }
        }
    }
    config
}

/// By its text alone: `/a/./b/` is `/a/b`.
fn clean(path: &mut Value) {
    let Some(text) = path.as_str().filter(|text| text.starts_with('/')) else {
        return;
    };
    let mut kept = Vec::new();
    for part in text.split('/').filter(|part| !["", "."].contains(part)) {
        if part == ".." {
            kept.pop();
        } else {
            kept.push(part);
        }
    }
    *path = format!("/{}", kept.join("/")).into();
}
