//! The SHA-256 fingerprint of a certificate, and the refusal of a certificate that is not the pinned one.

use std::{fmt, str::FromStr};

use ring::digest::{SHA256, digest};

use super::address::BaseUrl;

/// The length of a fingerprint, in bytes.
const LENGTH: usize = 32;

/// The SHA-256 fingerprint of a certificate in DER. Prints as `openssl x509 -fingerprint -sha256` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; LENGTH]);

impl Fingerprint {
    pub(super) fn of(der: &[u8]) -> Self {
        let mut bytes = [0; LENGTH];
        bytes.copy_from_slice(digest(&SHA256, der).as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map(|byte| format!("{byte:02X}")).join(":"))
    }
}

/// Accepts 64 hexadecimal digits. Colons between them do not matter.
impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.replace(':', "");
        if digits.len() != 2 * LENGTH || !digits.bytes().all(|one| one.is_ascii_hexdigit()) {
            return Err("a SHA-256 fingerprint has 64 hexadecimal digits".to_owned());
        }
        let mut bytes = [0; LENGTH];
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            // Only hexadecimal digits are left.
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or_default();
        }
        Ok(Self(bytes))
    }
}

/// Why a certificate is refused in the TLS handshake: it is not the pinned one.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is not the pinned one")]
pub(super) struct NotPinned {
    /// `None` if no certificate is pinned yet.
    pub(super) pinned: Option<Fingerprint>,
    pub(super) received: Fingerprint,
}

/// How a user checks a fingerprint on Portainer's own host, where no other server can respond.
pub fn how_to_compare(base_url: &BaseUrl) -> String {
    format!(
        "check that this command prints the same fingerprint on Portainer's host: `openssl s_client -connect localhost:{} </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256`",
        base_url.port()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SHA-256 of no bytes.
    const EMPTY: &str = "E3:B0:C4:42:98:FC:1C:14:9A:FB:F4:C8:99:6F:B9:24:27:AE:41:E4:64:9B:93:4C:A4:95:99:1B:78:52:B8:55";

    #[test]
    fn a_fingerprint_prints_as_openssl_does_and_both_forms_are_read() {
        let empty = Fingerprint::of(b"");
        assert_eq!(empty.to_string(), EMPTY);
        let plain = EMPTY.replace(':', "");
        for text in [EMPTY, &EMPTY.to_lowercase(), &plain, &plain.to_lowercase()] {
            assert_eq!(text.parse(), Ok(empty), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_fingerprint() {
        let plain = EMPTY.replace(':', "");
        for text in [
            "",
            ":",
            "E3",
            &plain[1..],
            &plain[2..],
            &format!("{plain}00"),
            &plain.replace('E', "G"),
            &format!("+{}", &plain[1..]),
            &format!("é{}", &plain[2..]),
        ] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }
}
