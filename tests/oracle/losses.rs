//! What the literal rewrite is said to lose (B01, B02) beside what it loses before the compose program.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
};

use serde_json::{Map, Value};
use stacklift::{
    compose::{
        damage::{self, judge_document},
        document::Document,
        dotenv::{compose_dotenv, contract_env},
        literal,
        loss::{
            EnvFileNames, FileUse, Owner, Surroundings, TextLoss, TextLossKind, env_file_paths,
            losses,
        },
    },
    stack::normalised,
};

use crate::{
    compare,
    judge::{Host, Judge},
};

/// What came of one stack; what agrees is only counted.
#[derive(Default)]
pub struct Account {
    pub loadable: bool,
    /// The manager's compose refuses the result, and why.
    pub refused: Option<String>,
    /// How many differences there are.
    pub real: usize,
    pub said: usize,
    /// Differences that nothing names.
    pub silent: Vec<String>,
    /// What is said to be lost and is not.
    pub false_alarms: Vec<String>,
}

/// Every profile is compared, also those that are not active.
const ALL: [&str; 2] = ["--profile", "*"];

/// A place in a configuration, step by step.
type Place = Vec<String>;

pub fn account(judge: &Judge<'_>) -> Account {
    let mut account = Account::default();
    let Some(host) = judge.host() else {
        return account;
    };
    let Ok(original) = judge.original(&host, &ALL) else {
        return account;
    };
    account.loadable = true;
    let dir = host.dir.to_str().expect("UTF-8").to_owned();
    let text = host.text.clone();
    let literal = literal::rewrite(&text, &dir);
    let env = contract_env(host.env.as_deref().unwrap_or_default());
    let mut stack_env = String::new();
    for entry in env.variables {
        writeln!(stack_env, "{}={}", entry.name, entry.value).expect("written");
    }
    let name = host.dir.file_name().and_then(|name| name.to_str());
    let project = normalised(name.expect("a name"));
    let document = match Document::parse(&text) {
        Ok(document) => document,
        Err(error) => {
            account.silent.push(format!("not understood: {error}"));
            return account;
        }
    };
    let damages = match judge_document(&document, &literal, &dir) {
        damage::Verdict::Damaged(damages) => damages,
        _ => Vec::new(),
    };
    let said = said(&host, &document);
    account.said = said.len() + damages.len();
    let held = judge.held(host, &project, &literal, &stack_env, &ALL);
    let held = match held {
        Ok(held) => held,
        Err(why) => {
            account.real = 1;
            let explains = |loss: &TextLoss| {
                matches!(loss.kind, TextLossKind::Unreadable { named_by, .. } if named_by != FileUse::Build)
            };
            if damages.is_empty() && !said.iter().any(explains) {
                account.silent.push(format!("refused: {why}"));
            }
            account.refused = Some(why);
            return account;
        }
    };
    let builds = local_builds(&original);
    let (before, after) = (comparable(original), comparable(held));
    let real: BTreeSet<Place> = compare::differences(&before, &after)
        .into_iter()
        .map(|(place, _, _)| place)
        .collect();
    account.real = real.len() + builds.len();
    let claims: Vec<_> = said.iter().map(|loss| (loss, claim(loss))).collect();
    for service in &builds {
        let named = |loss: &TextLoss| {
            loss.owner == Owner::Service(service.clone())
                && matches!(loss.kind, TextLossKind::Unreadable { named_by: FileUse::Build, .. })
        };
        if !said.iter().any(named) {
            account.silent.push(format!("services.{service}.build"));
        }
    }
    if damages.is_empty() {
        for place in &real {
            if !claims.iter().any(|(_, claim)| claim.covers(place)) {
                account.silent.push(place.join("."));
            }
        }
        count_paths(&real, &said, &mut account);
    } else if !real
        .iter()
        .any(|place| !claims.iter().any(|(_, claim)| claim.covers(place)))
    {
        account.false_alarms.extend(damages.iter().map(ToString::to_string));
    }
    for (loss, claim) in &claims {
        let is_build = match (&loss.owner, &loss.kind) {
            (Owner::Service(name), TextLossKind::Unreadable { named_by: FileUse::Build, .. }) => {
                builds.contains(name)
            }
            _ => false,
        };
        if !is_build && !real.iter().any(|place| claim.covers(place)) {
            account.false_alarms.push(loss.to_string());
        }
    }
    account
}

