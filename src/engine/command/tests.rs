use std::{
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{Arc, Mutex},
};

use tempfile::TempDir;

use super::*;
use crate::engine::{Choice, ClientConfig, Engine};
use crate::trace::Trace;

/// A container command that runs a shell script, and the log of its runs.
struct Fake {
    folder: TempDir,
    engine: Engine,
    runs: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// `script` has its arguments in `$@` and its directory in `$HERE`.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo");
        let tool = Path::new(&project).join("tests/fixtures/engine/tool");
        // Otherwise the search would find a real `docker`.
        assert!(tool.exists(), "{}", tool.display());
        symlink(tool, folder.path().join("docker")).unwrap();
        let script = format!("HERE={}\n{script}", folder.path().display());
        fs::write(folder.path().join("script"), script).unwrap();
        let runs = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&runs);
        let engine = Engine::open(Options {
            tool: "docker".to_owned(),
            choice: Choice::Command,
            client: ClientConfig {
                path: Some(path_with(folder.path())),
                ..ClientConfig::default()
            },
            read_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(30),
            change_timeout: Duration::from_secs(30),
            trace: Trace::to(move |exchange| {
                let run = format!("{} → {}", exchange.request, exchange.outcome);
                seen.lock().unwrap().push(run);
            }),
        });
        Self {
            folder,
            engine,
            runs,
        }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn runs(&self) -> Vec<String> {
        self.runs.lock().unwrap().clone()
    }
}

fn path_with(folder: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap()
}

fn id(of: u32) -> String {
    format!("{of:064x}")
}

fn container(of: u32) -> Container {
    Container(json!({ "Id": id(of), "Name": format!("web-{of}") }))
}

const LISTING: &str = r#"
case "$1 $2" in
    "ps -aq") cat "$HERE/ids" ;;
    "ps -a") printf '%s\tUp 2 hours (healthy)\n' "$(printf %064d 1)" ;;
    "inspect --type") cat "$HERE/inspected" ;;
esac
"#;

const INSPECTED: &str = r#"[
    {"Id":"0000000000000000000000000000000000000000000000000000000000000001","Name":"/web-1",
     "State":{"Status":"running"},
     "Config":{"Image":"web:1","Labels":{"com.docker.compose.project":"web","a":"b"}},
     "NetworkSettings":{"Ports":{"80/tcp":[{"HostIp":"::","HostPort":"8080"},{"HostIp":"","HostPort":"8080"}],"443/tcp":null},
                        "Networks":{"lan":{"IPAddress":"172.30.0.9","GlobalIPv6Address":""}}},
     "Mounts":[{"Type":"volume","Name":"data","Source":"/var/lib/x","Destination":"/data"},
               {"Type":"bind","Source":"/etc","Destination":"/conf"},
               {"Type":"tmpfs","Name":null,"Destination":"/tmp"}]},
    {"Id":"0000000000000000000000000000000000000000000000000000000000000002","Name":"cron",
     "State":{"Status":"exited"},"Config":{"Image":"cron","Labels":{"com.docker.compose.project":"web"}},
     "NetworkSettings":{"Ports":null},"Mounts":null},
    {"Id":"0000000000000000000000000000000000000000000000000000000000000003","Name":"/other",
     "State":null,"Config":{"Image":"other","Labels":null}}
]"#;

#[test]
fn a_container_is_read_from_the_output_of_the_command() {
    let fake = Fake::new(LISTING);
    fake.write("ids", "000000000001\n000000000002\n000000000003\n");
    fake.write("inspected", INSPECTED);
    // The third container does not have the label of the project.
    let found = fake.engine.list("web").unwrap();
    let told = |one: &Container| [one.name(), one.image_name(), one.told_status()].join(", ");
    assert_eq!(
        found.iter().map(told).collect::<Vec<_>>(),
        ["cron, cron, exited", "web-1, web:1, Up 2 hours (healthy)"]
    );
    let ports = found[1].published_ports().into_iter();
    let ports = ports.map(|port| (port.address, port.published, port.container_port));
    assert_eq!(
        ports.collect::<Vec<_>>(),
        [("0.0.0.0", "8080", "80"), ("::", "8080", "80")]
    );
    assert_eq!(
        fake.runs(),
        [
            "run docker ps -aq --filter label=com.docker.compose.project=web → exit 0",
            "run docker inspect --type container 000000000001 000000000002 000000000003 → exit 0",
            "run docker ps -a --no-trunc --filter label=com.docker.compose.project=web --format {{.ID}}\\t{{.Status}} → exit 0",
        ]
    );
}

#[test]
fn only_ids_are_passed_on() {
    let fake = Fake::new("echo 'Emulate Docker CLI using podman. -f'");
    let error = fake.engine.list("web").unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "failed to list the containers of web: unexpected output of `docker ps -aq`: expected container IDs, got Emulate"
    );
}

#[test]
fn ids_are_enough_if_inspect_fails() {
    let fake = Fake::new("case \"$1\" in ps) echo c0ffee; echo cafe;; *) exit 1;; esac");
    let found = fake.engine.list("web").unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|one| (one.id(), one.image_name()))
        .collect();
    assert_eq!(found, [("c0ffee", ""), ("cafe", "")]);
}

#[test]
fn containers_that_disappear_one_after_another_are_left_out() {
    let fake = Fake::new(
        r#"
gone=$(cat "$HERE/gone" 2>/dev/null || echo 2)
case "$1 $2" in
    "ps -aq") seq -f %012.0f "$gone" 9 ;;
    "inspect --type")
        if [ "$gone" = 9 ]; then cat "$HERE/inspected"; else
            echo $((gone + 1)) >"$HERE/gone"; echo "Error: No such container: 00000000000$gone" >&2; exit 1; fi ;;
esac"#,
    );
    let labels = r#""Config":{"Labels":{"com.docker.compose.project":"web"}}"#;
    let inspected = format!(r#"[{{"Id":"{}","Name":"/db",{labels}}}]"#, id(9));
    fake.write("inspected", &inspected);
    let found = fake.engine.list("web").unwrap();
    let names: Vec<_> = found.iter().map(Container::name).collect();
    assert_eq!(names, ["db"]);
}

/// `rm` fails with the message in the file `error`. `ps` prints the file `ids`. `inspect` prints no container.
const FAILING_RM: &str = r#"
case "$1" in
    rm) cat "$HERE/error" >&2; exit 1 ;;
    ps) cat "$HERE/ids" ;;
    inspect) echo '[]' ;;
esac
"#;

#[test]
fn a_container_that_no_longer_exists_counts_as_removed() {
    let fake = Fake::new(FAILING_RM);
    fake.write("error", &format!("Error: No such container: {}\n", id(1)));
    fake.write("ids", &id(77));
    fake.engine.remove(&[container(1), container(2)]).unwrap();
    let expected = "run docker ps -aq --no-trunc → exit 0";
    assert_eq!(fake.runs().last().unwrap(), expected);
}

#[test]
fn an_unreachable_engine_is_not_an_empty_one() {
    let fake = Fake::new("echo 'Cannot connect to the daemon' >&2; exit 1");
    let error = fake.engine.remove(&[container(1)]).unwrap_err();
    let said = "cannot tell which containers remain";
    assert!(format!("{error:#}").contains(said), "{error:#}");
}

#[test]
fn names_that_look_like_options_are_not_passed_on() {
    let fake = Fake::new("exit 1");
    fake.engine.inspect_images(["-f"]).unwrap_err();
    assert_eq!(fake.runs(), Vec::<String>::new());
}
