//! Finds the service whose config hash is the one of a container's label.
//!
//! Compose hashes the JSON of a service, which follows from what `config` prints ([`dialect`](crate::compose::dialect)). So one
//! run of Compose is enough: it resolves each value that a key may have had, and the hashes of their combinations are computed
//! here.
//!
//! Invariant: pure.
#![deny(clippy::disallowed_methods)]

use std::collections::BTreeMap;

use ring::digest::{Context, SHA256};
use serde_json::Value;

use super::draft::{Draft, Fields};
use crate::{
    compose::{
        Dialect, Project,
        dialect::{ORDER, go_json},
    },
    model::is_empty,
    text::counted,
};

/// How many steps a search in one scope may take: enough for the orders of nine items.
const MOST: usize = 3_000_000;
/// Only one order of a list with more items is tried.
const LONGEST: usize = 12;

/// What was chosen of a draft.
#[derive(Clone)]
pub(super) struct Picked {
    choices: Vec<usize>,
    /// The items of each list in their order, with the form of each.
    lists: BTreeMap<&'static str, Vec<(usize, usize)>>,
}

impl Draft {
    /// What is most likely.
    pub(super) fn likely(&self) -> Picked {
        let first = |items: &Vec<_>| (0..items.len()).map(|item| (item, 0)).collect();
        let lists = self.lists.iter().map(|(key, items)| (*key, first(items)));
        Picked {
            choices: vec![0; self.choices.len()],
            lists: lists.collect(),
        }
    }

    /// The service.
    pub(super) fn service(&self, picked: &Picked) -> Fields {
        let mut service = self.fields.clone();
        for (choice, &at) in self.choices.iter().zip(&picked.choices) {
            service.extend(choice[at].clone());
        }
        for (key, items) in &picked.lists {
            let list = items
                .iter()
                .map(|&(item, form)| self.lists[key][item][form].clone());
            let list: Vec<Value> = list.filter(|item| !item.is_null()).collect();
            service.insert((*key).to_owned(), list.into());
        }
        service.retain(|_, value| !is_empty(value));
        let first = ["image", "container_name"].into_iter();
        let last = ["scale", "build"];
        let rest = ORDER.split_whitespace().filter(|key| !last.contains(key));
        let keys = first.chain(rest).chain(last);
        keys.filter_map(|key| service.shift_remove_entry(key))
            .collect()
    }

    /// The services that Compose has to resolve for a search: the most likely one, and one for each value of a choice.
    pub(super) fn variants(&self, name: &str) -> Vec<(String, Fields)> {
        let mut variants = vec![(name.to_owned(), self.service(&self.likely()))];
        let mut add = |fields: &Fields, at: [usize; 2]| {
            let mut service = fields.clone();
            service.retain(|_, value| !value.is_null());
            if !service.contains_key("build") {
                service.entry("image").or_insert("x".into());
            }
            variants.push((variant(name, at), service));
        };
        for (choice, values) in self.choices.iter().enumerate() {
            for (at, value) in values.iter().enumerate() {
                add(value, [choice, at]);
            }
        }
        for (list, (key, items)) in self.lists.iter().enumerate() {
            for form in 0..forms(items) {
                let items = items
                    .iter()
                    .map(|item| item[form.min(item.len() - 1)].clone());
                let items: Value = items.filter(|item| !item.is_null()).collect();
                let fields = Fields::from_iter([((*key).to_owned(), items)]);
                add(&fields, [self.choices.len() + list, form]);
            }
        }
        variants
    }

    /// Searches in what Compose resolved. The error says why not every combination was tried, unless all were.
    pub(super) fn search(
        &self,
        name: &str,
        resolved: &Project,
        wanted: &str,
    ) -> Result<Picked, Option<String>> {
        let starts = (0..wanted.len()).step_by(2);
        let bytes = starts.map(|at| u8::from_str_radix(wanted.get(at..at + 2)?, 16).ok());
        let wanted = bytes.collect::<Option<Vec<u8>>>().ok_or(None::<String>)?;
        let mut is_cut = false;
        for scope in [Scope::Likely, Scope::Alike, Scope::All] {
            let mut tried: Vec<Vec<Part>> = Vec::new();
            for dialect in Dialect::all() {
                let parts = self.parts(name, resolved, dialect).ok_or(None::<String>)?;
                if tried.contains(&parts) {
                    continue;
                }
                let mut search = Search {
                    parts: &parts,
                    wanted: &wanted,
                    scope,
                    left: MOST,
                    picked: self.likely(),
                };
                if search.fields(0, &Context::new(&SHA256), true) {
                    return Ok(search.picked);
                }
                is_cut |= search.left == 0;
                tried.push(parts);
            }
        }
        let longest = self.lists.iter().max_by_key(|(_, items)| items.len());
        let longest = longest.filter(|(_, items)| is_cut || items.len() > LONGEST);
        Err(longest.map(|(key, items)| {
            let items = counted(items.len(), key.trim_end_matches('s'));
            format!("a container does not show the order of its {items}")
        }))
    }

