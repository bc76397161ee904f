//! Replaces `build` by the image that was built: Portainer cannot read the build context (M11).

use composefile::{reader::Reader, services::Service};

use crate::rewrite::faithful::{
    findings::{Findings, NewValue},
    shell::is_true,
};

/// Replaces every `build` that reads files of this host.
pub(super) fn builds<'d>(reader: &Reader<'d, '_>, found: &mut Findings<'d>) {
    for &service in &reader.services {
        replace(reader, service, found);
    }
}

fn replace<'d>(reader: &Reader<'d, '_>, service: Service<'d>, found: &mut Findings<'d>) {
    let build = service.node.entry("build");
    let Some(build) = build.filter(|build| !build.value.is_null()) else {
        return;
    };
    if reader.is_remote(build.value) || !found.is_simple(service) {
        return;
    }
    let name = service.name;
    let (line, rebuild) = (service.node.line(), rebuild(name));
    match service.node.get("image") {
        Some(own) if own.as_str().map(|text| reader.read(text)) == Some(Ok("".into())) => {
            return found.not_simple(own);
        }
        Some(_) => {
            let message = format!(
                "Portainer does not build the image of service {name}: to rebuild it, {rebuild}"
            );
            found.notice(line, message);
            found.remove(service.node, build);
        }
        None => {
            let image = image_name(reader, name);
            let message = format!(
                "Portainer does not build service {name}, and uses the image {image} of this host. To rebuild the image, {rebuild}"
            );
            found.notice(line, message);
            let new = ("image".to_owned(), NewValue::Text(image));
            found.replace(service.node, build, &[new]);
        }
    }
    pull_policy(service, found);
}

/// The name that Compose gives to the image that it builds for a service without `image`.
fn image_name(reader: &Reader<'_, '_>, service: &str) -> String {
    let compatible = reader.here("COMPOSE_COMPATIBILITY");
    let underscore =
        compatible.is_some_and(|value| value.eq_ignore_ascii_case("y") || is_true(&value));
    let separator = if underscore { '_' } else { '-' };
    format!("{}{separator}{service}", reader.project)
}

/// No registry has an image that was built here.
fn pull_policy<'d>(service: Service<'d>, found: &mut Findings<'d>) {
    let Some(policy) = service.node.entry("pull_policy") else {
        return;
    };
    let name = service.name;
    match policy.value.as_str() {
        Some("build") => found.set(policy.value, "missing"),
        Some("always" | "daily" | "weekly") => found.notice(
            policy.key.line(),
            format!(
                "`pull_policy` of service {name} pulls its image on each deployment: this fails if the image exists only on this host"
            ),
        ),
        _ => {}
    }
}

/// What a later change of the image needs.
fn rebuild(service: &str) -> String {
    format!(
        "run `docker compose build {service}`, then update the stack in Portainer without pulling its images. Do not delete the image: the next deployment would fail"
    )
}
