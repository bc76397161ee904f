//! `--tls pin` and `--tls sha256:…`: one certificate is accepted, and nothing is sent to a server that has another one.

use std::fs;

use ring::digest::{SHA256, digest};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use testbed::Call;

use crate::{
    bench::{Bench, PLAIN, refusal},
    confirming::on_terminal,
    requests,
};

const QUESTION: &str = "trust this certificate from now on? [y/N]";

/// The fingerprint of Portainer's certificate, as `openssl x509 -fingerprint -sha256` prints it.
fn fingerprint(bench: &Bench) -> String {
    let pem = bench.certificate_pem();
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    let bytes = digest(&SHA256, &der);
    let pairs = bytes.as_ref().iter().map(|byte| format!("{byte:02X}"));
    pairs.collect::<Vec<_>>().join(":")
}

/// Asserts that Portainer received no request, and so no API key, since this was last asked.
#[track_caller]
fn portainer_received_nothing(bench: &Bench) {
    let requests = bench.requests();
    let received: Vec<_> = requests.iter().filter(|one| one.port != 0).collect();
    assert!(received.is_empty(), "{received:#?}");
    bench.forget_requests();
}

#[test]
fn without_a_terminal_a_new_certificate_is_refused_with_its_fingerprint() {
    let bench = Bench::web(PLAIN);
    let fingerprint = fingerprint(&bench);
    let why = format!(
        "is not pinned yet, and there is no terminal to ask on: its SHA-256 fingerprint is {fingerprint}; the API key was not sent\nNothing was changed.\n"
    );
    let hint = format!("pass --tls sha256:{fingerprint}");
    for args in ["web", "web --yes", "adopt web"] {
        let run = bench.fails(&format!("{args} --tls pin"), &[&why, &hint]);
        run.says("openssl s_client -connect localhost:");
        portainer_received_nothing(&bench);
        assert!(!bench.state().exists());
    }
    let named = format!("web --tls sha256:{fingerprint}");
    bench.run(&named).code(0);
    assert!(!bench.state().join("pinned-certificates").exists());
}

#[test]
fn only_the_named_certificate_is_accepted_in_both_forms() {
    let bench = Bench::web(PLAIN);
    let right = fingerprint(&bench);
    let wrong = "00".repeat(32);
    let why = format!(
        "does not match --tls: its SHA-256 fingerprint is {right}; neither the request nor the API key was sent\n"
    );
    let hint = format!("then pass --tls sha256:{right}");
    bench.fails(&format!("plan web --tls sha256:{wrong}"), &[why, hint]);
    portainer_received_nothing(&bench);
    for form in [right.to_lowercase(), right.replace(':', "")] {
        let args = format!("plan web --tls sha256:{form}");
        bench.run(&args).code(0);
    }
    for tls in ["sha256:12", "pin:", "sha256:"] {
        let run = bench.run(&["plan", "web", "--tls", tls]).code(2);
        run.says("64 hexadecimal digits");
    }
}

#[test]
fn on_a_terminal_no_is_the_default_and_yes_does_not_accept_a_certificate() {
    let bench = Bench::web(PLAIN);
    let fingerprint = fingerprint(&bench);
    for args in ["web --tls pin", "web --tls pin --yes", "list --tls pin"] {
        for answer in ["\n", "no\n", "\u{4}"] {
            on_terminal(&bench, args, answer).fails(&[
                &format!("SHA-256 fingerprint: {fingerprint}"),
                QUESTION,
                "canceled",
                "the API key was not sent",
            ]);
            portainer_received_nothing(&bench);
        }
    }
    assert!(!bench.state().join("pinned-certificates").exists());
}

