use super::{Holds, INCLUDE, ROOT, SERVICE, SchemaNode};

#[test]
fn every_key_is_found() {
    for place in [&ROOT, &SERVICE, &INCLUDE] {
        for (name, since, below) in place.keys() {
            assert_eq!(place.since(name), Some(since), "{name}");
            let holds = place.key(name).map_or(Holds::Plain, SchemaNode::holds);
            assert_eq!(holds, below.holds(), "{name}");
        }
    }
    assert_eq!((SERVICE.key("web"), SERVICE.since("web")), (None, None));
    let environment = SERVICE.key("environment").expect("a key");
    assert_eq!(environment.key("x-a"), None);
    assert_eq!(environment.since("x-a"), Some((0, 0, 0)));
}

#[test]
fn a_place_leads_to_what_places_below_it_hold() {
    let service = |key| SERVICE.key(key).expect("a key");
    assert!(ROOT.leads_to(Holds::EnvFile) && SERVICE.leads_to(Holds::MountSource));
    assert!(service("develop").leads_to(Holds::LocalPath));
    assert!(!service("deploy").leads_to(Holds::LocalPath));
}