/// As many paths of a service are said to move as do.
fn count_paths(real: &BTreeSet<Place>, said: &[TextLoss], account: &mut Account) {
    let mut moved: BTreeMap<&str, BTreeSet<&[String]>> = BTreeMap::new();
    for place in real {
        if let [section, service, key, _, last] = &place[..]
            && section == "services"
            && key == "volumes"
            && last == "source"
        {
            moved.entry(service).or_default().insert(&place[..4]);
        }
    }
    for (service, moved) in moved {
        let of_service = |loss: &&TextLoss| {
            matches!(&loss.owner, Owner::Service(name) if name == service)
                && matches!(loss.kind, TextLossKind::Path { .. })
        };
        let claimed = said.iter().filter(of_service).count();
        if claimed < moved.len() {
            account
                .silent
                .push(format!("{} paths of {service}, said {claimed}", moved.len()));
        }
        if claimed > moved.len() {
            account
                .false_alarms
                .push(format!("{claimed} paths of {service}, not {}", moved.len()));
        }
    }
}

/// What a loss speaks of.
struct Claim {
    place: Place,
    /// The keys that may stand behind it; none is any.
    keys: &'static [&'static str],
}

impl Claim {
    fn covers(&self, place: &Place) -> bool {
        place.starts_with(&self.place)
            && (self.keys.is_empty()
                || place
                    .get(self.place.len())
                    .is_some_and(|key| self.keys.contains(&key.as_str())))
    }
}

fn claim(loss: &TextLoss) -> Claim {
    let owner: Vec<&str> = match &loss.owner {
        Owner::Service(name) => vec!["services", name],
        Owner::Volume(name) => vec!["volumes", name],
        Owner::Secret(name) => vec!["secrets", name],
        Owner::Config(name) => vec!["configs", name],
        Owner::File => vec![],
    };
    let mut place: Place = owner.iter().map(|&step| step.to_owned()).collect();
    let mut keys: &'static [&'static str] = &[];
    match &loss.kind {
        TextLossKind::Variable { name, .. } => {
            place.extend(["environment".to_owned(), name.clone()]);
        }
        TextLossKind::UnknownVariables { .. } => place.push("environment".to_owned()),
        TextLossKind::Path { .. } if place.first().is_some_and(|first| first == "services") => {
            keys = &["volumes", "develop"];
        }
        TextLossKind::Path { .. } | TextLossKind::Unreadable { .. } => {}
        TextLossKind::Replaced { place: written } => {
            let steps: Vec<&str> = written.split(['.', '[']).collect();
            if steps.starts_with(&owner) && steps.len() > owner.len() {
                place.push(steps[owner.len()].to_owned());
            }
        }
    }
    Claim { place, keys }
}

fn said(host: &Host, document: &Document<'_>) -> Vec<TextLoss> {
    let env_files = env_file_paths(document)
        .into_iter()
        .map(|file| {
            let names = match fs::read_to_string(host.dir.join(&file.path)) {
                Ok(text) => {
                    let variables = compose_dotenv(&text, &|_| None).unwrap_or_default();
                    EnvFileNames::Names(variables.into_iter().map(|(name, _)| name).collect())
                }
                Err(_) => EnvFileNames::Absent,
            };
            (file.path, names)
        })
        .collect();
    let own = compose_dotenv(host.env.as_deref().unwrap_or_default(), &|_| None);
    let own: BTreeMap<String, String> = own.unwrap_or_default().into_iter().collect();
    losses(
        document,
        &Surroundings {
            stack_dir: host.dir.to_str().expect("UTF-8"),
            env_files: &env_files,
            variables: &|name| own.get(name).cloned(),
        },
    )
}

/// The services whose build reads this host.
fn local_builds(config: &Value) -> Vec<String> {
    let services = config["services"].as_object().into_iter().flatten();
    services
        .filter(|(_, service)| service.get("build").is_some_and(compare::is_local))
        .map(|(name, _)| name.clone())
        .collect()
}

/// A configuration whose members have names instead of numbers, and paths one form; builds are left out.
fn comparable(mut config: Value) -> Value {
    compare::without_fragments(&mut config);
    let services = config["services"].as_object_mut().map(Map::values_mut);
    for service in services.into_iter().flatten() {
        let Some(service) = service.as_object_mut() else {
            continue;
        };
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
    for section in ["secrets", "configs"] {
        let members = config[section].as_object_mut().map(Map::values_mut);
        for member in members.into_iter().flatten() {
            clean(&mut member["file"]);
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
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            part => kept.push(part),
        }
    }
    *path = format!("/{}", kept.join("/")).into();
}
