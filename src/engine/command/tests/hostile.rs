use proptest::prelude::*;

use super::*;
use crate::engine::hostile::{body, check_containers};

proptest! {
    #[test]
    fn any_output_is_a_list_of_its_containers_or_an_error(body in body()) {
        let inspected = serde_json::from_slice::<Vec<wire::Container>>(&body);
        let containers = inspected
            .map(|inspected| inspected.into_iter().map(Container::from).collect())
            .map_err(anyhow::Error::from);
        check_containers(&body, containers);
    }
}
