use serde_json::json;

use super::*;

const OWN_ENV: &str = "/srv/web/.env";

fn env() -> Vec<(String, String)> {
    let env = [
        ("PORT", "8000"),
        ("PASS", "se$cret"),
        ("DATA", "./data"),
        ("ABS", "/abs"),
    ];
    env.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Combines the service `a`. The shell has `SHELL_X`.
fn combined(config: &Value, model: Option<&Value>, avoid: &Avoid) -> Combined {
    let service = |service: &Value| json!({"name": "web", "services": {"a": service}});
    let model = model.map(service);
    combine(
        &Resolved {
            config: &service(config),
            model: model.as_ref(),
            project: "web",
            env: &env(),
            env_file: Some(OWN_ENV),
            shell: &|name| (name == "SHELL_X").then(|| "x".to_owned()),
            values: &["se$cret".to_owned()],
        },
        avoid,
    )
}

fn of_service(combined: &Combined) -> &str {
    let text = combined.text.strip_prefix("services:\n  a:\n");
    text.expect("one service")
}

#[test]
fn variables_are_kept_where_they_give_the_same() {
    // Without an expected text, that of the model is kept.
    for (config, model, expected) in [
        // The value is the same, also with `$` in it, and below a directory that Compose adds.
        (json!("a8000"), json!("a${PORT}"), ""),
        (json!("se$$cret"), json!("$PASS"), ""),
        (json!("/abs/x"), json!("/srv/web/${ABS}/x"), "\"${ABS}/x\""),
        (json!("on"), json!("${NONE:-on}"), ""),
        (json!("web"), json!("$COMPOSE_PROJECT_NAME"), ""),
        // Another form of the same value, which only Compose can compare.
        (json!("104857600"), json!("${MEM:-100m}"), ""),
        (json!(["a", "8000"]), json!("a $PORT"), ""),
        // A path that depends on the directory, and a variable of the shell.
        (json!("/srv/web/data"), json!("${DATA}"), "/srv/web/data"),
        (json!("x"), json!("$SHELL_X"), "x"),
        // Portainer's container sets it.
        (json!("x"), json!("${HOSTNAME:-x}"), "x"),
        // Nothing to keep.
        (json!("$$x"), json!("$$x"), ""),
        (json!(1.5), json!(1.5), "1.5"),
    ] {
        let expected = match expected {
            "" => model.to_string(),
            _ => expected.to_owned(),
        };
        let (config, model) = (json!({"k": config}), json!({"k": model}));
        let combined = combined(&config, Some(&model), &Avoid::default());
        assert_eq!(of_service(&combined), format!("    k: {expected}\n"));
    }
}

#[test]
fn a_list_with_variables_in_its_names_stays_a_list() {
    let config =
        json!({"labels": {"port.8000.rule": "Host(`/abs`)", "plain": "x$$y", "x": "se$$cret"}});
    let labels = [
        "port.$PORT.rule=Host(`${ABS}`)",
        "plain=x$$y",
        "${SHELL_X}=${PASS}",
    ];
    let combined = combined(&config, Some(&json!({"labels": labels})), &Avoid::default());
    assert_eq!(
        of_service(&combined),
        "    labels:
      - \"port.$PORT.rule=Host(`${ABS}`)\"
      - \"plain=x$$y\"
      - \"x=se$$cret\"
"
    );
    let names = combined.written.iter().map(|(name, _)| name);
    assert!(names.eq(["PASS", "SHELL_X"]), "{:?}", combined.written);
    assert_eq!(combined.secret, ["\"x=se$$cret\"".to_owned()].into());
}

#[test]
fn what_compose_reads_differently_is_written_out() {
    let (config, model) = (json!({"k": ["a", "8000"]}), json!({"k": "a $PORT"}));
    let avoid = Avoid {
        keys: ["services.a.k".to_owned()].into(),
        ..Avoid::default()
    };
    let combined = combined(&config, Some(&model), &avoid);
    let expected = "    k:\n      - a\n      - \"8000\"\n";
    assert_eq!(of_service(&combined), expected);
    let port = ("PORT".to_owned(), "services.a.k".to_owned());
    assert_eq!(combined.written, [port]);
    assert!(combined.secret.contains("\"8000\""));
}

#[test]
fn values_of_other_env_files_become_variables() {
    let config = json!({"environment": {
        "LITERAL": "x", "EMPTY": "", "PORT": "9", "KEY": "a'b", "PASS": "se$$cret", "BARE": null, "OF_INCLUDE": "v-1",
    }});
    let model = json!({
        "env_file": [{"path": "/srv/web/a.env"}],
        "environment": ["LITERAL=x", "BARE", "OF_INCLUDE=v-${TAG}"],
    });
    let combined = combined(&config, Some(&model), &Avoid::default());
    assert_eq!(
        of_service(&combined),
        "    environment:
      BARE: null
      EMPTY: \"\"
      KEY: \"${KEY}\"
      LITERAL: x
      OF_INCLUDE: \"${OF_INCLUDE}\"
      PASS: \"${PASS}\"
      PORT: \"${A_PORT}\"
"
    );
    let env =
        "PORT=8000\nPASS='se$cret'\nDATA=./data\nABS=/abs\nA_PORT=9\nKEY=\"a'b\"\nOF_INCLUDE=v-1\n";
    assert_eq!(combined.env, env);
    assert!(combined.written.is_empty() && combined.secret.is_empty());
}

#[test]
fn the_env_file_of_the_project_stays_one() {
    let config =
        json!({"environment": {"ABS": "/abs", "DATA": "./data", "PASS": "p", "PORT": "8000"}});
    let model = json!({"env_file": [{"path": OWN_ENV}], "environment": {"PASS": "p"}});
    let kept = combined(&config, Some(&model), &Avoid::default());
    let expected = "    env_file:\n      - stack.env\n    environment:\n      PASS: p\n";
    assert_eq!(of_service(&kept), expected);
    let avoid = Avoid {
        env_files: true,
        ..Avoid::default()
    };
    let named = combined(&config, Some(&model), &avoid);
    assert!(named.text.contains("DATA: \"${DATA}\""), "{}", named.text);
}

#[test]
fn without_the_variables_nothing_of_env_is_shown() {
    let config = json!({"environment": {"K": "v"}, "command": ["--pass", "se$$cret"]});
    let combined = combined(&config, None, &Avoid::default());
    let expected = "    command:\n      - \"--pass\"\n      - \"se$$cret\"\n    environment:\n      K: \"${K}\"\n";
    assert_eq!(of_service(&combined), expected);
    assert_eq!(combined.secret, ["\"se$$cret\"".to_owned()].into());
}

#[test]
fn what_compose_prints_is_written_as_every_version_reads_it() {
    let config = json!({
        "name": "web",
        "networks": {"default": {"name": "web_default", "ipam": {}}, "other": {"name": "other"}},
        "services": {"a": {
            "command": null, "label_file": ["/x"], "labels": {"a$$b": "c$$d"}, "networks": {"default": null},
            "secrets": [{"source": "s", "mode": "0440"}],
            "blkio_config": {"weight": 10, "device_read_bps": [{"Path": "/dev/x", "Rate": "1"}]},
        }},
        "volumes": {"v": {"name": "web_v"}},
        "x-fragment": {"a": 1},
    });
    let resolved = Resolved {
        config: &config,
        model: None,
        project: "web",
        env: &[],
        env_file: None,
        shell: &|_| None,
        values: &[],
    };
    let combined = combine(&resolved, &Avoid::default());
    let expected = "services:
  a:
    blkio_config:
      weight: 10
      device_read_bps:
        - path: /dev/x
          rate: \"1\"
    labels:
      \"a$b\": \"c$$d\"
    secrets:
      - mode: 288
        source: s
networks:
  other:
    name: other
volumes:
  v: null
";
    assert_eq!((&*combined.text, &*combined.env), (expected, ""));
}
