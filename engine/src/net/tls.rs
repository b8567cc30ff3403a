//! TLS for connections: rustls without I/O, and whom to trust.

use model::{Fault, FaultClass};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trust {
    /// The certificate authorities this system trusts.
    #[default]
    System,
    /// The authorities in this PEM file, and no others.
    File(PathBuf),
    /// Anybody: only for tests, and only if the user said so.
    Anybody,
}

/// Makes TLS connections to one host.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// Prepares connections to whoever proves to be `host`, offering these protocols (ALPN). The
    /// error is advice for the user.
    pub fn new(trust: &Trust, host: &str, alpn: &[&str]) -> Result<Tls, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("`{host}` is neither a host name nor an address"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let mut config = match trust {
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Credulous(provider)))
                .with_no_client_auth(),
            Trust::System => builder.with_root_certificates(system()?).with_no_client_auth(),
            Trust::File(path) => builder.with_root_certificates(file(path)?).with_no_client_auth(),
        };
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Tls { config: Arc::new(config), name })
    }

    /// A connection that has not begun its handshake.
    pub(crate) fn connection(&self) -> Result<Box<ClientConnection>, Fault> {
        ClientConnection::new(self.config.clone(), self.name.clone())
            .map(Box::new)
            .map_err(|error| Fault::new(FaultClass::Tls, error.to_string()))
    }
}

fn system() -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        return Err("this system has no trusted certificate authorities; install the package \
                    ca-certificates or give a file with --ca FILE"
            .into());
    }
    Ok(store)
}

fn file(path: &PathBuf) -> Result<RootCertStore, String> {
    let unreadable = |error| format!("{}: {error}; --ca needs a PEM file", path.display());
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
        let certificate = certificate.map_err(unreadable)?;
        store.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match store.is_empty() {
        true => Err(format!("{}: no certificate in it", path.display())),
        false => Ok(store),
    }
}

/// Believes every certificate, but still checks that the peer holds its key.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
