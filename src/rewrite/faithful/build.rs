//! `build`: the manager cannot read the context (M11), so the service gets the image that was built.
#![deny(clippy::disallowed_methods)]

use super::{
    Notice, Reason, Refusal, carry::others, rewriter::Rewriter, splice::Value, variables::is_true,
};
use composefile::{document::Entry, reader::effective, services::Service};

const WHY: &str = "the manager cannot read the build's context (M11)";

impl<'d> Rewriter<'d, '_> {
    /// Replaces every `build` that reads this host by the image that compose gave it.
    pub(super) fn build(&mut self) {
        for service in self.services.clone() {
            let chain = self.chain(service);
            let Some(build) = effective(&chain, "build") else {
                continue;
            };
            if self.is_remote(build.value) {
                continue;
            }
            if self.hides_remote(service, &chain, build) {
                self.refusals.push(Refusal::at(
                    build.key,
                    Reason::Shared,
                    format!(
                        "the build of the service {} hides one with a remote context",
                        service.name
                    ),
                    "write the service without that one",
                ));
                continue;
            }
            let own_build = service.node.entry("build");
            let image = self.built_image(service);
            match effective(&chain, "image") {
                None => self.drop_build(service, build, Some((&image, own_build))),
                Some(entry) if self.read(entry.value).is_some_and(|text| text.is_empty()) => {
                    self.say_built(service, &image);
                    let what = format!("the service {} gets `image: {image}`", service.name);
                    self.desire(entry.value, image, (what, WHY, false));
                    if let Some(entry) = own_build {
                        self.remove(entry);
                    }
                }
                Some(_) => {
                    if let Some(entry) = own_build {
                        self.drop_build(service, entry, None);
                    }
                }
            }
            self.keep_from_pulling(service, &chain);
        }
    }

    /// The name that compose gives to what it builds for a service without `image`.
    fn built_image(&self, service: Service<'d>) -> String {
        let compatible = self.here("COMPOSE_COMPATIBILITY");
        let old =
            compatible.is_some_and(|value| value.eq_ignore_ascii_case("y") || is_true(&value));
        let separator = if old { '_' } else { '-' };
        format!("{}{separator}{}", self.project, service.name)
    }

    /// Takes out the builds that this one hides, which would come to light without it; `true` where one of
    /// them stays for others.
    fn hides_remote(
        &mut self,
        service: Service<'d>,
        chain: &[Service<'d>],
        build: Entry<'d>,
    ) -> bool {
        let bases = chain.iter().filter(|base| base.name != service.name);
        let inherited = bases.filter_map(|base| effective(&[*base], "build"));
        let hidden: Vec<_> = inherited.chain(others(service, build)).collect();
        if hidden.iter().any(|entry| self.is_remote(entry.value)) {
            return true;
        }
        for entry in others(service, build) {
            self.remove(entry);
        }
        false
    }

    fn drop_build(
        &mut self,
        service: Service<'d>,
        build: Entry<'d>,
        image: Option<(&str, Option<Entry<'d>>)>,
    ) {
        let mapping = service.node.resolved();
        let written_here = |entry: &Entry<'d>| {
            mapping
                .own_entries()
                .any(|own| own.key.id() == entry.key.id())
        };
        let line = Some(service.node.line());
        let Some((image, own_build)) = image else {
            self.notices.push(Notice {
                line,
                message: format!(
                    "the service {} keeps the image that is on this host; building it anew is a step of its own: docker compose build {}",
                    service.name, service.name
                ),
            });
            self.remove(build);
            return;
        };
        self.say_built(service, image);
        if self.is_shared(service) {
            self.refusals.push(Refusal::at(
                service.node,
                Reason::Shared,
                format!("the service {} needs an `image` of its own, and its mapping is that of another service too", service.name),
                format!("write `image: {image}` into the service, or the service without an anchor"),
            ));
            return;
        }
        let entries = vec![("image".to_owned(), Value::Text(image.to_owned()))];
        let what = format!(
            "`build` of the service {} becomes `image: {image}`",
            service.name
        );
        match own_build {
            Some(own) if written_here(&own) => {
                self.replace(mapping, own, entries, (what, WHY, false));
            }
            other => {
                self.insert(mapping, entries, (what, WHY, false));
                if let Some(entry) = other {
                    self.remove(entry);
                }
            }
        }
    }

    fn say_built(&mut self, service: Service<'d>, image: &str) {
        self.notices.push(Notice {
            line: Some(service.node.line()),
            message: format!(
                "the service {} runs the image {image}, which its build made on this host, and its container is made anew once, as it had no `image` before (N05); building the image anew is a step of its own: docker compose build {}",
                service.name, service.name
            ),
        });
    }

    /// An image that was built here is nowhere to be pulled from.
    fn keep_from_pulling(&mut self, service: Service<'d>, chain: &[Service<'d>]) {
        let Some(policy) = effective(chain, "pull_policy") else {
            return;
        };
        match policy.value.as_str() {
            Some("build") => self.desire(
                policy.value,
                "missing".to_owned(),
                (
                    format!("`pull_policy` of the service {} becomes `missing`", service.name),
                    "there is nothing left to build",
                    false,
                ),
            ),
            Some("always" | "daily" | "weekly") => self.notices.push(Notice {
                line: Some(policy.key.line()),
                message: format!(
                    "`pull_policy` of the service {} asks for its image at each deployment, which fails where the image was only built here",
                    service.name
                ),
            }),
            _ => {}
        }
    }
}
