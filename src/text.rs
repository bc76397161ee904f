//! Text for people: escaping for terminals, masking of secrets and credentials, counted nouns and lists.
#![deny(clippy::disallowed_methods)]

mod count;
mod credentials;
mod digest;
mod escape;
mod mask;
mod near;
mod shell;

pub use count::{
    any_of, bulleted, counted, down, down_for, first_of, listed, numbered, of_many, plural, said,
};
pub use credentials::{replace_credentials, without_credentials};
pub use digest::sha256;
pub use escape::{
    excerpt, last_words, needs_escaping, percent_encoded, printable, without_error_numbers,
};
pub use mask::{HIDDEN, Mask};
pub use near::near;
pub use shell::{command, operands, shell_word};
