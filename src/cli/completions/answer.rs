//! How the last word of a command line can be completed.

use clap::{Arg, ArgAction, Command, ValueHint};

use super::{
    super::arguments,
    values::{self, Candidate, Given},
};

/// How the last word can be completed.
pub(super) struct Answer {
    /// The last word.
    pub(super) word: String,
    /// In the order to show them. They need not start with the word: most shells filter them.
    pub(super) candidates: Vec<Candidate>,
    /// The paths that are candidates, too.
    pub(super) paths: Paths,
}

/// Which paths can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paths {
    None,
    Files,
    Directories,
}

impl Answer {
    /// The answer for the words after the program's name. `None` if there is none.
    pub(super) fn to(words: &[String]) -> Option<Self> {
        let (word, before) = words.split_last()?;
        let mut root = arguments::command();
        root.build();
        let mut line = Line::new(&root);
        for word in before {
            line.read(word);
        }
        let mut answer = Self {
            word: word.clone(),
            candidates: Vec::new(),
            paths: Paths::None,
        };
        line.complete(&mut answer);
        Some(answer)
    }

    /// The candidates that start with the word.
    pub(super) fn matching(&self) -> Vec<&Candidate> {
        let candidates = self.candidates.iter();
        candidates
            .filter(|one| one.value.starts_with(&self.word))
            .collect()
    }

    /// Adds the values of an argument, each after `prefix`.
    fn add_values(&mut self, prefix: &str, arg: &Arg, line: &Line) {
        let values = values::of(arg, line.command.get_name(), &line.given);
        self.candidates
            .extend(values.into_iter().map(|one| Candidate {
                value: format!("{prefix}{}", one.value),
                ..one
            }));
        self.paths = match arg.get_value_hint() {
            ValueHint::DirPath => Paths::Directories,
            ValueHint::AnyPath | ValueHint::FilePath => Paths::Files,
            _ => Paths::None,
        };
    }
}

/// A command line, as far as it has been read.
struct Line<'a> {
    command: &'a Command,
    given: Given,
    /// How many positional arguments were given to the command.
    positionals: usize,
    /// The flag whose value comes next.
    pending: Option<&'a Arg>,
    /// Whether `--` was read.
    only_positionals: bool,
}

impl<'a> Line<'a> {
    fn new(command: &'a Command) -> Self {
        Self {
            command,
            given: Given::new(),
            positionals: 0,
            pending: None,
            only_positionals: false,
        }
    }

    fn read(&mut self, word: &str) {
        if let Some(flag) = self.pending.take() {
            self.give(flag, word);
        } else if self.only_positionals || !word.starts_with('-') || word == "-" {
            let command = match self.positionals {
                0 if !self.only_positionals => self.command.find_subcommand(word),
                _ => None,
            };
            if let Some(command) = command {
                self.command = command;
            } else {
                if let Some(positional) = self.positional() {
                    self.give(positional, word);
                }
                self.positionals += 1;
            }
        } else if word == "--" {
            self.only_positionals = true;
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let mut flags = self.command.get_arguments();
            if let Some(flag) = flags.find(|flag| flag.get_long() == Some(name)) {
                match value {
                    None if takes_value(flag) => self.pending = Some(flag),
                    _ => self.give(flag, value.unwrap_or_default()),
                }
            }
        } else {
            self.read_short(&word[1..]);
        }
    }

    /// Reads short flags. None of them takes a value.
    fn read_short(&mut self, letters: &str) {
        for letter in letters.chars() {
            let mut flags = self.command.get_arguments();
            if let Some(flag) = flags.find(|flag| flag.get_short() == Some(letter)) {
                self.give(flag, "");
            }
        }
    }

    fn give(&mut self, arg: &Arg, value: &str) {
        self.given
            .insert(arg.get_id().to_string(), value.to_owned());
    }

    /// The argument of the next positional word.
    fn positional(&self) -> Option<&'a Arg> {
        self.command.get_positionals().nth(self.positionals)
    }

    fn complete(&self, answer: &mut Answer) {
        let word = answer.word.clone();
        let is_flag = word.starts_with('-') && !self.only_positionals;
        if let Some(flag) = self.pending {
            answer.add_values("", flag, self);
        } else if let Some((name, _)) = word.split_once('=').filter(|_| is_flag) {
            let mut flags = self.command.get_arguments();
            let flag = flags.find(|flag| flag.get_long() == name.strip_prefix("--"));
            if let Some(flag) = flag.filter(|flag| takes_value(flag)) {
                answer.add_values(&format!("{name}="), flag, self);
            }
        } else if is_flag {
            self.complete_flags(answer);
        } else {
            if self.positionals == 0 && !self.only_positionals {
                let commands = self.command.get_subcommands();
                let mut shown: Vec<_> = commands.filter(|command| !command.is_hide_set()).collect();
                shown.sort_by_key(|command| command.get_display_order());
                answer.candidates.extend(
                    shown
                        .into_iter()
                        .map(|command| Candidate::new(command.get_name(), command.get_about())),
                );
            }
            if let Some(positional) = self.positional() {
                answer.add_values("", positional, self);
            }
            let is_open = answer.candidates.is_empty() && answer.paths == Paths::None;
            if is_open && word.is_empty() && !self.only_positionals {
                self.complete_flags(answer);
            }
        }
    }

    /// Adds the flags that are not given yet.
    fn complete_flags(&self, answer: &mut Answer) {
        for flag in self.command.get_arguments() {
            let is_given = self.given.contains_key(flag.get_id().as_str());
            let repeats = matches!(flag.get_action(), ArgAction::Append);
            if let Some(long) = flag.get_long()
                && !flag.is_hide_set()
                && (repeats || !is_given)
            {
                let candidate = Candidate::new(format!("--{long}"), flag.get_help());
                answer.candidates.push(candidate);
            }
        }
    }
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values()
}
