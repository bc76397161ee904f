//! What became worse in a plan since an earlier one that the user has seen.

use crate::{
    finding::Finding,
    plan::{Fate, Plan, ServicePlan},
};

impl Plan {
    /// What this plan does that the plan `shown` before did not list, one line each. Empty if the user has seen all of
    /// it. A fate that was shown as unknown covers every other one.
    pub fn worse_than(&self, shown: &Self) -> Vec<String> {
        let is_worse = |fate: &Fate, service: &str| {
            let mut before = shown
                .services
                .iter()
                .filter(|other| other.service == service);
            match before.next().map(|one| &one.fate) {
                Some(Fate::Unknown(_)) => false,
                Some(before) => fate != before && fate.rank() >= before.rank(),
                None => true,
            }
        };
        let mut worse = Vec::new();
        for ServicePlan { service, fate, .. } in &self.services {
            if !fate.is_unchanged() && is_worse(fate, service) {
                worse.push(format!("{service}: {fate}"));
            }
        }
        for (kind, now, before) in [
            ("problem", &self.blockers, &shown.blockers),
            ("loss", &self.losses, &shown.losses),
            ("change", &self.changes, &shown.changes),
        ] {
            let before: Vec<_> = before.iter().map(Finding::without_files).collect();
            let new = now
                .iter()
                .filter(|loss| !before.contains(&loss.without_files()));
            worse.extend(new.map(|finding| format!("{kind}: {}", finding.told(&self.services))));
        }
        worse
    }

    /// The same without the names of the files that containers have written.
    #[must_use]
    pub fn without_files(&self) -> Self {
        let without = |found: &[Finding]| found.iter().map(Finding::without_files).collect();
        Self {
            losses: without(&self.losses),
            changes: without(&self.changes),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ServicePlan;

    fn plan(fate: Option<Fate>) -> Plan {
        let service = |fate| ServicePlan {
            service: "a".to_owned(),
            containers: Vec::new(),
            fate,
            ..ServicePlan::default()
        };
        Plan {
            services: fate.into_iter().map(service).collect(),
            ..Plan::default()
        }
    }

    #[test]
    fn only_what_was_not_shown_is_worse() {
        let recreated = |why: &str| Fate::Recreated(why.to_owned());
        let unknown = || Fate::Unknown("y".to_owned());
        let (worse, may_be) = ("a: recreated: x", "a: may be recreated: y");
        for (before, now, expected) in [
            (Some(Fate::Unchanged), Fate::Unchanged, None),
            (Some(recreated("x")), recreated("x"), None),
            (Some(recreated("x")), Fate::Unchanged, None),
            (Some(recreated("x")), unknown(), None),
            (Some(unknown()), recreated("x"), None),
            (Some(Fate::Unchanged), unknown(), Some(may_be)),
            (Some(Fate::Unchanged), recreated("x"), Some(worse)),
            (Some(recreated("y")), recreated("x"), Some(worse)),
            (None, recreated("x"), Some(worse)),
            (None, Fate::Unchanged, None),
        ] {
            let found = plan(Some(now)).worse_than(&plan(before));
            assert_eq!(found, Vec::from_iter(expected));
        }
    }
}
