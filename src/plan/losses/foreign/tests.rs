use serde_json::{Value, json};

use super::*;

const OLD: &str = "aaaaaaaaaaaaaaaaaaaaaaaa";

fn container(name: &str, host: &Value) -> Container {
    Container(json!({
        "Id": format!("{name}-0123456789abcdef"),
        "Name": format!("/{name}"),
        "State": { "Running": true },
        "Config": { "Labels": {} },
        "HostConfig": host,
    }))
}

/// The texts about containers that use `web-a-1`, whose ID is [`OLD`].
fn texts(touch: Touch, others: &[Container]) -> Vec<String> {
    let used = Container(json!({ "Id": OLD, "Name": "/web-a-1" }));
    let found = foreign(&[(&used, touch)], others, "docker", &["web".to_owned()]);
    found.iter().map(|one| one.loss.to_string()).collect()
}

#[test]
fn b21_each_use_has_its_remedy() {
    let shared = json!({ "NetworkMode": format!("container:{OLD}") });
    let both =
        json!({ "PidMode": format!("container:{OLD}"), "IpcMode": format!("container:{OLD}") });
    let named = json!({ "NetworkMode": "container:web-a-1" });
    let linked = json!({ "Links": ["/web-a-1:/x/a"] });
    let mounts = json!({ "VolumesFrom": ["web-a-1:ro"] });
    let other = json!({ "NetworkMode": "container:web-a-10", "PidMode": "host", "Links": null });
    let network = "shares the network of web-a-1, and loses it ";
    let namespaces = "shares the PID namespace of web-a-1 and shares the IPC namespace of web-a-1, and loses it ";
    let links = "links to web-a-1, and loses it ";
    let volumes = "mounts the volumes of web-a-1, and keeps the volumes that it has now ";
    let replaced = "when that container is recreated or removed";
    let restarted = "when that container is restarted";
    let may_be = "if that container is recreated or removed";
    let was = "since that container was recreated or removed";
    let recreate =
        "; recreate it then: `docker rm -f x`, then create it again as it was created before";
    let restart = "; restart it then: `docker restart x`";
    for (host, touch, use_of, when, remedy) in [
        (&shared, Touch::Replaced, network, replaced, recreate),
        (&shared, Touch::Restarted, network, restarted, restart),
        (&both, Touch::MayBeReplaced, namespaces, may_be, recreate),
        (&shared, Touch::Gone, network, was, recreate),
        (&named, Touch::Replaced, network, replaced, restart),
        (&linked, Touch::Replaced, links, replaced, recreate),
        (&linked, Touch::Restarted, "", "", ""),
        (&linked, Touch::Gone, "", "", ""),
        (&mounts, Touch::Replaced, volumes, replaced, ""),
        (&other, Touch::Replaced, "", "", ""),
    ] {
        let found = texts(touch, &[container("x", host)]).concat();
        let uses = found.trim_start_matches("x: it does not belong to the stack, ");
        assert_eq!(uses, [use_of, when, remedy].concat(), "{host}");
    }
}

#[test]
fn b21_harm_spreads_in_the_order_of_the_repair() {
    let last = container("a", &json!({ "PidMode": "container:b-0123456789abcdef" }));
    let of_c = json!({ "NetworkMode": "container:c-0123456789abcdef" });
    let first = container("c", &json!({ "NetworkMode": format!("container:{OLD}") }));
    let all = [last, container("b", &of_c), first];
    for (touch, remedy) in [
        (Touch::Replaced, "recreate it then: `docker rm -f"),
        (Touch::Restarted, "restart it then: `docker restart"),
    ] {
        let found = texts(touch, &all);
        let names: Vec<&str> = found.iter().filter_map(|name| name.get(..2)).collect();
        assert_eq!(names, ["c:", "b:", "a:"]);
        assert!(found.iter().all(|one| one.contains(remedy)), "{found:?}");
    }
}

#[test]
fn b21_a_stopped_container_cannot_start_again() {
    let mut stopped = container("x", &json!({ "NetworkMode": format!("container:{OLD}") }));
    stopped["State"]["Running"] = json!(false);
    let found = texts(Touch::Replaced, &[stopped.clone()]);
    let said = "and cannot start again when";
    assert!(found[0].contains(said), "{found:?}");
    assert_eq!(texts(Touch::Restarted, &[stopped]), [""; 0]);
}

#[test]
fn b21_compose_recreates_its_own_containers() {
    let host = json!({ "NetworkMode": format!("container:{OLD}") });
    for (labels, expected) in [
        (
            json!({
                "com.docker.compose.project": "vpn",
                "com.docker.compose.service": "dl",
                "com.docker.compose.project.working_dir": "/opt/my stacks/vpn",
                "com.docker.compose.project.config_files": "/opt/my stacks/vpn/compose.yaml",
            }),
            "docker compose -p vpn --project-directory '/opt/my stacks/vpn' -f '/opt/my stacks/vpn/compose.yaml' up -d --force-recreate dl`",
        ),
        (
            json!({
                "com.docker.compose.project": "vpn",
                "com.docker.compose.service": "dl",
                "com.docker.compose.project.working_dir": "/data/compose/7",
            }),
            "`docker rm -f x`, then update the stack vpn in Portainer",
        ),
        (
            json!({
                "com.docker.compose.project": "web",
                "com.docker.compose.service": "a",
                "com.docker.compose.oneoff": "True",
            }),
            "`docker rm -f x`, then create it again as it was created before",
        ),
    ] {
        let mut one = container("x", &host);
        one["Config"]["Labels"] = labels;
        let found = texts(Touch::Replaced, &[one]);
        assert!(found[0].ends_with(expected), "{found:?}");
    }
}
