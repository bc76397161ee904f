//! What a migration would do, as data.

mod services;

use crate::{
    finding::{Finding, Kind},
    model::Container,
    plan::{
        Environment, Facts, Plan, Sent,
        adoption::portainer_compose,
        blockers::{
            conditions, conflicts, inline, missing, overridden, permissions, unsupported,
            validation,
        },
        escape,
        facts::services::{SentStack, SentText, with_sent},
        fates::steering::Steering,
        losses::{containers, memory, record, text_lost},
    },
    rewrite::{
        damage::damages,
        loss::{TextLossKind, losses},
    },
};

/// Whether Portainer's version decides what a migration loses (N14, N17, N31, N33).
pub fn depends_on_version(sent: Sent, project: &str) -> bool {
    with_sent(sent, project, |_, stack| {
        stack.is_some_and(|stack| {
            Steering::new(stack, None, None).is_given()
                || !inline::files(stack).is_empty()
                || unsupported::may_be(stack)
        })
    })
}

/// Plans a migration.
pub fn migration(facts: &Facts) -> Plan {
    with_sent(facts.sent, facts.project, |text, stack| {
        let mut plan = Plan {
            services: services::services(facts, stack),
            losses_known: facts.source.document.is_ok(),
            ..Plan::default()
        };
        plan.refuse(facts, text, stack);
        plan.lose(facts, stack);
        escape(&mut plan.warnings);
        plan
    })
}

