//! Replaces `build` by the image that was built: Portainer cannot read the build context (M11).

use composefile::{
    document::Entry,
    reader::{Reader, effective},
    services::Service,
};

use crate::rewrite::faithful::{
    Kind,
    findings::{Findings, NewValue, Secrecy},
    sharing::{Sharing, is_own, overridden},
    shell::is_true,
};

/// Replaces every `build` that reads files of this host.
pub(super) fn builds<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let mut pass = Builds {
        reader,
        sharing: Sharing::new(reader),
        found: Findings::default(),
    };
    for &service in &reader.services {
        pass.service(service);
    }
    pass.found
}

struct Builds<'r, 'd, 'a> {
    reader: &'r Reader<'d, 'a>,
    sharing: Sharing<'r, 'd, 'a>,
    found: Findings<'d>,
}

impl<'d> Builds<'_, 'd, '_> {
    fn service(&mut self, service: Service<'d>) {
        let chain = self.reader.chain(service);
        let Some(build) = effective(&chain, "build") else {
            return;
        };
        if self.reader.is_remote(build.value) {
            return;
        }
        // A build with a remote context has to stay for other services, and would take effect without this one.
        let bases = chain.iter().filter(|base| base.name != service.name);
        let inherited = bases.filter_map(|base| effective(&[*base], "build"));
        let mut hidden = inherited.chain(overridden(service, build));
        if hidden.any(|entry| self.reader.is_remote(entry.value)) {
            let name = service.name;
            let message =
                format!("the build of service {name} overrides a build with a remote context");
            let hint = "remove the overridden build";
            self.found.block(build.key, Kind::Shared, message, hint);
            return;
        }
        for entry in overridden(service, build) {
            self.found.remove(entry);
        }
        let own_build = service.node.entry("build");
        match effective(&chain, "image") {
            None => self.replace_by_image(service, own_build),
            Some(image) => {
                let text = image.value.as_str().map(|text| self.reader.read(text));
                if text.is_some_and(|text| text.is_ok_and(|text| text.is_empty())) {
                    let name = self.image_name(service);
                    self.notice_recreated(service, &name);
                    self.found.set(image.value, name, Secrecy::Public);
                } else if own_build.is_some() {
                    let (name, rebuild) = (service.name, rebuild(service.name));
                    let message =
                        format!("service {name} keeps its current image: to rebuild it, {rebuild}");
                    self.found.notice(service.node.line(), message);
                }
                if let Some(entry) = own_build {
                    self.found.remove(entry);
                }
            }
        }
        self.pull_policy(service, &chain);
    }

    /// The name that Compose gives to the image that it builds for a service without `image`.
    fn image_name(&self, service: Service<'d>) -> String {
        let compatible = self.reader.here("COMPOSE_COMPATIBILITY");
        let underscore =
            compatible.is_some_and(|value| value.eq_ignore_ascii_case("y") || is_true(&value));
        let separator = if underscore { '_' } else { '-' };
        format!("{}{separator}{}", self.reader.project, service.name)
    }

    fn replace_by_image(&mut self, service: Service<'d>, own_build: Option<Entry<'d>>) {
        let image = self.image_name(service);
        self.notice_recreated(service, &image);
        if self.sharing.is_shared(service) {
            let message = format!(
                "service {} needs its own `image`, but another service uses the same mapping",
                service.name
            );
            let hint = format!(
                "add `image: {image}` to the service, or write the service without an anchor"
            );
            self.found.block(service.node, Kind::Shared, message, hint);
            return;
        }
        let mapping = service.node.resolved();
        let new = vec![("image".to_owned(), NewValue::Text(image))];
        match own_build {
            Some(entry) if is_own(mapping, entry) => self.found.replace(entry, new),
            other => {
                self.found.insert(mapping, new);
                if let Some(entry) = other {
                    self.found.remove(entry);
                }
            }
        }
    }

    fn notice_recreated(&mut self, service: Service<'d>, image: &str) {
        let (name, rebuild) = (service.name, rebuild(service.name));
        let message = format!(
            "service {name} uses the image {image} that was built on this host. To rebuild the image, {rebuild}"
        );
        self.found.notice(service.node.line(), message);
    }

    /// No registry has an image that was built here.
    fn pull_policy(&mut self, service: Service<'d>, chain: &[Service<'d>]) {
        let Some(policy) = effective(chain, "pull_policy") else {
            return;
        };
        let name = service.name;
        match policy.value.as_str() {
            Some("build") => self.found.set(policy.value, "missing".into(), Secrecy::Public),
            Some("always" | "daily" | "weekly") => self.found.notice(
                policy.key.line(),
                format!(
                    "`pull_policy` of service {name} pulls its image on each deployment: this fails if the image exists only on this host"
                ),
            ),
            _ => {}
        }
    }
}

/// What a later change of the image needs.
fn rebuild(service: &str) -> String {
    format!(
        "run `docker compose build {service}`, then update the stack in Portainer without pulling its images. Do not delete the image: the next deployment would fail"
    )
}
