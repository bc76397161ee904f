use proptest::prelude::*;

use super::*;
use crate::engine::tests::hostile::{body, check_containers, check_error};

fn api() -> Api {
    let options = Options::new("docker", Choice::Api, ClientConfig::default(), Trace::off());
    Api::new(PathBuf::from("engine.sock"), options)
}

fn response(status: u16, body: &[u8]) -> ApiResponse {
    ApiResponse {
        request: "GET /".to_owned(),
        status,
        api_version: None,
        is_podman: false,
        body: body.to_vec(),
    }
}

proptest! {
    #[test]
    fn any_body_is_a_list_of_its_containers_or_an_error(body in body()) {
        let listed = api().read::<Option<Vec<wire::ListedContainer>>>(&response(200, &body));
        let containers = listed.map(|listed| {
            listed.unwrap_or_default().into_iter().map(Container::from).collect()
        });
        check_containers(&body, containers);
    }

    #[test]
    fn errors_cannot_control_the_terminal(body in body()) {
        let (api, ok) = (api(), response(200, &body));
        let errors = [
            api.read::<Value>(&ok).err(),
            api.read::<Info>(&ok).err(),
            api.read::<Option<Vec<wire::ListedObject>>>(&ok).err(),
            api.read::<wire::ListedVolumes>(&ok).err(),
            api.read::<Option<Vec<wire::ListedChange>>>(&ok).err(),
            Some(api.refused(&response(500, &body))),
        ];
        errors.iter().flatten().for_each(check_error);
    }
}
