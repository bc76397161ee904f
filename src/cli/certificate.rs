//! The pinned certificate of Portainer (`--tls pin`): accepted once, then the only one that is
//! accepted.

use anyhow::Result;

use super::{
    confirm::is_on_terminal,
    console::Console,
    settings::{Settings, state_folder},
};
use crate::{
    failure::Failure,
    portainer::{Fingerprint, Portainer, Tls, how_to_compare},
    snapshot::{pin_of, set_pin},
};

/// The certificate that `--tls pin` accepts, and `None` for another `--tls`. At the first use, asks on a terminal whether to
/// trust the certificate that the server presents, and fails without a terminal or without a console to ask on. Only a
/// handshake is sent for that, and never the API key.
pub(super) fn pinned(
    settings: &Settings,
    console: Option<&Console>,
) -> Result<Option<Fingerprint>> {
    let base_url = &settings.base_url;
    let (Tls::Pin(accepted), true) = (&settings.tls, base_url.is_https()) else {
        return Ok(None);
    };
    let (state, server) = (state_folder()?, base_url.host_and_port());
    let invalid = |reason: String| {
        let state = state.display();
        Failure::new(format!(
            "cannot parse the pinned certificate of {server} in {state}: {reason}"
        ))
    };
    let stored: Option<Fingerprint> = pin_of(&state, &server)?
        .map(|pin| pin.parse())
        .transpose()
        .map_err(invalid)?;
    // `--tls` may accept another one.
    if stored.is_some() && accepted.is_none_or(|accepted| stored == Some(accepted)) {
        return Ok(stored);
    }
    let Some(console) = console else {
        let what = format!("the certificate of Portainer at {base_url} is not pinned yet");
        let hint =
            "to pin it, run on a terminal, with the same settings: `stacklift list --tls pin`";
        return Err(Failure::new(what).hint(hint).into());
    };
    let received = Portainer::certificate(base_url, settings.timeout)?;
    match accepted {
        Some(accepted) if *accepted == received => {}
        Some(accepted) => {
            let what = format!(
                "the certificate of Portainer at {base_url} does not match --tls: expected the SHA-256 fingerprint {accepted}, received {received}; it was not pinned, and the API key was not sent"
            );
            return Err(Failure::new(what).hint(how_to_compare(base_url)).into());
        }
        None => ask(settings, received, console)?,
    }
    set_pin(&state, &server, &received.to_string())?;
    console.note(&format!("pinned the certificate of {server}"));
    Ok(Some(received))
}

fn ask(settings: &Settings, received: Fingerprint, console: &Console) -> Result<()> {
    let base_url = &settings.base_url;
    let compare = how_to_compare(base_url);
    if !is_on_terminal() {
        let what = format!(
            "the certificate of Portainer at {base_url} is not pinned yet, and there is no terminal to ask on: its SHA-256 fingerprint is {received}; the API key was not sent"
        );
        let hint = format!(
            "{compare}; then pass --tls sha256:{received}, or pin the certificate with --tls pin:{received}"
        );
        return Err(Failure::new(what).hint(hint).into());
    }
    console.warning(&format!(
        "the certificate of Portainer at {base_url} is not pinned yet\nSHA-256 fingerprint: {received}\n{compare}"
    ));
    if console.ask("trust this certificate from now on?") {
        return Ok(());
    }
    let what = format!(
        "canceled: the certificate of Portainer at {base_url} was not accepted, and the API key was not sent"
    );
    let hint = "run the command again to accept it";
    Err(Failure::new(what).hint(hint).into())
}
