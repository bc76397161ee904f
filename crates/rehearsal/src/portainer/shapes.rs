//! Portainer's JSON, with keys in the recorded order.

use serde::Serialize;
use serde_json::{Value, json};

use crate::world::{Era, Record, Variable};

/// Whether a response contains the resource control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    Shown,
    /// `null`, as in the response to a PUT.
    Null,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RecordJson<'r> {
    id: u64,
    name: &'r str,
    #[serde(rename = "Type")]
    kind: u8,
    endpoint_id: u64,
    swarm_id: &'static str,
    entry_point: &'static str,
    env: Option<&'r [Variable]>,
    resource_control: Option<ControlJson>,
    status: u8,
    project_path: String,
    creation_date: i64,
    created_by: &'r str,
    update_date: i64,
    updated_by: &'r str,
    additional_files: (),
    auto_update: Option<&'r Value>,
    option: (),
    git_config: Option<&'r Value>,
    from_app_template: bool,
    namespace: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deployment_status: Option<Vec<NoteJson<'r>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ControlJson {
    id: u64,
    resource_id: String,
    sub_resource_ids: [u64; 0],
    #[serde(rename = "Type")]
    kind: u8,
    user_accesses: Vec<AccessJson>,
    team_accesses: Vec<TeamJson>,
    public: bool,
    administrators_only: bool,
    system: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct AccessJson {
    user_id: u64,
    access_level: u8,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TeamJson {
    team_id: u64,
    access_level: u8,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct NoteJson<'r> {
    status: u8,
    time: i64,
    message: &'r str,
}

/// A stack in Portainer's JSON.
pub(super) fn record_json(record: &Record, era: Era, control: Control) -> RecordJson<'_> {
    let notes = record.deployments.iter().map(|note| NoteJson {
        status: note.status.number(),
        time: note.time,
        message: &note.message,
    });
    RecordJson {
        id: record.id,
        name: &record.name,
        kind: 2,
        endpoint_id: record.endpoint,
        swarm_id: "",
        entry_point: "docker-compose.yml",
        env: record.env.as_deref(),
        resource_control: (control == Control::Shown).then(|| control_json(record)),
        status: record.status.number(),
        project_path: format!("/data/compose/{}", record.id),
        creation_date: record.created,
        created_by: &record.created_by,
        update_date: record.updated,
        updated_by: &record.updated_by,
        additional_files: (),
        auto_update: record.auto_update.as_ref(),
        option: (),
        git_config: record.git.as_ref(),
        from_app_template: false,
        namespace: "",
        webhook: record.webhook.as_deref(),
        deployment_status: (era == Era::Async).then(|| notes.collect()),
    }
}

/// The access rights of a stack in Portainer's JSON.
pub(super) fn control_json(record: &Record) -> ControlJson {
    let control = &record.control;
    let users = control.users.iter().map(|id| AccessJson {
        user_id: *id,
        access_level: 1,
    });
    let teams = control.teams.iter().map(|id| TeamJson {
        team_id: *id,
        access_level: 1,
    });
    let shared = control.public || !control.users.is_empty() || !control.teams.is_empty();
    ControlJson {
        id: control.id,
        resource_id: format!("{}_{}", record.endpoint, record.name),
        sub_resource_ids: [],
        kind: 6,
        user_accesses: users.collect(),
        team_accesses: teams.collect(),
        public: control.public,
        administrators_only: !shared,
        system: false,
    }
}

/// An environment in Portainer's JSON. `manages` is whether users who are not administrators may manage stacks.
pub(super) fn endpoint_json(id: u64, name: &str, manages: bool) -> String {
    let setting = "\"allowStackManagementForRegularUsers\":";
    include_str!("endpoint.json")
        .trim_end()
        .replacen("\"Id\":1", &format!("\"Id\":{id}"), 1)
        .replacen(
            "\"Name\":\"local\"",
            &format!("\"Name\":{}", Value::from(name)),
            1,
        )
        .replacen(&format!("{setting}true"), &format!("{setting}{manages}"), 1)
}

/// A user in Portainer's JSON.
pub(super) fn user_json(id: usize, name: &str, role: u8) -> Value {
    json!({
        "Id": id,
        "Username": name,
        "Role": role,
        "TokenIssueAt": 0,
        "ThemeSettings": { "color": "" },
        "UseCache": true,
        "EndpointAuthorizations": null,
        "PortainerAuthorizations": null,
    })
}
