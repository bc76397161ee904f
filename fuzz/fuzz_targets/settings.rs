//! The settings file: understood and checked, or an error; never a panic, and the same every time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stacklift::{cli::fuzzing, failure::Failure};

fuzz_target!(|text: &str| {
    match fuzzing::settings(text) {
        Ok(settings) => {
            let again = fuzzing::settings(text).expect("understood once");
            assert_eq!(format!("{settings:?}"), format!("{again:?}"));
        }
        Err(error) => {
            assert!(!format!("{error:#}").is_empty());
            let _ = (Failure::hint_of(&error), Failure::details_of(&error));
        }
    }
});
