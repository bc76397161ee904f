//! The embedded manager and engine over one in-memory world.
