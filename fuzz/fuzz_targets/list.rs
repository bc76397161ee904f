//! The list decoder, cut anywhere, against serde_json over the whole text.
//!
//! The first byte says how the text is cut, the rest is the text.
#![no_main]

use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use stacklift::manager::fuzzing;

const NAMES: [&str; 2] = ["web", "ü"];

fuzz_target!(|data: &[u8]| {
    let Some((&cut, text)) = data.split_first() else {
        return;
    };
    let (whole, of_whole) = read(text, usize::MAX);
    let (cut, of_cut) = read(text, 1 + usize::from(cut) % 70);
    assert_eq!((whole, &of_whole), (cut, &of_cut), "the cut matters");

    let is_list = serde_json::from_slice::<Option<Vec<IgnoredAny>>>(text).is_ok();
    assert_eq!(whole, is_list, "taken for a list, or not");
    if let Ok(entries) = serde_json::from_slice::<Option<Vec<&RawValue>>>(text) {
        let expected: Vec<&[u8]> = entries
            .iter()
            .flatten()
            .map(|entry| entry.get().as_bytes())
            .filter(|json| is_wanted(json))
            .collect();
        assert_eq!(of_whole, expected);
    }
    let _ = fuzzing::answers(text, &NAMES);
});

fn read(text: &[u8], step: usize) -> (bool, Vec<Vec<u8>>) {
    let mut found = Vec::new();
    let ended = fuzzing::entries(Cut(text, step), &NAMES, |json| found.push(json.to_vec()));
    if ended.is_err() {
        // What was found before an error is of no use to anybody.
        found.clear();
    }
    (ended.is_ok(), found)
}

fn is_wanted(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "Name")]
        name: String,
    }
    serde_json::from_slice(json).is_ok_and(|head: Head| NAMES.contains(&head.name.as_str()))
}

/// Gives at most so many bytes at a time.
struct Cut<'a>(&'a [u8], usize);

impl Read for Cut<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(to.len()).min(self.0.len());
        to[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}
