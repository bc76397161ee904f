//! What a migration would do, as data.

mod services;

use composefile::document::Document;

use crate::{
    compose::Project,
    finding::{Finding, Kind},
    model::{Container, Pull},
    plan::{
        Environment, Facts, Plan, Sent,
        checks::{
            conditions, conflicts, inline, missing, overridden, permissions, unsupported,
            validation,
        },
        fates::steering::{self, Steering},
        losses::{containers, memory, record, text},
    },
    rewrite::damage::damages,
};

/// Whether Portainer's version decides what a migration loses (N14, N17, N31, N33).
pub fn depends_on_version(sent: Sent, document: &Document, project: &Project) -> bool {
    steering::is_given(sent)
        || !inline::files(project).is_empty()
        || unsupported::may_be(document, project)
}

/// Plans a migration.
pub fn migration(facts: &Facts) -> Plan {
    let project = facts.projects.sent.as_ref().ok();
    let mut plan = Plan {
        services: services::services(facts, project),
        losses_known: facts.projects.unread().is_none(),
        ..Plan::default()
    };
    plan.refuse(facts, project);
    plan.lose(facts, project);
    let pulls = plan.images.iter();
    let notices = pulls.map(|pull| {
        Finding::of_stack(&format!(
            "image {pull} will be pulled before anything is stopped"
        ))
    });
    plan.notices = notices.collect();
    let document = facts.document.filter(|_| project.is_some());
    let unknown = document.and_then(|text| overridden::may_be_overridden(facts, text));
    plan.notices.extend(unknown);
    plan
}

impl Plan {
    fn refuse(&mut self, facts: &Facts, project: Option<&Project>) {
        let destroys = destroys(facts);
        let damage = damage(facts);
        let is_damaged = damage.is_some();
        self.blockers.extend(damage);
        let listed = facts.host.listed();
        if !listed.is_empty() {
            self.blockers
                .extend(permissions::runs_portainer(listed, facts.portainer_port));
        }
        let is_concerned = match facts.remote.environment {
            Environment::OtherEngine { .. }
            | Environment::Clone { .. }
            | Environment::OtherSocket(_) => !listed.is_empty(),
            _ => destroys,
        };
        let environment = permissions::environment(&facts.remote.environment, facts.endpoint);
        self.blockers.extend(environment.filter(|_| is_concerned));
        self.blockers.extend(permissions::registered(facts));
        self.blockers.extend(facts.host.unlistable.clone());
        if destroys {
            self.refuse_a_failing_create(facts, project, is_damaged);
        }
    }

    /// B06.
    fn refuse_a_failing_create(
        &mut self,
        facts: &Facts,
        project: Option<&Project>,
        is_damaged: bool,
    ) {
        if let Environment::Unknown(reason) = &facts.remote.environment {
            self.warn(format!(
                "cannot verify that environment {} is this host: {}",
                facts.endpoint, reason
            ));
        }
        self.blockers.extend(permissions::management(facts));
        let hidden = permissions::hidden(facts);
        let admin_only = project.and_then(|project| permissions::admin_only(facts, project));
        if hidden.is_none() && admin_only.is_none() {
            self.blockers.extend(permissions::limited(facts));
        }
        self.blockers.extend(hidden);
        self.blockers.extend(admin_only);
        self.blockers
            .extend(validation::refusals(facts, is_damaged));
        let keys = facts
            .document
            .map(|document| validation::doubts(facts, document, None));
        let keys = keys.unwrap_or_default();
        let Some(project) = project else {
            let missing = missing::missing(facts);
            self.blockers.extend(missing.refusals);
            self.images.extend(absent_images(facts));
            let doubt = validation::doubt(facts, &self.blockers, &keys);
            self.warnings.extend(keys);
            self.warn_all(missing.doubts.into_iter().chain(doubt));
            return;
        };
        let refused = unsupported::unsupported(facts, project, |_| true);
        self.blockers.extend(refused);
        let steering = Steering::new(facts, project);
        let rejected = steering
            .rejected()
            .into_iter()
            .map(|blocker| blocker.message);
        self.blockers
            .extend(validation::rejects(rejected.collect()));
        self.warn_all(steering.doubt());
        let missing = missing::missing(facts);
        let mut refusals = missing.refusals;
        self.warnings.extend(keys);
        self.images.extend(missing.pulls);
        self.warn_all(missing.absent);
        self.warn_all(missing.doubts);
        // The engine may use another network namespace.
        let used = conflicts::used_on_host(facts, project, |_| true).into_iter();
        self.warn_all(used.map(|port| format!("the deployment may fail: {}", port.message)));
        self.warn_all(conditions::doubts(facts, project));
        let what = "Compose cannot start paused containers";
        let paused = Finding::about(conflicts::paused(facts), what, "unpause them first");
        refusals.extend(paused.map(|refusal| refusal.of_kind(Kind::Paused)));
        let others: Vec<&Container> = facts.host.others().collect();
        refusals.extend(conflicts::held_by((&others, facts.tool), project, |_| true));
        for refusal in refusals {
            let is_on_engine = matches!(refusal.kind, Kind::OnEngine | Kind::Paused);
            if is_on_engine && facts.remote.environment != Environment::SameEngine {
                let told = if refusal.details.is_empty() {
                    vec![refusal.message]
                } else {
                    refusal.details
                };
                let may_fail = |what| format!("the deployment may fail: {what}");
                self.warn_all(told.into_iter().map(may_fail));
            } else {
                self.blockers.push(refusal);
            }
        }
    }

