//! Signatures of what is delivered, by the Standard Webhooks specification
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use billing::Secret;
use standardwebhooks::Webhook;

/// The signature of the message `id` by `secret`, sent at `timestamp` (seconds since 1970): `v1,` and an HMAC-SHA256 in base64.
pub fn sign(secret: &Secret, id: &str, timestamp: i64, body: &str) -> String {
    // The library takes any key, and bodies that are text.
    let signed = Webhook::from_bytes(secret.bytes().to_vec()).and_then(|key| key.sign(id, timestamp, body.as_bytes()));
    signed.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_is_what_the_specification_says() {
        // The example of the specification's own libraries.
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let signed = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
