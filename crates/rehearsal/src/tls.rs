//! Portainer's certificate.

use std::sync::Arc;

use anyhow::Context as _;
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};

/// A certificate, and how a server presents it.
pub(super) struct Certificate {
    pub config: Arc<ServerConfig>,
    pub pem: String,
}

impl Certificate {
    /// Self-signed, ECDSA P-256, X.509 v3, with an empty issuer (M18).
    pub fn new() -> anyhow::Result<Self> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut params =
            CertificateParams::new(names).context("failed to set the names of the certificate")?;
        params.distinguished_name = DistinguishedName::new();
        let pair =
            KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("failed to create a key")?;
        let certificate = params
            .self_signed(&pair)
            .context("failed to sign the certificate")?;
        let key = PrivatePkcs8KeyDer::from(pair.serialize_der());
        let chain = vec![certificate.der().clone()];
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_no_client_auth()
                    .with_single_cert(chain, key.into())
            })
            .context("failed to set up TLS")?;
        // A resumed session does not show a new certificate.
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            pem: certificate.pem(),
        })
    }
}