#[test]
fn an_accepted_certificate_is_pinned_and_a_changed_one_is_refused() {
    let bench = Bench::web(PLAIN);
    let old = fingerprint(&bench);
    on_terminal(&bench, "plan web --tls pin", "y\n")
        .succeeds(&[QUESTION, "pinned the certificate of 127.0.0.1:"]);
    let pins = fs::read_to_string(bench.state().join("pinned-certificates")).expect("the pin");
    let server = bench.base_url().replace("https://", "");
    assert_eq!(pins, format!("{server} {old}\n"));
    bench.run("plan web --tls pin").code(0).hides(QUESTION);

    bench.renew_certificate().expect("renewed");
    bench.forget_requests();
    let new = fingerprint(&bench);
    assert_ne!(old, new);
    let accept = format!("--tls pin:{new}");
    let changed = [
        "has changed",
        &format!("was {old}, and now it is {new}"),
        "neither the request nor the API key was sent",
        &accept,
    ];
    bench.fails("web --tls pin", &changed);
    // There is no question, and so no answer that accepts it.
    on_terminal(&bench, "web --tls pin --yes", "y\ny\n")
        .fails(&changed)
        .hides(QUESTION);
    portainer_received_nothing(&bench);

    for wrong in [&old, &"00".repeat(32)] {
        bench.fails(&format!("plan web --tls pin:{wrong}"), &new);
        portainer_received_nothing(&bench);
    }
    let unchanged = fs::read_to_string(bench.state().join("pinned-certificates"));
    assert_eq!(unchanged.expect("the pin"), pins);
    bench.succeeds(&format!("list --tls pin:{new}"), "pinned the certificate");
    bench.run("web --tls pin").code(0);
}

#[test]
fn a_pin_that_cannot_be_read_is_not_a_missing_one() {
    let bench = Bench::web(PLAIN);
    let accept = format!("pin:{}", fingerprint(&bench));
    bench.run(&["list", "--tls", &accept]).code(0);
    bench.forget_requests();
    let file = bench.state().join("pinned-certificates");
    for text in ["127.0.0.1\n", "\u{0} \n\n"] {
        fs::write(&file, text).expect("written");
        for tls in ["pin", &accept] {
            let error = "cannot parse the pinned certificates";
            bench.fails(&["web", "--tls", tls], error);
        }
        portainer_received_nothing(&bench);
    }
    let server = bench.base_url().replace("https://", "");
    fs::write(&file, format!("{server} AA\n")).expect("written");
    bench.fails("web --tls pin", "64 hexadecimal digits");
    portainer_received_nothing(&bench);
}

#[test]
fn b14_a_printed_command_verifies_the_same_certificate() {
    let bench = Bench::web(PLAIN);
    let fingerprint = fingerprint(&bench);
    let sha256 = format!("sha256:{fingerprint}");
    for (tls, printed) in [
        (format!("pin:{fingerprint}"), "--tls pin ".to_owned()),
        (sha256.clone(), format!("--tls {sha256}")),
    ] {
        bench.once(Call::Create, refusal());
        let run = bench.run(&["web", "--tls", &tls]).code(1);
        let command = requests::printed(&run);
        assert!(command.contains(&printed), "{command}");
        bench.run(&["restore", "web", "--tls", &tls]).code(0);
    }
}

#[test]
fn a_restore_that_does_not_use_portainer_needs_no_pin() {
    let bench = Bench::migrated(PLAIN);
    bench.forget_requests();
    bench.run("restore web --engine-only --tls pin").code(0);
    bench.run("restore web --list --tls pin").code(0);
    bench.run("render web --tls pin").code(0);
    portainer_received_nothing(&bench);
    assert!(!bench.state().join("pinned-certificates").exists());
}

#[test]
fn the_warning_about_tls_names_a_setting_that_ends_it() {
    let bench = Bench::web(PLAIN);
    let args = "plan web --base-url https://portainer.invalid:9443";
    let warning = "warning: TLS verification is off for https://portainer.invalid:9443; to turn it on, pass --tls pin, or write this line to ";
    bench.fails(args, &[warning, "/.config/stacklift.toml: tls = \"pin\"\n"]);
    bench.set("tls = \"pin\"\n");
    let says = "cannot reach Portainer at https://portainer.invalid:9443";
    bench.fails(args, says).hides("TLS verification is off");
}
