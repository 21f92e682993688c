//! Signatures of tokens by public keys (RFC 7515, 7517, 7518), checked by the library that TLS uses here. Which algorithm fits which
//! key is one table: `none` and shared secrets do not stand in it, so no public key can be taken for a secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

/// A public key as an issuer tells it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    used: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// A way to sign.
enum Way {
    Rsa(&'static RsaParameters),
    /// The key is a point of this curve.
    Point(&'static str, &'static dyn VerificationAlgorithm),
}

/// What an issuer may sign with; nothing else is a signature.
fn way(alg: &str) -> Option<Way> {
    Some(match alg {
        "RS256" => Way::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        "RS384" => Way::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        "RS512" => Way::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        "PS256" => Way::Rsa(&RSA_PSS_2048_8192_SHA256),
        "PS384" => Way::Rsa(&RSA_PSS_2048_8192_SHA384),
        "PS512" => Way::Rsa(&RSA_PSS_2048_8192_SHA512),
        "ES256" => Way::Point("P-256", &ECDSA_P256_SHA256_FIXED),
        "ES384" => Way::Point("P-384", &ECDSA_P384_SHA384_FIXED),
        "EdDSA" => Way::Point("Ed25519", &ED25519),
        _ => return None,
    })
}

/// An issuer may sign so.
pub(super) fn allowed(alg: &str) -> bool {
    way(alg).is_some()
}

fn bytes(text: Option<&String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}

impl Jwk {
    /// A header that names this algorithm and key may mean it.
    pub(super) fn fits(&self, alg: &str, kid: Option<&str>) -> bool {
        let kind = match way(alg) {
            Some(Way::Rsa(_)) => self.kty == "RSA",
            Some(Way::Point(curve, _)) => {
                let kty = if curve == "Ed25519" { "OKP" } else { "EC" };
                self.kty == kty && self.crv.as_deref() == Some(curve)
            }
            None => false,
        };
        let named = kid.is_none_or(|k| self.kid.as_deref() == Some(k));
        let signs = self.used.as_deref().is_none_or(|u| u == "sig");
        kind && named && signs && self.alg.as_deref().is_none_or(|a| a == alg)
    }

    /// It signed this message.
    pub(super) fn signed(&self, alg: &str, message: &[u8], signature: &[u8]) -> bool {
        let checked = match way(alg) {
            Some(Way::Rsa(how)) => bytes(self.n.as_ref())
                .zip(bytes(self.e.as_ref()))
                .map(|(n, e)| RsaPublicKeyComponents { n, e }.verify(how, message, signature)),
            Some(Way::Point(_, how)) => {
                self.point().map(|p| UnparsedPublicKey::new(how, p).verify(message, signature))
            }
            None => None,
        };
        checked.is_some_and(|c| c.is_ok())
    }

    fn point(&self) -> Option<Vec<u8>> {
        let x = bytes(self.x.as_ref())?;
        if self.kty == "OKP" {
            return Some(x);
        }
        // Not compressed, as SEC 1 writes it.
        Some([vec![4], x, bytes(self.y.as_ref())?].concat())
    }
}
