//! What became worse in a plan since an earlier one that the user has seen.

use crate::plan::{Adoption, Fate};

impl Adoption {
    /// What this plan does that the plan `shown` before did not list, one line each. Empty if the user has seen all of
    /// it. A fate that was shown as unknown covers every other one.
    pub fn worse_than(&self, shown: &Self) -> Vec<String> {
        let shown_fate = |service: &str| {
            let mut services = shown.services.iter();
            services
                .find(|one| one.service == service)
                .map(|one| &one.fate)
        };
        let is_worse = |fate: &Fate, before: Option<&Fate>| match before {
            Some(Fate::Unknown(_)) => false,
            Some(before) => fate != before && fate.rank() >= before.rank(),
            None => true,
        };
        let services = self
            .services
            .iter()
            .filter(|one| !one.fate.is_unchanged() && is_worse(&one.fate, shown_fate(&one.service)))
            .map(|one| format!("{}: {}", one.service, one.fate));
        let losses = self.losses.iter();
        let losses = losses
            .filter(|loss| !shown.losses.contains(loss))
            .map(|loss| format!("loss: {loss}"));
        services.chain(losses).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Loss, Request, ServicePlan};

    fn plan(fates: &[(&str, Fate)], losses: &[Loss]) -> Adoption {
        Adoption {
            request: Request::Create,
            services: fates
                .iter()
                .map(|(service, fate)| ServicePlan {
                    service: (*service).to_owned(),
                    containers: Vec::new(),
                    fate: fate.clone(),
                    stop_grace: None,
                })
                .collect(),
            losses: losses.to_vec(),
            blockers: Vec::new(),
            warnings: Vec::new(),
            awaited: Vec::new(),
            pulls: Vec::new(),
        }
    }

    #[test]
    fn only_what_was_not_shown_is_worse() {
        let recreated = |why: &str| Fate::Recreated(why.to_owned());
        let unknown = || Fate::Unknown("no Compose program".to_owned());
        for (before, now, expected) in [
            (Fate::Unchanged, Fate::Unchanged, vec![]),
            (recreated("x"), recreated("x"), vec![]),
            (recreated("x"), Fate::Unchanged, vec![]),
            (recreated("x"), unknown(), vec![]),
            (unknown(), recreated("x"), vec![]),
            (
                Fate::Unchanged,
                unknown(),
                vec!["a: unknown: no Compose program"],
            ),
            (Fate::Unchanged, recreated("x"), vec!["a: recreated: x"]),
            (recreated("x"), recreated("y"), vec!["a: recreated: y"]),
        ] {
            let worse = plan(&[("a", now)], &[]).worse_than(&plan(&[("a", before)], &[]));
            assert_eq!(worse, expected);
        }
        let shown = plan(&[], &[]);
        assert_eq!(
            plan(&[("a", recreated("x"))], &[]).worse_than(&shown),
            ["a: recreated: x"]
        );
        assert_eq!(
            plan(&[("a", Fate::Unchanged)], &[]).worse_than(&shown),
            [""; 0]
        );
    }
}
