//! Writes the labels of label files into `labels`: Portainer cannot read the files (M11).
#![deny(clippy::disallowed_methods)]

use std::collections::HashMap;

use composefile::{reader::Reader, services::Service};

use crate::rewrite::faithful::{
    Blocker,
    additions::{Addition, AllDropped, Dropped, LABELS},
    findings::Findings,
    inline::inline,
    reading::{self, Reading, Sources},
    service_files::{FileList, ServiceFiles, file_list},
    sharing::overridden,
};

type Readings<'l> = HashMap<FileList<'l>, Reading>;

/// Handles `label_file` of every service.
pub(super) fn label_files<'d>(reader: &Reader<'d, '_>) -> Findings<'d> {
    let files = ServiceFiles::new(reader, &LABELS);
    let mut found = Findings::default();
    let mut dropped = AllDropped::new();
    for &service in &reader.services {
        for listed in files.of(service) {
            if reader.env_file_text(&listed.file).is_none() {
                found.blockers.push(listed.missing(service));
            }
        }
        if let Some(entry) = files.key(service) {
            for entry in overridden(service, entry).chain([entry]) {
                let overrides = false;
                dropped.insert(entry.key.id(), Dropped { entry, overrides });
            }
        }
    }
    if dropped.is_empty() {
        return found;
    }
    let mut readings = Readings::new();
    let mut additions = Vec::new();
    for &service in &reader.services {
        match addition(reader, &files, service, &mut readings) {
            Ok(addition) => additions.push(addition),
            Err(blocker) => found.blockers.push(blocker),
        }
    }
    found.append(inline(reader, &LABELS, &additions, &dropped));
    found
}

fn addition<'l, 'd>(
    reader: &Reader<'d, '_>,
    files: &'l ServiceFiles<'_, 'd, '_>,
    service: Service<'d>,
    readings: &mut Readings<'l>,
) -> Result<Addition<'d>, Blocker> {
    let chain = reader.chain(service);
    let all: Vec<_> = files.of_chain(&chain).collect();
    if !all.is_empty() {
        files.check_inherited(&chain)?;
    }
    let with_texts = files.with_texts(&all);
    let sources = Sources {
        files: &with_texts,
        explicit: &files.explicit(&chain),
        here: &|_| None,
    };
    let reading = readings
        .entry(file_list(&with_texts))
        .or_insert_with(|| reading::labels(&sources));
    Ok(Addition {
        service,
        values: reading.for_service(&sources)?,
        files: files.key(service),
        is_kept: false,
    })
}