    /// The parts of the JSON of the service, as a dialect hashes it. `None` if Compose did not resolve it.
    fn parts(&self, name: &str, resolved: &Project, dialect: Dialect) -> Option<Vec<Part>> {
        let hashed = |name: &str| dialect.hashed(resolved.fields(name)?).into_iter().next();
        let whole = hashed(name)?;
        let names = self.variants(name).into_iter().map(|(name, _)| name);
        let variants = names.filter_map(|name| Some((name.clone(), hashed(&name)?)));
        let variants: BTreeMap<String, Fields> = variants.collect();
        let of = |at: [usize; 2], key: &str| variants.get(&variant(name, at))?.get(key);
        let part = |key: &'static str| -> Option<Part> {
            let field = |value: &Value| format!("\"{key}\":{}", go_json(value));
            if let Some(list) = self.lists.keys().position(|list| *list == key) {
                let items = &self.lists[key];
                let mut resolved: Vec<Vec<Option<String>>> = vec![Vec::new(); items.len()];
                for form in 0..forms(items) {
                    let list = of([self.choices.len() + list, form], key).and_then(Value::as_array);
                    let mut left = list.into_iter().flatten().peekable();
                    for (item, resolved) in items.iter().zip(&mut resolved) {
                        let is_there = !item[form.min(item.len() - 1)].is_null();
                        resolved.push(left.next_if(|_| is_there).map(go_json));
                    }
                }
                for (item, resolved) in items.iter().zip(&mut resolved) {
                    resolved.truncate(item.len());
                }
                return Some(Part::List(key, resolved));
            }
            let has_key = |choice: &Vec<Fields>| choice.iter().any(|value| value.contains_key(key));
            let Some(choice) = self.choices.iter().position(has_key) else {
                return Some(Part::Field(field(whole.get(key)?)));
            };
            // Compose writes some keys without a value.
            let none = whole.get(key).filter(|value| value.is_null());
            let values = self.choices[choice].iter().enumerate().map(|(at, value)| {
                match value.get(key).filter(|value| !value.is_null()) {
                    Some(_) => of([choice, at], key).map(field),
                    None => none.map(field),
                }
            });
            Some(Part::Choice(choice, values.collect()))
        };
        Some(ORDER.split_whitespace().filter_map(part).collect())
    }
}

/// The most forms that an item has.
fn forms<T>(items: &[Vec<T>]) -> usize {
    items.iter().map(Vec::len).max().unwrap_or_default()
}

/// The name of the service with one value of a choice or of a list.
fn variant(name: &str, [choice, at]: [usize; 2]) -> String {
    format!("{name}.stacklift.{choice}.{at}")
}

/// A part of the JSON of a service.
#[derive(PartialEq)]
enum Part {
    Field(String),
    /// A key that belongs to this choice, with each of its values.
    Choice(usize, Vec<Option<String>>),
    /// A list: its key, and each form of each item.
    List(&'static str, Vec<Vec<Option<String>>>),
}

/// What is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The first value of each choice.
    Likely,
    /// Every value, with the items of a list in one form.
    Alike,
    All,
}

struct Search<'a> {
    parts: &'a [Part],
    wanted: &'a [u8],
    scope: Scope,
    left: usize,
    picked: Picked,
}

impl Search<'_> {
    /// Whether the wanted hash was found with the parts from `at` on, after what was hashed.
    fn fields(&mut self, at: usize, hashed: &Context, is_first: bool) -> bool {
        let before = if is_first { "{" } else { "," };
        let Some(part) = self.parts.get(at) else {
            return with(hashed, &["}"]).finish().as_ref() == self.wanted;
        };
        match part {
            Part::Field(text) => self.fields(at + 1, &with(hashed, &[before, text]), false),
            Part::Choice(choice, values) => {
                let mut earlier = self.parts[..at].iter();
                let is_it = |part: &Part| matches!(part, Part::Choice(other, _) if other == choice);
                let picked = self.picked.choices[*choice];
                let mut values_tried = match self.scope {
                    _ if earlier.any(is_it) => picked..picked + 1,
                    Scope::Likely => 0..1,
                    Scope::Alike | Scope::All => 0..values.len(),
                };
                values_tried.any(|value| {
                    self.picked.choices[*choice] = value;
                    match &values[value] {
                        Some(text) => self.fields(at + 1, &with(hashed, &[before, text]), false),
                        None => self.fields(at + 1, hashed, is_first),
                    }
                })
            }
            Part::List(key, items) => {
                let start = with(hashed, &[before, "\"", key, "\":["]);
                let all: Vec<Option<usize>> = match self.scope {
                    Scope::All => vec![None],
                    Scope::Likely | Scope::Alike => (0..forms(items)).map(Some).collect(),
                };
                let mut forms = all.into_iter();
                forms
                    .any(|form| self.items(at, (key, items, form), &mut Vec::new(), &start, hashed))
            }
        }
    }

    /// The same, with the items of a list in each order after `order`, all in one form if there is one. `before` is what
    /// was hashed before the list.
    fn items(
        &mut self,
        at: usize,
        list: (&'static str, &[Vec<Option<String>>], Option<usize>),
        order: &mut Vec<(usize, usize)>,
        hashed: &Context,
        before: &Context,
    ) -> bool {
        let (key, items, alike) = list;
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let mut chosen = order.iter();
        let is_empty = chosen.all(|&(item, form)| items[item][form].is_none());
        if order.len() == items.len() {
            self.picked.lists.insert(key, order.clone());
            let whole = with(hashed, &["]"]);
            return self.fields(at + 1, if is_empty { before } else { &whole }, false);
        }
        let tried = match items.len() {
            ..=LONGEST => 0..items.len(),
            _ => order.len()..order.len() + 1,
        };
        for item in tried {
            if order.iter().any(|(other, _)| *other == item) {
                continue;
            }
            let most = items[item].len() - 1;
            let forms = alike.map_or(0..=most, |form| form.min(most)..=form.min(most));
            for form in forms {
                let comma = if is_empty { "" } else { "," };
                let next = match &items[item][form] {
                    Some(text) => with(hashed, &[comma, text]),
                    None => hashed.clone(),
                };
                order.push((item, form));
                if self.items(at, list, order, &next, before) {
                    return true;
                }
                order.pop();
            }
        }
        false
    }
}

fn with(hashed: &Context, texts: &[&str]) -> Context {
    let mut hashed = hashed.clone();
    for text in texts {
        hashed.update(text.as_bytes());
    }
    hashed
}
