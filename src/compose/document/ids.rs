//! Maps and sets of nodes.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

use super::NodeId;

/// A map by node.
pub type NodeMap<V> = HashMap<NodeId, V, BuildHasherDefault<NodeHasher>>;
/// A set of nodes.
pub type NodeSet = HashSet<NodeId, BuildHasherDefault<NodeHasher>>;

/// Hashes the place of a node: a small number in dense rows, which needs no more than to be spread.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeHasher(u64);

impl Hasher for NodeHasher {
    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(26);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
