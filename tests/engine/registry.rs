//! A registry on this host that serves one image. The engine needs no TLS for an address of this host.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
};

use ring::digest::{SHA256, digest};
use serde_json::json;

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

pub struct Registry {
    /// The reference of its image.
    pub image: String,
    /// Receives a way to let the first request for the manifest continue, while it waits for that.
    pub held: Receiver<SyncSender<()>>,
}

impl Registry {
    /// Serves an image that no other test pulls.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, held) = mpsc::sync_channel(1);
        let first = Arc::new(Mutex::new(Some(sender)));
        let blobs = blobs(address);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (blobs, first) = (blobs.clone(), Arc::clone(&first));
                // An attempt with TLS is cut off.
                thread::spawn(move || serve(stream.ok()?, &blobs, &first));
            }
        });
        let image = format!("{address}/stacklift-test:1");
        Self { image, held }
    }

    /// The name of an image that nobody serves.
    pub fn absent() -> String {
        format!("127.0.0.1:{}/stacklift-test:1", super::bench::free_port())
    }
}

/// The ends of the paths, the types and the contents of the manifest, the configuration and the only layer.
fn blobs(address: SocketAddr) -> Vec<(String, &'static str, Vec<u8>)> {
    let mut layer = tar::Builder::new(Vec::new());
    let contents = address.to_string();
    let mut header = tar::Header::new_gnu();
    header.set_size(contents.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    layer
        .append_data(&mut header, "address", contents.as_bytes())
        .unwrap();
    let layer = layer.into_inner().unwrap();
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {}, "history": [{}],
        "rootfs": {"type": "layers", "diff_ids": [sha256(&layer)]},
    });
    let config = config.to_string().into_bytes();
    let part = |media: &str, blob: &[u8]| json!({"mediaType": media, "size": blob.len(), "digest": sha256(blob)});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": part(CONFIG, &config), "layers": [part(LAYER, &layer)],
    });
    let manifest = manifest.to_string().into_bytes();
    let bytes = "application/octet-stream";
    vec![
        ("/v2/".to_owned(), "application/json", b"{}".to_vec()),
        (sha256(&config), bytes, config),
        (sha256(&layer), bytes, layer),
        ("manifests/1".to_owned(), MANIFEST, manifest.clone()),
        (sha256(&manifest), MANIFEST, manifest),
    ]
}

fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

/// Answers one request. The first request for the manifest waits until the test lets it continue.
fn serve(
    mut stream: TcpStream,
    blobs: &[(String, &'static str, Vec<u8>)],
    first: &Mutex<Option<SyncSender<SyncSender<()>>>>,
) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let request = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    let mut words = request.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    if path.contains("/manifests/")
        && let Some(held) = first.lock().unwrap().take()
    {
        let (release, released) = mpsc::sync_channel(1);
        held.send(release).ok()?;
        released.recv().ok()?;
    }
    let found = blobs.iter().find(|(end, ..)| path.ends_with(end));
    let (status, media, body) = match found {
        Some((_, media, body)) => ("200 OK", *media, body.as_slice()),
        None => ("404 Not Found", "text/plain", &[][..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {}\r\nDocker-Distribution-Api-Version: registry/2.0\r\nDocker-Content-Digest: {}\r\nConnection: close\r\n\r\n",
        body.len(),
        sha256(body)
    );
    stream.write_all(head.as_bytes()).ok()?;
    if method != "HEAD" {
        stream.write_all(body).ok()?;
    }
    Some(())
}
