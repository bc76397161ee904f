//! What a loss is about, apart from what is lost.

use crate::{
    plan::{Foreign, Loss},
    rewrite::loss::{Owner, TextLoss},
    text::printable,
};

impl Loss {
    /// What loses something: `service web`, a container by its name, `Portainer stack`; `None` for the whole stack.
    pub fn subject(&self) -> Option<String> {
        match self {
            Self::Text(TextLoss { owner, .. }) | Self::Variables { owner, .. } => {
                Some(owner.to_string())
            }
            Self::Container { container, .. } | Self::Foreign(Foreign { container, .. }) => {
                Some(container.clone())
            }
            Self::Replicas { service, .. } => Some(format!("service {service}")),
            Self::Carried(_)
            | Self::RecordVariables(_)
            | Self::RecordValues(_)
            | Self::RecordMembers { .. }
            | Self::RecordText(_)
            | Self::RecordDiffers
            | Self::RecordStarts => Some("Portainer stack".to_owned()),
            Self::Killed(_) | Self::Adopted { .. } | Self::OtherProject { .. } => None,
        }
    }

    /// The service that the text names as the subject.
    pub fn service(&self) -> Option<&str> {
        match self {
            Self::Text(TextLoss { owner, .. }) | Self::Variables { owner, .. } => match owner {
                Owner::Service(name) => Some(name),
                _ => None,
            },
            Self::Replicas { service, .. } => Some(service),
            _ => None,
        }
    }

    /// What is lost, without the subject.
    pub fn message(&self) -> String {
        let text = self.to_string();
        let subject = self.subject().unwrap_or_default();
        let start = format!("{}: ", printable(&subject));
        match text.strip_prefix(&start) {
            Some(message) => message.to_owned(),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{ContainerLoss, Loss, ReplacedBy};

    #[test]
    fn the_subject_is_apart_from_the_message() {
        let loss = Loss::Container {
            container: "web-a-1".to_owned(),
            replaced_by: ReplacedBy::Run,
            loss: ContainerLoss::Network("back".to_owned()),
        };
        assert_eq!(loss.subject().as_deref(), Some("web-a-1"));
        assert_eq!(loss.message(), "no longer connected to network back");
        let loss = Loss::Killed(2);
        assert_eq!(loss.subject(), None);
        assert_eq!(loss.message(), loss.to_string());
    }
}
