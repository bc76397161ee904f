//! The calls of both APIs.

/// The API that received a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The simulated Portainer.
    Portainer,
    /// The simulated container engine.
    Engine,
}

/// The calls, each with its requests: `*` is any segment of the path, and `...` any rest.
macro_rules! calls {
    ($($call:ident: $peer:ident $($pattern:literal),+;)*) => {
        /// An API call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Call {
            $(#[doc = concat!($("`", $pattern, "` "),+)] $call,)*
            /// Any other request.
            Other,
        }

        impl Call {
            /// Every call that has a name.
            pub const ALL: &[Self] = &[$(Self::$call),*];
        }

        /// The calls with their requests.
        const CALLS: &[(Call, Peer, &[&str])] =
            &[$((Call::$call, Peer::$peer, &[$($pattern),+]),)*];
    };
}

calls! {
    Status: Portainer "GET api/system/status";
    Endpoints: Portainer "GET api/endpoints", "GET api/endpoints/*";
    List: Portainer "GET api/stacks";
    Get: Portainer "GET api/stacks/*";
    File: Portainer "GET api/stacks/*/file";
    Create: Portainer "POST api/stacks/create/standalone/string";
    CreateGit: Portainer "POST api/stacks/create/standalone/repository";
    Preview: Portainer "POST api/gitops/repo/file/preview";
    Redeploy: Portainer "PUT api/stacks/*/git/redeploy";
    Update: Portainer "PUT api/stacks/*";
    Delete: Portainer "DELETE api/stacks/*";
    Stop: Portainer "POST api/stacks/*/stop";
    Access: Portainer "PUT api/resource_controls/*";
    Info: Portainer "GET api/endpoints/*/docker/info";
    Unshare: Portainer "DELETE api/resource_controls/*";
    Containers: Portainer "GET api/endpoints/*/docker/containers/json";
    Me: Portainer "GET api/users/me";
    Users: Portainer "GET api/users";
    Teams: Portainer "GET api/teams";
    EnginePing: Engine "GET _ping";
    EngineVersion: Engine "GET version";
    EngineInfo: Engine "GET info";
    EngineEvents: Engine "GET events";
    EngineList: Engine "GET containers/json";
    EngineInspect: Engine "GET containers/*/json";
    EngineRemove: Engine "DELETE containers/*";
    EngineChanges: Engine "GET containers/*/changes";
    EngineArchive: Engine "GET containers/*/archive";
    EngineUnpack: Engine "PUT containers/*/archive";
    EngineTop: Engine "GET containers/*/top";
    EngineCreate: Engine "POST containers/create";
    EngineStart: Engine "POST containers/*/start";
    EngineStop: Engine "POST containers/*/stop";
    EngineNetworks: Engine "GET networks", "GET networks/*";
    EngineNetworkCreate: Engine "POST networks/create";
    EngineNetworkRemove: Engine "DELETE networks/*";
    EngineConnect: Engine "POST networks/*/connect";
    EngineVolumes: Engine "GET volumes", "GET volumes/*";
    EngineVolumeCreate: Engine "POST volumes/create";
    EngineImages: Engine "GET images/...";
}

impl Call {
    /// Classifies a request.
    pub(super) fn of(peer: Peer, method: &str, path: &[&str]) -> Self {
        let fits = |pattern: &&&str| {
            let (wanted, pattern) = pattern.split_once(' ').unwrap_or_default();
            let start = pattern.strip_suffix("/...");
            let parts = start.unwrap_or(pattern).split('/').collect::<Vec<_>>();
            wanted == method
                && (parts.len() == path.len() || (start.is_some() && parts.len() < path.len()))
                && parts
                    .iter()
                    .zip(path)
                    .all(|(part, given)| *part == "*" || part == given)
        };
        let found = CALLS
            .iter()
            .find(|(_, of, patterns)| *of == peer && patterns.iter().any(|one| fits(&one)));
        found.map_or(Self::Other, |(call, ..)| *call)
    }
}
