//! TLS to Portainer: without verification, with the system's roots, with the certificates of a file, or with one pinned
//! certificate.
//!
//! ureq 3 accepts no certificate verifier, so this module implements a connector of ureq's `unversioned`
//! transport traits. They are the reason for the exact version of ureq in Cargo.toml.

use std::{
    fmt,
    io::{Read, Write},
    path::PathBuf,
    str::FromStr,
    sync::Arc,
};

use anyhow::{Context, Result};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError,
    RootCertStore, SignatureScheme, StreamOwned,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

use super::certificate::{Fingerprint, NotPinned};
use crate::failure::Failure;

type Config = Arc<ClientConfig>;

/// How Portainer's certificate is verified (`--tls`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// Not at all: the default, meant for loopback.
    Off,
    /// Against the system's certificate authorities.
    System,
    /// Against the certificates of a PEM file: authorities, or Portainer's own certificate.
    File(PathBuf),
    /// Against the certificate that was accepted at the first use. A fingerprint accepts that certificate now, in place of
    /// the one that was accepted before.
    Pin(Option<Fingerprint>),
    /// Against the certificate with this fingerprint.
    Fingerprint(Fingerprint),
}

impl FromStr for Tls {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let fingerprint = |of| lower.strip_prefix(of).map(Fingerprint::from_str);
        match lower.as_str() {
            "off" => Ok(Self::Off),
            "system" => Ok(Self::System),
            "pin" => Ok(Self::Pin(None)),
            "" => Err("expected `off`, `system`, `pin`, `sha256:…` or a PEM file".to_owned()),
            _ => match (fingerprint("sha256:"), fingerprint("pin:")) {
                (Some(given), _) => given.map(Self::Fingerprint),
                (_, Some(accepted)) => accepted.map(|accepted| Self::Pin(Some(accepted))),
                _ => Ok(Self::File(PathBuf::from(text))),
            },
        }
    }
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::System => f.write_str("system"),
            Self::File(path) => path.display().fmt(f),
            Self::Pin(None) => f.write_str("pin"),
            Self::Pin(Some(accepted)) => write!(f, "pin:{accepted}"),
            Self::Fingerprint(given) => write!(f, "sha256:{given}"),
        }
    }
}

