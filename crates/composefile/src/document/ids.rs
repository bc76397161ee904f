//! Maps and sets of nodes. Their keys are small numbers, so a fast hash is enough.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::NodeId;

/// A map by node.
pub type NodeMap<V> = HashMap<NodeId, V, FixedState>;
/// A set of nodes.
pub type NodeSet = HashSet<NodeId, FixedState>;
