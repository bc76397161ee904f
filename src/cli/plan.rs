//! `stacklift plan <STACK>`: what each way would do. Reads only.

use std::sync::Arc;

use super::{Common, Console, Ended, arguments::PlanArguments, opened::Opened};
use crate::adopt::Prepared;

pub(super) fn run(
    arguments: &PlanArguments,
    common: &Common,
    console: &Arc<Console>,
) -> Result<(), Ended> {
    let opened = Opened::new(&arguments.stack, common, console)?;
    let prepared = Prepared::new(&opened.situation(), (&arguments.keep).into())?;
    console.line(&format!("adopt   {:?}", prepared.plan.request));
    for service in &prepared.plan.services {
        console.line(&format!("  {}: {}", service.service, service.fate));
    }
    for blocker in &prepared.plan.blockers {
        console.line(&format!("  blocked: {blocker}"));
    }
    for loss in &prepared.plan.losses {
        console.line(&format!("  loss: {loss}"));
    }
    Ok(())
}
