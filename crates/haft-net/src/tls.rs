//! Trust in servers: the system's roots, or the bundled ones where the system has none.
//!
//! **Invariant:** roots are loaded at the first handshake, not before, because a client that only
//! talks to `http:` addresses must not pay for them. Certificates are always verified.

use std::sync::{Arc, OnceLock};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// The client side of TLS, with HTTP/2 offered first.
pub(crate) fn client_config() -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = LazyRoots { provider: provider.clone(), inner: OnceLock::new() };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifies as the platform does, and loads its roots when the first certificate arrives.
#[derive(Debug)]
struct LazyRoots {
    provider: Arc<CryptoProvider>,
    inner: OnceLock<Result<Arc<dyn ServerCertVerifier>, Error>>,
}

impl LazyRoots {
    fn verifier(&self) -> Result<&Arc<dyn ServerCertVerifier>, Error> {
        self.inner.get_or_init(|| roots(&self.provider)).as_ref().map_err(Clone::clone)
    }
}

fn roots(provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    if let Ok(verifier) = rustls_platform_verifier::Verifier::new(provider.clone()) {
        return Ok(Arc::new(verifier));
    }
    let bundled = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let verifier = WebPkiServerVerifier::builder_with_provider(bundled.into(), provider.clone())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    Ok(verifier)
}

impl ServerCertVerifier for LazyRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_none_is_refused() {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let lazy = LazyRoots { provider, inner: OnceLock::new() };
        assert!(lazy.inner.get().is_none());
        let name = ServerName::try_from("example.org").unwrap();
        let junk = CertificateDer::from(vec![1, 2, 3]);
        assert!(lazy.verify_server_cert(&junk, &[], &name, &[], UnixTime::now()).is_err());
        assert!(matches!(lazy.inner.get(), Some(Ok(_))));
    }

    #[test]
    fn http2_is_offered() {
        assert_eq!(client_config().unwrap().alpn_protocols[0], b"h2");
    }
}
