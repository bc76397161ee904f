//! Portainer's JSON, with keys in the recorded order.

use serde_json::{Value, json};

use crate::world::{Endpoint, Era, Record, ResourceControl};

/// A stack. The response to a PUT has no resource control.
pub(super) fn record(record: &Record, era: Era, with_control: bool) -> Value {
    let mut shown = json!({
        "Id": record.id,
        "Name": record.name,
        "Type": 2,
        "EndpointId": record.endpoint,
        "SwarmId": "",
        "EntryPoint": record.entries.first(),
        "Env": record.env,
        "ResourceControl": with_control.then(|| control_of(record)),
        "Status": record.status as u8,
        "ProjectPath": format!("/data/compose/{}", record.id),
        "CreationDate": record.created,
        "CreatedBy": record.created_by,
        "UpdateDate": record.updated,
        "UpdatedBy": record.updated_by,
        "AdditionalFiles": record.entries.get(1..).filter(|all| !all.is_empty()),
        "AutoUpdate": record.auto_update,
        "Option": record.prune.map(|prune| json!({ "Prune": prune })),
        "GitConfig": record.git,
        "FromAppTemplate": false,
        "Namespace": "",
    });
    if era == Era::Async {
        shown["DeploymentStatus"] = json!(record.deployments);
    }
    shown
}

/// The access rights of a stack.
pub fn control_of(record: &Record) -> Value {
    let of = format!("{}_{}", record.endpoint, record.name);
    control(&record.control, &of, 6)
}

/// The access rights of what has this ID and type: 1 is a container, and 6 a stack.
pub fn control(control: &ResourceControl, of: &str, kind: u64) -> Value {
    let accesses = |name: &str, ids: &[u64]| -> Value {
        let all = ids.iter();
        all.map(|id| json!({ name: id, "AccessLevel": 1 }))
            .collect()
    };
    let shared = control.public || !control.users.is_empty() || !control.teams.is_empty();
    json!({
        "Id": control.id,
        "ResourceId": of,
        "SubResourceIds": [],
        "Type": kind,
        "UserAccesses": accesses("UserId", &control.users),
        "TeamAccesses": accesses("TeamId", &control.teams),
        "Public": control.public,
        "AdministratorsOnly": !shared,
        "System": false,
    })
}

/// An environment.
pub(super) fn environment(id: u64, environment: &Endpoint) -> Value {
    let text = include_str!("endpoint.json");
    let mut shown: Value = serde_json::from_str(text).unwrap_or_default();
    shown["Id"] = json!(id);
    shown["Name"] = json!(environment.name);
    shown
}
