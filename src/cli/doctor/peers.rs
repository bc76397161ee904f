//! The checks of Portainer and of the engine. Only reads.

use std::net::SocketAddr;

use anyhow::Result;

use crate::{
    cli::settings::Settings,
    engine::{About, EngineReader},
    model::Rights,
    observe::{self, Environments, Evidence},
    parallel::side_by_side,
    plan::{self, Environment, management_of},
    portainer::{Owners, PortainerReader, Tls, is_rejected_key, other_key},
    report::{Check, Status as CheckStatus},
};

/// The oldest version of Portainer that stacklift supports.
const OLDEST: (u32, u32) = (2, 19);

/// Portainer and the engine.
type Peers<'a> = (&'a PortainerReader, &'a EngineReader);

/// The engine, and how it is reached.
pub(super) fn engine(reader: &EngineReader, about: &Result<&About>) -> Check {
    let subject = "Docker";
    let how = reader.adapter();
    if let Err(error) = reader.refuse_podman() {
        return Check::of_error(subject, &error, "use Docker Engine");
    }
    let hint = format!("stacklift connects through {how}: check that Docker is running");
    let about = match about {
        Ok(about) => about,
        Err(error) => return Check::of_error(subject, error, &hint),
    };
    let version = about.version.as_deref().unwrap_or("unknown");
    let api = about.api.as_ref();
    let api = api.map_or(String::new(), |api| format!(" (API {api})"));
    let fact = format!("{version}{api}, through {how}");
    if reader.require_api().is_err() {
        let hint = "adopt and restore need the Engine API: set DOCKER_HOST to Docker's socket (unix:///…), or use --engine api";
        return Check::warning(subject, fact, hint);
    }
    Check::ok(subject, fact)
}

/// Portainer's address and version.
pub(super) fn portainer(settings: &Settings, status: &Result<Option<String>>) -> Check {
    let subject = "Portainer";
    let status = match status {
        Ok(status) => status,
        Err(error) => return Check::of_error(subject, error, "check --base-url and --tls"),
    };
    let (base_url, (major, minor)) = (&settings.base_url, OLDEST);
    let needed = format!("stacklift needs Portainer {major}.{minor} or later");
    let Some(version) = status else {
        let fact = format!("the version of Portainer at {base_url} is unknown");
        return Check::warning(subject, fact, needed);
    };
    let fact = format!("{version} at {base_url}");
    match major_and_minor(version) {
        Some(found) if found < OLDEST => {
            let hint = format!("upgrade Portainer: {needed}");
            Check::failed(subject, format!("{fact} is too old"), hint)
        }
        Some(_) => Check::ok(subject, fact),
        None => Check::warning(subject, fact, needed),
    }
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.split_once('.')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit());
    let minor = &rest[..digits.unwrap_or(rest.len())];
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// How Portainer's certificate is verified.
pub(super) fn tls(settings: &Settings, status: &Result<Option<String>>) -> Check {
    let subject = "TLS";
    let base_url = &settings.base_url;
    let owners = base_url.owners();
    if base_url.is_unverified(&settings.tls) && !owners.is_empty() {
        return unverified(settings, status, &owners);
    }
    match &settings.tls {
        Tls::Off => Check::warning(
            subject,
            format!(
                "certificates are not verified: another host could pose as {base_url} and receive the API key"
            ),
            "set --tls pin to accept only the certificate of the first connection, or --tls system",
        ),
        mode if status.is_ok() => Check::ok(
            subject,
            format!("Portainer's certificate was verified (--tls {mode})"),
        ),
        _ => Check::not_checked(subject, "Portainer could not be read"),
    }
}

