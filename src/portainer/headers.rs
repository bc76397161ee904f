//! Further headers of each request, for a proxy in front of Portainer that authenticates its clients (`--header-file`).

use std::{fmt, str::FromStr};

use ureq::http::{HeaderMap, HeaderName, HeaderValue};

/// Headers that stacklift sets itself, or that would change how a message is read.
const RESERVED: [&str; 13] = [
    "x-api-key",
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "accept",
    "accept-encoding",
];

/// With the cookie of its own page, Portainer expects a token besides the API key (N21).
const PORTAINERS_COOKIE: &str = "portainer_api_key=";

/// Names and secret values. `Debug` shows neither.
#[derive(Clone, Default)]
pub struct Headers(Vec<(HeaderName, HeaderValue)>);

impl Headers {
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.0 {
            headers.append(name, value.clone());
        }
    }

    /// What to do about a response with 403, if one of them may be the cause (N21).
    pub(super) fn hint_for_403(&self) -> Option<&'static str> {
        let has = |header: &str| self.0.iter().any(|(name, _)| name == header);
        if has("authorization") {
            Some(
                "Portainer refuses an API key together with an Authorization header: configure the proxy to remove the one in --header-file, or to accept another header",
            )
        } else {
            has("cookie").then_some(
                "Portainer may check the origin of this request because of the Cookie in --header-file: configure the proxy to accept another header",
            )
        }
    }

    /// What no output may show: each value, and each word of it, such as the token after `Bearer` or a cookie's value.
    pub fn secrets(&self) -> Vec<&str> {
        let values = self.0.iter().filter_map(|(_, value)| value.to_str().ok());
        let mut secrets = Vec::new();
        for value in values {
            secrets.push(value);
            for word in value.split([' ', '\t', ';', ',']) {
                secrets.push(word);
                secrets.extend(word.split_once('=').map(|(_, value)| value));
            }
        }
        secrets
    }
}

/// Reads one header per line. Blank lines and lines that start with `#` are ignored. The error names the line, and never
/// its text.
impl FromStr for Headers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut headers = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            headers.push(header(line).map_err(|problem| format!("line {}: {problem}", at + 1))?);
        }
        Ok(Self(headers))
    }
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = line.split_once(':').ok_or("expected `Name: value`")?;
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| "the name of the header is not valid; expected `Name: value`")?;
    if let Some(reserved) = RESERVED.iter().find(|reserved| name == **reserved) {
        return Err(format!("the header `{reserved}` cannot be set"));
    }
    let value = value.trim();
    let mut cookies = value.split(';').map(str::trim);
    if name == "cookie" && cookies.any(|cookie| cookie.starts_with(PORTAINERS_COOKIE)) {
        return Err(
            "`portainer_api_key` is Portainer's own cookie: Portainer refuses it beside an API key"
                .to_owned(),
        );
    }
    if value.is_empty() {
        return Err("the value of the header is empty".to_owned());
    }
    let mut value = HeaderValue::from_str(value)
        .ok()
        .filter(|value| value.to_str().is_ok())
        .ok_or("the value contains a character that is not allowed in an HTTP header")?;
    value.set_sensitive(true);
    Ok((name, value))
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Headers({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_header() {
        let text = "# for the proxy\r\n\r\nCF-Access-Client-Id: abc.access\r\n  Authorization:Bearer t0ken:x \n\nCookie: a=one1; b=two2";
        let headers: Headers = text.parse().expect("headers");
        let mut map = HeaderMap::new();
        headers.add_to(&mut map);
        assert_eq!(map.len(), 3);
        assert_eq!(map["cf-access-client-id"], "abc.access");
        assert_eq!(map["authorization"], "Bearer t0ken:x");
        assert_eq!(format!("{headers:?}"), "Headers(3)");
        assert_eq!(format!("{:?}", map["cookie"]), "Sensitive");
        let secrets = headers.secrets();
        for secret in ["abc.access", "Bearer t0ken:x", "t0ken:x", "one1", "two2"] {
            assert!(secrets.contains(&secret), "{secret}");
        }
    }

    #[test]
    fn an_error_names_the_line_and_not_its_text() {
        for (line, problem) in [
            ("hunter2", "expected `Name: value`"),
            (": hunter2", "the name of the header is not valid"),
            ("X Y: hunter2", "the name of the header is not valid"),
            ("X-Token : hunter2", "the name of the header is not valid"),
            ("é: hunter2", "the name of the header is not valid"),
            ("X-Token:", "the value of the header is empty"),
            ("X-Token: hunter2\u{7}", "the value contains a character"),
            ("X-Token: hunter2é", "the value contains a character"),
            ("x-api-KEY: hunter2", "`x-api-key` cannot be set"),
            ("Host: hunter2", "`host` cannot be set"),
            (
                "Cookie: a=b; portainer_api_key=hunter2",
                "is Portainer's own cookie",
            ),
            ("Content-Length: hunter2", "`content-length` cannot be set"),
        ] {
            let error = format!("# one\n\n{line}\n")
                .parse::<Headers>()
                .expect_err(line);
            assert!(error.starts_with("line 3: "), "{error}");
            assert!(error.contains(problem), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
