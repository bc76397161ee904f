use std::collections::HashSet;

use super::{Holds, INCLUDE, Place, ROOT, SERVICE};

fn visit(place: &'static Place, seen: &mut HashSet<&'static Place>) {
    if !seen.insert(place) {
        return;
    }
    let groups = std::iter::once(&place.keys).chain(place.shared_keys);
    for keys in groups {
        assert!(
            keys.is_sorted_by(|one, next| one.name < next.name),
            "{keys:?}"
        );
    }
    let below = place.keys().map(|key| key.place);
    for place in below.chain(place.any_key).chain(place.item) {
        visit(place, seen);
    }
}

#[test]
fn keys_are_sorted() {
    let mut seen = HashSet::new();
    visit(&ROOT, &mut seen);
    assert!(seen.contains(&SERVICE) && seen.contains(&INCLUDE));
}

#[test]
fn every_key_is_found() {
    for place in [&ROOT, &SERVICE, &INCLUDE] {
        for key in place.keys() {
            assert_eq!(place.key(key.name), Some(key.place), "{}", key.name);
        }
    }
    assert_eq!(SERVICE.key("web"), None);
    assert_eq!(
        SERVICE
            .key("environment")
            .and_then(|place| place.key("x-a"))
            .map(Place::holds),
        Some(Holds::Plain)
    );
}

#[test]
fn a_place_leads_to_what_places_below_it_hold() {
    let service = |key| SERVICE.key(key).expect("a key");
    assert!(ROOT.leads_to(Holds::EnvFile) && SERVICE.leads_to(Holds::MountSource));
    assert!(service("develop").leads_to(Holds::LocalPath));
    assert!(!service("deploy").leads_to(Holds::LocalPath));
}
