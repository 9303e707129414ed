//! Signatures of outbound webhooks, by the Standard Webhooks specification
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use billing::SigningSecret;
use standardwebhooks::Webhook;

/// Returns the signature of the message `id` with the text `body`, sent at `timestamp` (Unix time in seconds). The
/// signature is `v1,` and an HMAC-SHA256 with the key `secret`, in base64.
pub fn sign_webhook(secret: &SigningSecret, id: &str, timestamp: i64, body: &str) -> String {
    // Signing cannot fail: the library accepts any key, and any body in UTF-8.
    let signature =
        Webhook::from_bytes(secret.bytes().to_vec()).and_then(|key| key.sign(id, timestamp, body.as_bytes()));
    signature.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_the_example_of_the_specification() {
        // The values are those of an example in the tests of the libraries to which the specification links.
        let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signature = sign_webhook(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
