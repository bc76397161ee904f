//! Reads Compose files as `docker compose` reads them, and tells where in the text everything is.
//!
//! - [`document`] parses YAML into a tree of nodes, each with its byte span.
//! - [`schema`] is a table of every key, the types it accepts, and what it holds.
//! - [`services`] are typed views: services, mounts, env files, build contexts.
//! - [`dotenv`] parses `.env` files and [`interpolate`] replaces variables.
//! - [`path`] resolves paths and [`places`] finds them.
//! - [`reader`] puts these together: what a file means in its directory.
//!
//! ```
//! use composefile::{document::Document, dotenv, interpolate::interpolate, services::services};
//!
//! let document = Document::parse("services:\n  web:\n    image: nginx:${TAG:-latest}\n")?;
//! let env = dotenv::parse("TAG=1.27\n", &|_| None)?;
//! let lookup = |name: &str| {
//!     let found = env.iter().find(|(known, _)| known == name);
//!     found.map(|(_, value)| value.clone())
//! };
//!
//! let web = services(&document)[0];
//! let image = web.node.get("image").expect("an image");
//! assert_eq!(interpolate(image.as_str().unwrap_or_default(), &lookup)?, "nginx:1.27");
//! assert_eq!(&document.text()[image.span()], "nginx:${TAG:-latest}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate is pure: nothing in it touches the file system, the environment, processes, the network or the clock.
//! The caller supplies the texts of files and the variables of the shell.
// Also runs the example of the README.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![deny(clippy::disallowed_methods)]

pub mod document;
pub mod dotenv;
pub mod duration;
pub mod interpolate;
pub mod path;
pub mod places;
pub mod reader;
pub mod schema;
pub mod services;
