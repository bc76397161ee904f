use super::{Common, Console, Ended, RehearseArguments};
use std::sync::Arc;
#[derive(Debug, Clone)]
pub(super) struct EraArgument;
impl std::str::FromStr for EraArgument { type Err = String; fn from_str(_: &str) -> Result<Self, String> { Ok(Self) } }
pub(super) fn run(_: &RehearseArguments, _: &Common, _: &Arc<Console>) -> Result<(), Ended> { Ok(()) }
