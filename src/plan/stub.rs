use super::*;
use crate::rewrite::{
    damage::{Verdict, judge_document},
    loss::losses,
};
use std::collections::BTreeSet;
pub fn migration(f: &Facts) -> Plan {
    let mut warnings = Vec::new();
    let mut refusals = Vec::new();
    let mut all = Vec::new();
    let destroys = f.record.is_some() || f.listed.is_none_or(|l| !l.is_empty());
    match f.source.document {
        Err(error) => warnings.push(format!(
            "cannot parse the compose file: what the stack will lose is unknown ({error})"
        )),
        Ok(d) => {
            if let Verdict::Damaged(places) = judge_document(d, f.sent.text, f.dir) {
                refusals.push(Refusal::Damage(
                    places.iter().map(ToString::to_string).collect(),
                ));
            }
            all.extend(text_lost(losses(d, f.source.env, f.context, f.project)));
        }
    }
    if let Some(l) = f.listed {
        refusals.extend(runs_portainer(l, f.portainer_port));
        all.extend(volumes_lost(l));
    }
    if destroys {
        match &f.environment {
            Environment::OtherEngine => refusals.push(Refusal::OtherEngine {
                endpoint: f.endpoint,
            }),
            Environment::Unknown(why) => warnings.push(format!(
                "could not check that environment {} is this host: {why}",
                f.endpoint
            )),
            _ => {}
        }
    }
    if let Some(r) = &f.record {
        let names: BTreeSet<&str> = f.sent.env.iter().map(|v| v.name.as_str()).collect();
        all.extend(record_lost(r.record, &names));
    }
    Plan {
        losses: all,
        refusals,
        warnings,
        destroys,
    }
}