impl Tls {
    /// The configuration for rustls. Reads the PEM file or the system's roots. `pin` is the certificate that [`Self::Pin`]
    /// accepts; without it, [`Self::Pin`] accepts none.
    pub(super) fn config(&self, pin: Option<Fingerprint>) -> Result<Config> {
        let provider = Arc::new(ring::default_provider());
        let trusted = match self {
            Self::Off => Trusted::Any,
            Self::System => {
                let authorities = rustls_native_certs::load_native_certs().certs;
                let roots = roots(&authorities, &provider)?.ok_or_else(|| {
                    Failure::new("the system has no certificate authorities")
                        .hint("install ca-certificates, or pass a PEM file with --tls")
                })?;
                Trusted::Known(Vec::new(), Some(roots))
            }
            Self::File(path) => {
                let certificates = read_pem(path)?;
                // A certificate need not be a valid trust anchor: it is accepted if it is equal.
                let authorities = roots(&certificates, &provider)?;
                Trusted::Known(certificates, authorities)
            }
            Self::Pin(_) => Trusted::Only(pin),
            Self::Fingerprint(given) => Trusted::Only(Some(*given)),
        };
        let verifier = Verifier {
            trusted,
            algorithms: provider.signature_verification_algorithms,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

/// A verifier with these authorities; `None` if none of them can be one.
fn roots(
    authorities: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(authorities.iter().cloned());
    if store.is_empty() {
        return Ok(None);
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
        .build()
        .map(Some)
        .context("failed to use the certificates")
}

fn read_pem(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>> {
    let what = || {
        format!(
            "failed to read the certificates of --tls {}",
            path.display()
        )
    };
    let pem = std::fs::read(path).with_context(what)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .with_context(what)?;
    if certificates.is_empty() {
        return Err(
            Failure::new(format!("{} contains no certificate", path.display()))
                .hint("--tls accepts `off`, `system`, or a PEM file with certificates")
                .into(),
        );
    }
    Ok(certificates)
}

/// Which certificates are accepted.
#[derive(Debug)]
enum Trusted {
    Any,
    /// These, and those that the authorities verify.
    Known(
        Vec<CertificateDer<'static>>,
        Option<Arc<WebPkiServerVerifier>>,
    ),
    /// The one with this fingerprint, or none.
    Only(Option<Fingerprint>),
}

/// Verifies the certificate, and that the server has its key: the signature of the handshake.
#[derive(Debug)]
struct Verifier {
    trusted: Trusted,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.trusted {
            Trusted::Any => Ok(ServerCertVerified::assertion()),
            Trusted::Known(certificates, _)
                if certificates.iter().any(|known| known == end_entity) =>
            {
                Ok(ServerCertVerified::assertion())
            }
            Trusted::Known(_, Some(roots)) => {
                roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            Trusted::Known(_, None) => Err(CertificateError::UnknownIssuer.into()),
            &Trusted::Only(pinned) => {
                let received = Fingerprint::of(end_entity);
                if pinned == Some(received) {
                    return Ok(ServerCertVerified::assertion());
                }
                let refused = NotPinned { pinned, received };
                Err(CertificateError::Other(OtherError(Arc::new(refused))).into())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if matches!(self.trusted, Trusted::Any) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if matches!(self.trusted, Trusted::Any) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Wraps a connection in TLS where the URL says `https`.
#[derive(Debug)]
pub(super) struct TlsConnector(pub(super) Config);

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
            .map_err(|_| ureq::Error::HostNotFound)?;
        let mut conn = ClientConnection::new(self.0.clone(), name)
            .map_err(|error| ureq::Error::Other(Box::new(error)))?;
        let mut sock = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        sock.set_timeout(details.timeout);
        conn.complete_io(&mut sock)?;
        let buffers = LazyBuffers::new(
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        Ok(Some(Either::B(TlsTransport {
            buffers,
            stream: StreamOwned { conn, sock },
        })))
    }
}

/// A connection under TLS.
pub(super) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsTransport")
    }
}

#[cfg(test)]
mod tests {
    use rustls::{
        ServerConfig, ServerConnection,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    };

    use super::*;

    /// A server with a certificate, and the private key of that certificate or another one.
    #[derive(Debug)]
    struct Server(Arc<CertifiedKey>);

    impl ResolvesServerCert for Server {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(self.0.clone())
        }
    }

    /// The outcome of a handshake in memory.
    fn handshake(
        client: &Config,
        server: Server,
        version: &'static rustls::SupportedProtocolVersion,
    ) -> Result<(), rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(server));
        let mut server = ServerConnection::new(Arc::new(config)).expect("a server");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut client = ClientConnection::new(client.clone(), name).expect("a client");
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).expect("written");
            server.read_tls(&mut bytes.as_slice()).expect("read");
            server.process_new_packets()?;
            let mut bytes = Vec::new();
            server.write_tls(&mut bytes).expect("written");
            client.read_tls(&mut bytes.as_slice()).expect("read");
            client.process_new_packets()?;
        }
        Ok(())
    }

    #[test]
    fn a_server_without_the_key_of_the_pinned_certificate_is_refused() {
        let [own, other] = ["own", "other"].map(|name| {
            rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate")
        });
        let der = own.cert.der().clone();
        let [own, other] = [own, other].map(|one| one.signing_key.serialize_der());
        let server = |key: &[u8]| {
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
            let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key");
            Server(Arc::new(CertifiedKey::new(vec![der.clone()], key)))
        };
        let given = Tls::Fingerprint(Fingerprint::of(&der)).config(None);
        let pinned = Tls::Pin(None).config(Some(Fingerprint::of(&der)));
        let unpinned = Tls::Pin(None).config(None).expect("a configuration");
        let off = Tls::Off.config(None).expect("a configuration");
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            for client in [&given, &pinned] {
                let client = client.as_ref().expect("a configuration");
                handshake(client, server(&own), version).expect("accepted");
                let error = handshake(client, server(&other), version).expect_err("refused");
                assert_eq!(error, CertificateError::BadSignature.into());
            }
            handshake(&unpinned, server(&own), version).expect_err("refused");
            // The default verifies nothing.
            handshake(&off, server(&other), version).expect("accepted");
        }
    }

    #[test]
    fn each_mode_is_read_and_printed() {
        let digits = "ab".repeat(32);
        let shown = vec!["AB"; 32].join(":");
        for (text, printed) in [
            ("off", "off".to_owned()),
            ("system", "system".to_owned()),
            ("pin", "pin".to_owned()),
            ("/a/b.pem", "/a/b.pem".to_owned()),
            ("./pin", "./pin".to_owned()),
            (&format!("sha256:{digits}"), format!("sha256:{shown}")),
            (&format!("pin:{shown}"), format!("pin:{shown}")),
        ] {
            let tls: Tls = text.parse().expect(text);
            assert_eq!(tls.to_string(), printed);
            assert_eq!(printed.parse(), Ok(tls));
        }
        for text in ["", "sha256:", "sha256:ab", "pin:", "pin:nas.pem"] {
            assert!(text.parse::<Tls>().is_err(), "{text}");
        }
    }
}
