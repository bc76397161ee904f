//! Portainer's certificate.

use std::sync::Arc;

use anyhow::Context as _;
use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};

/// A server configuration with a new certificate, and that certificate in PEM.
///
/// The certificate is self-signed, ECDSA P-256, X.509 v3, with an empty issuer (M18).
pub(super) fn self_signed() -> anyhow::Result<(Arc<ServerConfig>, String)> {
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
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("failed to set up TLS")?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .context("failed to set up TLS")?;
    Ok((Arc::new(config), certificate.pem()))
}
