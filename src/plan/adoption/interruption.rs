//! What an adoption interrupts, in one line for the question (B08).

use crate::{
    plan::{Adoption, Fate, ServicePlan},
    text::{counted, listed},
};

impl Adoption {
    /// What is interrupted or lost, without a full stop. `None` if every container keeps running and nothing is lost.
    pub fn interruption(&self) -> Option<String> {
        let is_replaced = |fate: &Fate| matches!(fate, Fate::Recreated(_) | Fate::Restarted(_));
        let is_unknown = |fate: &Fate| matches!(fate, Fate::Unknown(_));
        let mut parts = self.downtime(is_replaced, ["is", "are"]);
        parts.extend(self.downtime(is_unknown, ["may be", "may be"]));
        parts.extend(told_losses(self.losses.len()));
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The services with such a fate: those that run and go down, then those that do not run and are only recreated.
    fn downtime(&self, fate: impl Fn(&Fate) -> bool, [one, many]: [&str; 2]) -> Vec<String> {
        let services = self.services.iter().filter(|service| fate(&service.fate));
        let (running, others): (Vec<&ServicePlan>, Vec<_>) =
            services.partition(|service| service.stop_grace.is_some());
        let subject = |services: &[&ServicePlan]| {
            let names: Vec<&str> = services.iter().map(|one| one.service.as_str()).collect();
            let verb = if names.len() == 1 { one } else { many };
            (!names.is_empty()).then(|| format!("{} {verb}", listed(&names)))
        };
        let seconds = running.iter().filter_map(|one| one.stop_grace).max();
        let down = subject(&running).zip(seconds).map(|(subject, seconds)| {
            let start = if running.len() == 1 { "its" } else { "their" };
            format!("{subject} down for up to {seconds} s, plus {start} start")
        });
        let recreated = subject(&others).map(|subject| format!("{subject} recreated"));
        down.into_iter().chain(recreated).collect()
    }
}

/// Refers to the list of losses that is shown before the question.
pub fn told_losses(count: usize) -> Option<String> {
    let verb = if count == 1 { "is" } else { "are" };
    (count > 0).then(|| format!("{} {verb} listed above", counted(count, "loss")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b08_the_question_names_the_services_that_go_down() {
        let service = |name: &str, fate: fn(String) -> Fate, stop_grace| ServicePlan {
            service: name.to_owned(),
            containers: Vec::new(),
            fate: fate("x".to_owned()),
            stop_grace,
        };
        let recreated = |name, grace| service(name, Fate::Recreated, grace);
        let unknown = |name, grace| service(name, Fate::Unknown, grace);
        for (services, expected) in [
            (vec![], None),
            (vec![service("a", Fate::Started, None)], None),
            (
                vec![recreated("a", Some(10))],
                Some("a is down for up to 10 s, plus its start"),
            ),
            (
                vec![
                    recreated("a", Some(10)),
                    service("b", Fate::Restarted, Some(30)),
                ],
                Some("a and b are down for up to 30 s, plus their start"),
            ),
            (
                vec![unknown("a", Some(5)), recreated("b", None)],
                Some("b is recreated; a may be down for up to 5 s, plus its start"),
            ),
        ] {
            let plan = Adoption {
                services,
                ..Adoption::default()
            };
            assert_eq!(plan.interruption().as_deref(), expected);
        }
    }
}