    /// B01.
    fn lose(&mut self, facts: &Facts, project: Option<&Project>) {
        let mut text = text::losses(facts);
        let mut refusals = self.blockers.iter();
        if refusals.any(|refusal| refusal.kind == Kind::BadEnvFile) {
            text.retain(|loss| loss.kind != Kind::BadEnvFile);
        }
        if let (Some(project), Some(document)) = (project, facts.document) {
            let steering = Steering::new(facts, project);
            let not_started = steering.not_started().into_iter();
            let lost = not_started.chain(inline::lost_files(facts, project));
            let lost = lost.chain(overridden::overridden(facts, document));
            self.losses
                .extend(lost.map(|finding| match &finding.details[..] {
                    [] => Finding::of_stack(&finding.message),
                    names => {
                        Finding::of_stack(&format!("{}: {}", finding.message, names.join(", ")))
                    }
                }));
        }
        let (running, unknown) = containers::losses(facts, project, &[]);
        self.losses.extend(running);
        let (in_memory, unseen) = memory::losses(facts, &self.services);
        self.losses.extend(in_memory);
        self.warnings.extend(memory::unseen_memory(&unseen));
        self.losses.extend(text);
        self.warn_all(unknown);
        if let Some(record) = &facts.record {
            let losses = record::losses(record, facts.sent, facts.document).into_iter();
            // B23
            let users = facts
                .remote
                .uses
                .lost_with_stack(facts.remote.rights.see_every_stack());
            let is_known = users.is_some();
            let lost = losses.filter(|loss| !is_known || loss.kind != Kind::Access);
            let named = users.as_ref().and_then(record::use_lost);
            self.losses.extend(named.into_iter().chain(lost));
            if record.contents.is_none() && !facts.is_forbidden() {
                let id = &record.record.id;
                self.warn(format!(
                    "cannot read Portainer stack {id}: how it differs from the files is unknown"
                ));
            }
        }
        let losses = std::mem::take(&mut self.losses).into_iter();
        (self.changes, self.losses) = losses.partition(|loss| loss.is_change(false));
        if !facts.host.listed().is_empty() && facts.host.containers.is_none() {
            self.warn("cannot inspect the containers: what they would lose is unknown");
        }
        // Otherwise, a refusal or a doubt says why.
        let is_preview = !destroys(facts) && facts.host.containers.is_some();
        if let (Err(why), true) = (&facts.projects.on_disk, project.is_some() || is_preview) {
            self.warn(format!(
                "what the rewritten Compose file loses is unknown: {why}"
            ));
        }
    }
}

/// The images that the text names and that are not on this engine, if it is the one of the environment.
fn absent_images(facts: &Facts) -> Vec<Pull> {
    let is_here = !facts.remote.environment.is_other_engine();
    let named = facts.document.filter(|_| is_here);
    let named = named.map(|text| missing::images_to_have(text, facts.sent));
    let images = named.unwrap_or_default().into_iter();
    let is_absent = |image: &String| facts.host.lacks_image(image);
    let pull = |image| Pull {
        shown: None,
        image,
        platform: None,
    };
    images.filter(is_absent).map(pull).collect()
}

/// Whether a migration removes something.
fn destroys(facts: &Facts) -> bool {
    facts.record.is_some() || facts.host.may_have_containers()
}

/// B02.
fn damage(facts: &Facts) -> Option<Finding> {
    let places = damages(facts.source.document.as_ref()?, facts.sent.text, facts.dir);
    let places = places.iter().map(ToString::to_string).collect();
    let what = "the literal rewrite damages the Compose file";
    let refusal = Finding::about(places, what, "change these lines");
    refusal.map(|one| one.of_kind(Kind::Damage))
}