/// Who receives the API key on this host if no certificate is verified (B31).
fn unverified(
    settings: &Settings,
    status: &Result<Option<String>>,
    owners: &[(SocketAddr, Option<Owners>)],
) -> Check {
    let what = match &settings.tls {
        _ if !settings.base_url.is_https() => "TLS is not used",
        Tls::File(_) => "another user can change the certificates of --tls",
        _ => "certificates are not verified",
    };
    let who = owners.iter().map(|(address, owners)| match owners {
        None => format!("; who listens at {address} is unknown: cannot read /proc/net/tcp"),
        Some(owners) if owners.is_nobody() => {
            format!("; no program on this host listens at {address}")
        }
        Some(owners) => format!("; {address} belongs to user {owners}"),
    });
    let fact = what.to_owned() + &who.collect::<String>();
    let is_https = settings.base_url.is_https();
    let set = "set --tls pin".to_owned()
        + if is_https {
            ""
        } else {
            " and an https:// address"
        };
    let mut known = owners.iter().filter_map(|(_, owners)| owners.as_ref());
    let is_known = owners.iter().all(|(_, owners)| owners.is_some());
    if is_known && known.clone().all(Owners::is_nobody) && status.is_err() {
        return Check::not_checked("TLS", "Portainer could not be read");
    }
    if known.all(Owners::are_trusted) {
        return if is_known && settings.tls == Tls::Off && is_https {
            Check::ok("TLS", format!("{fact}: --tls pin is stricter"))
        } else {
            Check::warning("TLS", fact, set)
        };
    }
    let hint = format!(
        "if that program is Portainer, {set}; otherwise, stop the program: it could receive the API key"
    );
    Check::failed("TLS", fact, hint)
}

/// The user of the API key, and whether the environment is the engine of this host. The error is the check of a key that
/// Portainer rejected.
pub(super) fn with_key(
    peers: Peers,
    settings: &Settings,
    about: Option<&About>,
) -> Result<[Check; 2], Check> {
    let environment = || match about {
        Some(_) => environment(peers, settings),
        None => Check::not_checked("environment", "Docker did not respond"),
    };
    let (environment, user) = side_by_side(environment, || user(peers.0));
    let user = user?;
    if user.status == CheckStatus::Failed && environment.status != CheckStatus::Ok {
        let reason = "the user of the API key could not be read";
        return Ok([user, Check::not_checked("environment", reason)]);
    }
    Ok([user, environment])
}

fn user(reader: &PortainerReader) -> Result<Check, Check> {
    let subject = "user";
    let user = match reader.user() {
        Ok(user) => user,
        Err(error) if is_rejected_key(&error) => {
            let (fact, then) = ("Portainer rejected it (401)", other_key());
            let hint = format!(
                "create another one in Portainer under My account → Access tokens; then {then}"
            );
            return Err(Check::failed("API key", fact, hint));
        }
        Err(error) => return Ok(Check::of_error(subject, &error, "create another API key")),
    };
    let name = user.name.as_deref().unwrap_or("unknown");
    let role = match user.is_administrator {
        Some(true) => {
            // M23
            let fact = format!(
                "{name}, an administrator: only administrators can use a new stack, unless you pass --access"
            );
            return Ok(Check::ok(subject, fact));
        }
        Some(false) => format!("{name} is not an administrator"),
        None => format!("the role of {name} is unknown"),
    };
    Ok(Check::warning(
        subject,
        format!("{role}: Portainer may not list every stack"),
        "use an API key of an administrator",
    ))
}

/// Whether the environment is this host, and its stacks are not for administrators only (M17, M22).
fn environment((portainer, engine): Peers, settings: &Settings) -> Check {
    let subject = "environment";
    let (id, name) = if let Some(id) = settings.endpoint {
        (id, id.to_string())
    } else {
        let search = Environments::of_host(portainer, engine);
        match search.and_then(|search| search.found(&settings.base_url).cloned()) {
            Ok(one) => (one.id, one.to_string()),
            Err(error) => return Check::of_error(subject, &error, "pass its ID with --endpoint"),
        }
    };
    let others = &engine.list_all().unwrap_or_default();
    let evidence = Evidence { own: &[], others };
    let environment = observe::environment(portainer, Some(engine), id, evidence);
    if let Environment::Unknown(reason) = environment {
        let fact = format!("cannot verify that environment {name} is this host: {reason}");
        return Check::failed(subject, fact, "check the environment in Portainer");
    }
    let management = || (portainer.rights(id) == Rights::NoStacks).then(|| management_of(id));
    match plan::unusable(&environment, id).or_else(management) {
        Some(blocker) => Check::of(subject, blocker, ""),
        None => Check::ok(subject, format!("environment {name} is this host")),
    }
}
