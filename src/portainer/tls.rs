//! TLS to Portainer: without verification, with the system's roots, or with the certificates of a file.
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
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
    TransportAdapter,
};

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
}

impl FromStr for Tls {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "off" => Ok(Self::Off),
            "system" => Ok(Self::System),
            "" => Err("expected `off`, `system` or a PEM file".to_owned()),
            path => Ok(Self::File(PathBuf::from(path))),
        }
    }
}

impl fmt::Display for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::System => f.write_str("system"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Tls {
    /// The configuration for rustls. Reads the PEM file or the system's roots.
    pub(super) fn config(&self) -> Result<Config> {
        let provider = Arc::new(ring::default_provider());
        let (certificates, pinned) = match self {
            Self::Off => (Vec::new(), false),
            Self::System => (rustls_native_certs::load_native_certs().certs, false),
            Self::File(path) => (read_pem(path)?, true),
        };
        let verifier = Verifier {
            roots: self.roots(&certificates, &provider)?,
            pinned: if pinned { certificates } else { Vec::new() },
            checks: *self != Self::Off,
            provider: provider.clone(),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Arc::new(config))
    }

    fn roots(
        &self,
        certificates: &[CertificateDer<'static>],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Option<Arc<WebPkiServerVerifier>>> {
        if *self == Self::Off {
            return Ok(None);
        }
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates.iter().cloned());
        if store.is_empty() {
            // A pinned certificate need not be a valid trust anchor: it is accepted if it is equal.
            return match self {
                Self::System => Err(Failure::new("the system has no certificate authorities")
                    .hint("install ca-certificates, or pass a PEM file with --tls")
                    .into()),
                _ => Ok(None),
            };
        }
        WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
            .build()
            .map(Some)
            .context("failed to use the certificates")
    }
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

/// Accepts every certificate, or pinned certificates and those that the roots verify.
#[derive(Debug)]
struct Verifier {
    checks: bool,
    pinned: Vec<CertificateDer<'static>>,
    roots: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
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
        if !self.checks || self.pinned.iter().any(|pinned| pinned == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        match &self.roots {
            Some(roots) => {
                roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            None => Err(rustls::CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if !self.checks {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if !self.checks {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Wraps a connection in TLS where the URL says `https`.
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

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConnector")
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
