use std::cell::RefCell;

use serde_json::{Value, json};

use super::*;

/// An archive with these files: path, content.
fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (path, data) in files {
        let mut header = Header::new_ustar();
        let is_directory = path.ends_with('/');
        header.set_entry_type(if is_directory {
            EntryType::Directory
        } else {
            EntryType::Regular
        });
        header.set_mode(0o640);
        header.set_uid(7);
        header.set_gid(8);
        header.set_size(data.len() as u64);
        archive
            .append_data(&mut header, path, *data)
            .expect("an entry");
    }
    archive.into_inner().expect("an archive")
}

fn changes(paths: &[(&str, ChangeKind)]) -> Changes {
    let mut changes = Changes::default();
    for (path, kind) in paths {
        let path = (*path).to_owned();
        changes.add(Change { path, kind: *kind });
    }
    changes
}

fn read(
    container: &Value,
    paths: &[(&str, ChangeKind)],
    archives: &[(&str, Vec<u8>)],
) -> (Layer, Vec<String>) {
    let asked = RefCell::new(Vec::new());
    let container = Container(container.clone());
    let layer = Layer::read(&container, &changes(paths), true, |path, most| {
        asked.borrow_mut().push(path.to_owned());
        let found = archives.iter().find(|(of, _)| *of == path);
        let (_, bytes) = found.ok_or_else(|| anyhow::anyhow!("no {path}"))?;
        let most = usize::try_from(most).expect("a size");
        let is_whole = bytes.len() <= most;
        Ok((bytes[..bytes.len().min(most + 1)].to_vec(), is_whole))
    });
    (layer, asked.into_inner())
}

use ChangeKind::{Added, Deleted, Modified};

#[test]
fn b18_the_topmost_changes_are_read_without_what_the_engine_creates() {
    let container = json!({
        "Config": { "WorkingDir": "/made/to/work" },
        "Mounts": [{ "Destination": "/data/volume" }],
    });
    let secrets: [(_, &[u8]); 3] = [
        ("secrets/", b""),
        ("secrets/key", b"1"),
        ("secrets/a.pid", b"1"),
    ];
    let (layer, asked) = read(
        &container,
        &[
            ("/etc", Modified),
            ("/etc/motd", Modified),
            ("/run/secrets", Added),
            ("/run/secrets/key", Added),
            ("/made", Added),
            ("/made/to", Added),
            ("/made/to/work", Added),
            ("/made/to/work/file", Added),
            ("/data", Added),
            ("/data/volume", Added),
            ("/data/own", Added),
            ("/run/nginx.pid", Added),
            ("/bin/nc", Deleted),
            ("/tmp", Modified),
        ],
        &[
            ("/etc/motd", tar_of(&[("motd", b"hello")])),
            ("/run/secrets", tar_of(&secrets)),
            ("/made/to/work/file", tar_of(&[("file", b"2")])),
            ("/data/own", tar_of(&[("own", b"3")])),
            ("/tmp", tar_of(&[("tmp/", b""), ("tmp/of-the-image", b"4")])),
            ("/etc", tar_of(&[("etc/", b""), ("etc/of-the-image", b"4")])),
        ],
    );
    let expected = "/run/secrets /tmp /data/own /etc/motd /made/to/work/file /etc";
    assert_eq!(asked.join(" "), expected);
    let files: Vec<String> = layer.files().into_keys().collect();
    let expected = "/data/own /etc/motd /made/to/work/file /run/secrets/key";
    assert_eq!(files.join(" "), expected);
    assert_eq!(layer.unsaved, [""; 0]);
    // The directories come before what is in them.
    let all = entries_in(&layer.archive, "").expect("an archive");
    let first: Vec<_> = all.iter().take(2).map(|entry| &entry.path[..]).collect();
    assert_eq!(first, [b"etc", b"tmp"]);
    assert_eq!(layer.failure, None);
    let motd = &layer.files()["/etc/motd"];
    let expected = (0o640, (7, 8), &b"hello"[..]);
    assert_eq!((motd.mode, motd.owner, &motd.data[..]), expected);
}

#[test]
fn b18_what_is_too_large_or_unreadable_is_not_saved() {
    let large = vec![0; 2 << 20];
    let (layer, asked) = read(
        &json!({}),
        &[
            ("/a", Added),
            ("/big", Added),
            ("/big/log", Added),
            ("/z", Added),
            ("/zz", Added),
        ],
        &[
            ("/a", tar_of(&[("a", b"1")])),
            ("/big", tar_of(&[("big/", b""), ("big/log", &large)])),
        ],
    );
    assert_eq!(asked, ["/a", "/big", "/z"], "a failure ends it");
    assert_eq!(layer.files().into_keys().collect::<Vec<_>>(), ["/a"]);
    assert_eq!(layer.unsaved, ["/big/log", "/z", "/zz"]);
    assert_eq!(layer.failure.as_deref(), Some("no /z"));
}

#[test]
fn a_layer_is_read_as_it_was_written_whatever_the_length_of_its_names() {
    let long = format!("{}/{}", "d".repeat(150), "f".repeat(200));
    let (layer, _) = read(
        &json!({}),
        &[("/top", Added)],
        &[("/top", tar_of(&[(&format!("top/{long}"), b"x")]))],
    );
    assert!(layer.files().contains_key(&format!("/top/{long}")));
    let json = serde_json::to_string(&layer).expect("JSON");
    let read: Layer = serde_json::from_str(&json).expect("a layer");
    assert!(read == layer);
    assert_eq!(
        serde_json::to_string(&Layer::default()).expect("JSON"),
        "{}"
    );
}

#[test]
fn files_that_name_a_process_are_known_by_their_names() {
    let named = "/run/x.pid /app/RUNNING_PID /run/dbus/pid /tmp/.X99-lock /run/a.lock";
    for path in named.split(' ') {
        assert!(names_a_process(path), "{path}");
    }
    for path in "/app/yarn.lock /app/stupid /tmp/block /app/pid.txt /".split(' ') {
        assert!(!names_a_process(path), "{path}");
    }
}
