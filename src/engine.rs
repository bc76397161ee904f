//! The container engine of this host, in the domain's verbs.
