//! What an adoption loses.

use crate::{
    compose::Project,
    finding::{Finding, Kind},
    plan::{
        Facts, Fate, InPortainer, Plan, Request, edited, fate_of,
        losses::{containers, memory, record},
    },
};

impl Plan {
    /// The losses of containers that are replaced or may be. Others lose nothing.
    pub(in crate::plan) fn lose_by_adoption(&mut self, facts: &Facts, project: &Project) {
        // M05, N04
        let compose = facts.portainer;
        let carries_volumes = compose.is_some_and(|compose| !compose.is_library);
        let planned = |loss: &Finding| fate_of(&self.services, loss.subject.as_deref()?);
        let stays = |loss: &Finding| planned(loss).is_some_and(Fate::keeps_containers);
        let is_removed = |loss: &Finding| matches!(planned(loss), Some(Fate::Removed(_)));
        let (losses, unknown) = containers::losses(facts, Some(project), &self.services);
        let is_lost = |loss: &Finding| match &loss.kind {
            Kind::Starts => true,
            // Its own rights are removed.
            Kind::Use(_) if facts.remote.uses.wanted.is_some() => true,
            Kind::UseUntilRecreated => facts.record.is_none() || !stays(loss),
            _ if stays(loss) => false,
            Kind::Orphan => false,
            Kind::AnonymousVolume { is_deleted, .. } => {
                *is_deleted || !carries_volumes || is_removed(loss)
            }
            _ => true,
        };
        let losses = losses.into_iter().map(|mut loss| {
            if let Kind::AnonymousVolume { volume, .. } = &loss.kind
                && is_removed(&loss)
            {
                let what = format!("no container uses its anonymous volume any more: {volume}");
                loss.message = what;
                loss
            } else if facts.remote.uses.wanted.is_some()
                || matches!(planned(&loss), Some(Fate::Recreated(_) | Fate::Removed(_)))
            {
                loss
            } else {
                containers::use_until_recreated(loss)
            }
        });
        let mut lost: Vec<Finding> = losses.filter(is_lost).collect();
        lost.append(&mut self.changes);
        self.warn_all(unknown);
        let (in_memory, unseen) = memory::losses(facts, &self.services);
        lost.extend(in_memory);
        self.warnings.extend(memory::unseen_memory(&unseen));
        if !self.sends_nothing() {
            let by_failure = memory::lost_by_failure(facts, &self.services);
            self.warn_all(by_failure);
        }
        lost.extend(facts.remote.uses.lost().as_ref().and_then(record::use_lost));
        lost.extend(record::volumes_left(facts));
        if let (Some(record), Some(Request::Update(_))) = (&facts.record, &self.request) {
            let losses = record::standing(record.record).into_iter();
            lost.extend(losses.filter(|loss| loss.kind != Kind::Access));
            let parts = edited::parts(record, facts.sent);
            lost.extend(record::edit_lost(self.in_portainer, &parts));
            if self.in_portainer == InPortainer::Edited {
                self.edited = parts;
            }
        }
        (self.changes, self.losses) = lost.into_iter().partition(|loss| loss.is_change(true));
    }

    /// What changes, unless a row or the loss of an edit in Portainer says it.
    pub fn untold_changes(&self) -> Vec<Finding> {
        let is_edited = self.in_portainer == InPortainer::Edited;
        let changes = self.changes.iter().filter(|change| {
            let is_told_by_edit = is_edited && change.kind == Kind::Variables;
            !is_told_by_edit && !change.is_told(&self.services)
        });
        changes.cloned().collect()
    }
}