impl Plan {
    /// What is said of the images that will be pulled.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        let pulls = self.images.iter();
        pulls.map(|pull| format!("image {pull} will be pulled before anything is stopped"))
    }

    fn refuse(&mut self, facts: &Facts, text: &SentText, stack: Option<&SentStack>) {
        let destroys = facts.record.is_some() || facts.may_have_containers();
        let damage = damage(facts);
        let is_damaged = damage.is_some();
        self.blockers.extend(damage);
        let listed = facts.listed();
        if !listed.is_empty() {
            self.blockers
                .extend(permissions::runs_portainer(listed, facts.portainer_port));
        }
        let is_concerned = match facts.environment {
            Environment::OtherEngine { .. }
            | Environment::Clone { .. }
            | Environment::OtherSocket(_) => !listed.is_empty(),
            _ => destroys,
        };
        let environment = permissions::environment(&facts.environment, facts.endpoint);
        self.blockers.extend(environment.filter(|_| is_concerned));
        self.blockers.extend(permissions::registered(facts));
        self.blockers.extend(facts.unlistable.clone());
        if destroys {
            self.refuse_a_failing_create(facts, text, stack, is_damaged);
        }
    }

    /// B06.
    fn refuse_a_failing_create(
        &mut self,
        facts: &Facts,
        text: &SentText,
        stack: Option<&SentStack>,
        is_damaged: bool,
    ) {
        if let Environment::Unknown(reason) = &facts.environment {
            self.warnings.push(format!(
                "cannot verify that environment {} is this host: {}",
                facts.endpoint, reason
            ));
        }
        self.warnings.extend(validation::unchecked(facts));
        self.blockers.extend(permissions::management(facts));
        let hidden = permissions::hidden(facts);
        let admin_only = stack.and_then(|stack| permissions::admin_only(facts, stack));
        if hidden.is_none() && admin_only.is_none() {
            self.blockers.extend(permissions::limited(facts));
        }
        self.blockers.extend(hidden);
        self.blockers.extend(admin_only);
        let rejection = facts.details.rejection.as_ref();
        self.blockers.extend(validation::refusals(
            facts, text, stack, is_damaged, rejection,
        ));
        let Some(stack) = stack else {
            self.warnings
                .extend(validation::doubt(facts, None, &self.blockers, &[]));
            return;
        };
        let compose = portainer_compose(facts);
        let refused = unsupported::unsupported(facts, stack, compose, |_| true);
        self.blockers.extend(refused);
        let steering = Steering::new(stack, compose, None);
        let rejected = steering.rejected().into_iter().map(|one| one.message);
        self.blockers
            .extend(validation::rejects(rejected.collect()));
        self.warnings.extend(steering.doubt());
        let keys = validation::doubts(facts, stack, None);
        let missing = missing::missing(facts, stack, &std::collections::BTreeSet::new());
        let mut refusals = missing.refusals;
        let said = [self.blockers.as_slice(), &refusals].concat();
        let doubt = validation::doubt(facts, Some(stack), &said, &keys);
        self.warnings.extend(keys);
        self.warnings.extend(doubt);
        self.images.extend(missing.pulls);
        self.warnings.extend(missing.absent);
        self.warnings.extend(missing.doubts);
        // The engine may use another network namespace.
        let used = conflicts::used_on_host(facts, stack, |_| true).into_iter();
        self.warnings
            .extend(used.map(|port| format!("the deployment may fail: {}", port.message)));
        self.warnings.extend(conditions::doubts(facts, stack));
        let what = "Compose cannot start paused containers";
        let paused = Finding::about(conflicts::paused(facts), what, "unpause them first");
        refusals.extend(paused.map(|one| one.of_kind(Kind::Paused)));
        let others: Vec<&Container> = facts.others.iter().flatten().collect();
        refusals.extend(conflicts::held_by((&others, facts.tool), stack, |_| true));
        for refusal in refusals {
            let is_on_engine = matches!(refusal.kind, Kind::OnEngine | Kind::Paused);
            if is_on_engine && facts.environment != Environment::SameEngine {
                let told = if refusal.details.is_empty() {
                    vec![refusal.message]
                } else {
                    refusal.details
                };
                let may_fail = |what| format!("the deployment may fail: {what}");
                self.warnings.extend(told.into_iter().map(may_fail));
            } else {
                self.blockers.push(refusal);
            }
        }
    }

    /// B01.
    fn lose(&mut self, facts: &Facts, stack: Option<&SentStack>) {
        let mut text = match facts.source.document {
            Ok(document) => losses(document, facts.source.env, facts.context, facts.project),
            Err(_) => Vec::new(),
        };
        let mut refusals = self.blockers.iter();
        if refusals.any(|refusal| refusal.kind == Kind::BadEnvFile) {
            text.retain(|loss| loss.kind != TextLossKind::UnreadableEnv);
        }
        if let Some(stack) = stack {
            let steering = Steering::new(stack, portainer_compose(facts), None);
            let not_started = steering.not_started().into_iter();
            let lost = not_started.chain(inline::lost_files(facts, stack));
            let lost = lost.chain(overridden::overridden(facts, stack));
            self.losses.extend(lost.map(|one| match &one.details[..] {
                [] => Finding::of_stack(&one.message),
                names => Finding::of_stack(&format!("{}: {}", one.message, names.join(", "))),
            }));
        }
        let (running, unknown) = containers::losses(facts, stack, &text, &[]);
        self.losses.extend(running);
        let (in_memory, unseen) = memory::losses(facts, &self.services);
        self.losses.extend(in_memory);
        self.warnings.extend(memory::unseen_memory(&unseen));
        self.unseen_memory = unseen;
        self.losses.extend(text_lost(&text));
        self.warnings.extend(unknown);
        if let Some(record) = &facts.record {
            let losses = record::losses(record, facts.sent).into_iter();
            // B23
            let users = facts.uses.lost_with_stack(facts.rights.see_every_stack());
            let is_known = users.is_some();
            let lost = losses.filter(|loss| !is_known || loss.kind != Kind::Access);
            let named = users.as_ref().and_then(record::use_lost);
            self.losses.extend(named.into_iter().chain(lost));
            if record.contents.is_none() && !facts.is_forbidden() {
                let id = &record.record.id;
                self.warnings.push(format!(
                    "cannot read Portainer stack {id}: how it differs from the files is unknown"
                ));
            }
        }
        let losses = std::mem::take(&mut self.losses).into_iter();
        (self.changes, self.losses) = losses.partition(|loss| loss.is_change(false));
        if !facts.listed().is_empty() && facts.details.containers.is_none() {
            self.warnings
                .push("cannot inspect the containers: what they would lose is unknown".to_owned());
        }
        if let (Err(error), false) = (facts.source.document, facts.details.containers.is_none()) {
            self.warnings.push(format!(
                "cannot parse the Compose file: what the stack will lose is unknown ({error})"
            ));
        }
    }
}

/// B02.
fn damage(facts: &Facts) -> Option<Finding> {
    let places = damages(facts.source.document.ok()?, facts.sent.text, facts.dir);
    let places = places.iter().map(ToString::to_string).collect();
    let what = "the literal rewrite damages the Compose file";
    let refusal = Finding::about(places, what, "change these lines");
    refusal.map(|one| one.of_kind(Kind::Damage))
}
