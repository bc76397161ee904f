//! Portainer's certificate, which can be replaced while the server runs.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use anyhow::Context as _;
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// The current certificate.
pub(super) struct Certificate(RwLock<Issued>);

#[derive(Clone)]
struct Issued {
    key: Arc<CertifiedKey>,
    pem: String,
}

impl Certificate {
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(RwLock::new(Issued::new()?)))
    }

    /// Replaces it for new connections.
    pub fn renew(&self) -> anyhow::Result<()> {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Issued::new()?;
        Ok(())
    }

    /// The certificate in PEM.
    pub fn pem(&self) -> String {
        self.issued().pem
    }

    fn issued(&self) -> Issued {
        let issued = self.0.read().unwrap_or_else(PoisonError::into_inner);
        issued.clone()
    }
}

impl Issued {
    fn new() -> anyhow::Result<Self> {
        let (certificate, pair) = self_signed()?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.serialize_der()));
        let chain = vec![certificate.der().clone()];
        let key = CertifiedKey::from_der(chain, private, &ring::default_provider())
            .context("failed to set up TLS")?;
        Ok(Self {
            key: Arc::new(key),
            pem: certificate.pem(),
        })
    }
}

/// A certificate: self-signed, ECDSA P-256, X.509 v3, with an empty issuer (M18).
pub(super) fn self_signed() -> anyhow::Result<(rcgen::Certificate, KeyPair)> {
    let names = [
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let mut params =
        CertificateParams::new(names).context("failed to set the names of the certificate")?;
    params.distinguished_name = DistinguishedName::new();
    let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("failed to create a key")?;
    let certificate = params
        .self_signed(&pair)
        .context("failed to sign the certificate")?;
    Ok((certificate, pair))
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.issued().key)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate")
    }
}

/// A server configuration with that certificate.
pub(super) fn config(certificate: Arc<Certificate>) -> anyhow::Result<Arc<ServerConfig>> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("failed to set up TLS")?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    // A resumed session does not show a new certificate.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
