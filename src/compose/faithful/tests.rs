//! The rewrite on small texts.
