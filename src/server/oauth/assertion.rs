//! A signed text that proves who a client is (RFC 7523, `private_key_jwt`). The library that is linked for TLS signs it.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::model::CallId;
use crate::text::Secret;

/// How many seconds it is valid.
const LIFETIME: u64 = 300;
/// Names of JWT, with the size of each of the two numbers of an elliptic curve. The first one counts that the key and the
/// issuer support.
const ALGORITHMS: [(&str, SignatureScheme, Option<usize>); 6] = [
    ("ES256", SignatureScheme::ECDSA_NISTP256_SHA256, Some(32)),
    ("ES384", SignatureScheme::ECDSA_NISTP384_SHA384, Some(48)),
    ("EdDSA", SignatureScheme::ED25519, None),
    // The newer name of the same.
    ("Ed25519", SignatureScheme::ED25519, None),
    ("RS256", SignatureScheme::RSA_PKCS1_SHA256, None),
    ("PS256", SignatureScheme::RSA_PSS_SHA256, None),
];

/// Signs for the client `id`. `supported` are the algorithms of the issuer, if it names them. The error is for the user and
/// contains nothing of the key.
pub fn sign(key: &Secret, id: &str, issuer: &str, supported: Option<&[Value]>) -> Result<Secret, String> {
    let pem = with_lines(key.reveal());
    if pem.contains("ENCRYPTED") {
        return Err("it is encrypted with a passphrase; store a key without one".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| "it is not a private key in PEM format (`-----BEGIN PRIVATE KEY-----`)".to_owned())?;
    let key = any_supported_type(&key)
        .map_err(|_| "this kind of key is not supported; use P-256, P-384, Ed25519 or RSA".to_owned())?;
    let is_wanted = |name: &str| supported.is_none_or(|names| names.iter().any(|each| each == name));
    let usable = ALGORITHMS.into_iter().filter(|(name, ..)| is_wanted(name));
    let (name, signer, size) = usable
        .filter_map(|(name, scheme, size)| Some((name, key.choose_scheme(&[scheme])?, size)))
        .next()
        .ok_or("the issuer does not support any signature of this kind of key")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let header = json!({ "alg": name, "typ": "JWT" });
    let claims = json!({
        "iss": id, "sub": id, "aud": issuer, "jti": &*CallId::random().0, "iat": now, "exp": now + LIFETIME,
    });
    let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
    let failed = || "it cannot sign".to_owned();
    let signature = signer.sign(signed.as_bytes()).map_err(|_| failed())?;
    let signature = match size {
        Some(size) => plain_numbers(&signature, size).ok_or_else(failed)?,
        None => signature,
    };
    Ok(Secret::replacing(&format!("assertion of {id}"), format!("{signed}.{}", encoded(signature))))
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// PEM with its line breaks, which are lost or escaped where a value is one line.
fn with_lines(written: &str) -> String {
    let text = written.replace("\\n", "\n");
    let parts: Vec<&str> = text.trim().split("-----").collect();
    match parts.as_slice() {
        [_, begin, body, end, ..] if !text.trim().contains('\n') => {
            let body = body.split_whitespace().collect::<Vec<_>>().join("\n");
            format!("-----{begin}-----\n{body}\n-----{end}-----\n")
        }
        _ => text,
    }
}

/// The two numbers of a signature side by side, as JWT wants them, instead of in ASN.1.
fn plain_numbers(signature: &[u8], size: usize) -> Option<Vec<u8>> {
    let (numbers, _) = element(signature, 0x30)?;
    let (first, rest) = element(numbers, 0x02)?;
    let (second, _) = element(rest, 0x02)?;
    let mut plain = Vec::with_capacity(2 * size);
    for number in [first, second] {
        let digits =
            number.iter().position(|byte| *byte != 0).and_then(|start| number.get(start..)).unwrap_or_default();
        plain.resize(plain.len() + size.checked_sub(digits.len())?, 0);
        plain.extend_from_slice(digits);
    }
    Some(plain)
}

/// The content of an ASN.1 element with this tag, and what follows. These are shorter than 128 bytes.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(2)?;
    let [found, length @ 0..128] = *head else { return None };
    (found == tag).then(|| rest.split_at_checked(length.into()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made for this test.
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyGCylE2rnFryOx+1\n\
        dN5SfMBfc8tUI4a6iuAGzShkknChRANCAAQJdTASvJxA8Sr5i7dqYCRg7cIt8PNa\n\
        l+DaKkltdJQemIMH2xgH4E48/rfqI0RGbGP0s1kK0fVNEB5pP+jAXbAk\n\
        -----END PRIVATE KEY-----\n";

    fn part(text: &Secret, index: usize) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text.reveal().split('.').nth(index).unwrap()).unwrap()
    }

    #[test]
    fn a_signature_of_an_elliptic_curve_has_a_fixed_size() {
        // The first number is short, the second has a leading zero because its first bit is set.
        let signature = [0x30, 0x08, 0x02, 0x01, 0x07, 0x02, 0x03, 0x00, 0x80, 0x01];
        assert_eq!(plain_numbers(&signature, 4).unwrap(), [0, 0, 0, 7, 0, 0, 0x80, 1]);
        for (length, size) in [(10, 1), (9, 4), (3, 4), (0, 4)] {
            assert_eq!(plain_numbers(signature.get(..length).unwrap(), size), None, "{length} {size}");
        }
    }

    #[test]
    fn a_key_signs_for_its_client_also_if_it_has_lost_its_lines() {
        for written in [KEY.to_owned(), KEY.replace('\n', "\\n"), KEY.replace('\n', " "), KEY.replace('\n', "\r\n")] {
            let text = sign(&Secret::plain(written), "machine", "https://issuer.test", None).unwrap();
            assert_eq!(part(&text, 0), br#"{"alg":"ES256","typ":"JWT"}"#);
            let claims: Value = serde_json::from_slice(&part(&text, 1)).unwrap();
            assert_eq!((&claims["iss"], &claims["sub"]), (&json!("machine"), &json!("machine")));
            assert_eq!(claims["aud"], "https://issuer.test");
            assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), LIFETIME);
            assert_eq!(part(&text, 2).len(), 64);
        }
        let supported = [json!("RS256"), json!("ES256")];
        assert!(sign(&Secret::plain(KEY), "machine", "i", Some(&supported)).is_ok());
        let none = sign(&Secret::plain(KEY), "machine", "i", Some(&[json!("RS256")])).unwrap_err();
        assert_eq!(none, "the issuer does not support any signature of this kind of key");
    }

    #[test]
    fn what_is_not_a_key_is_refused_without_showing_it() {
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for (written, expected) in [
            ("the-value-of-a-key", "it is not a private key in PEM format (`-----BEGIN PRIVATE KEY-----`)"),
            (encrypted, "it is encrypted with a passphrase; store a key without one"),
            (
                "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
                "this kind of key is not supported; use P-256, P-384, Ed25519 or RSA",
            ),
        ] {
            assert_eq!(sign(&Secret::plain(written), "machine", "i", None), Err(expected.to_owned()));
        }
    }
}
