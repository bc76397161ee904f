//! Maps and sets of nodes: their keys are small numbers, which need no more than a fast hash.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::NodeId;

/// A map by node.
pub type NodeMap<V> = HashMap<NodeId, V, FixedState>;
/// A set of nodes.
pub type NodeSet = HashSet<NodeId, FixedState>;
