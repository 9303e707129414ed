//! Signs requests with AWS Signature Version 4, for a gateway that AWS IAM protects: the sandbox gateway of a stack,
//! which has a Lambda function URL ("Invoking Lambda function URLs" in the Lambda developer guide).

use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use chrono::{DateTime, Utc};
use reqwest::header::{HeaderName, HeaderValue};

use crate::GatewayError;

/// The service name of AWS Lambda, which is a part of the signature.
const SIGNED_AWS_SERVICE: &str = "lambda";

/// Signs requests with the credentials of the function that sends them.
#[derive(Clone, Debug)]
pub struct IamSigner {
    credentials: SharedCredentialsProvider,
    region: String,
}

impl IamSigner {
    /// Creates a signer for requests to the AWS region `region`. The signer gets the credentials from `credentials`
    /// again for each request, because the credentials of a Lambda function expire.
    pub fn new(credentials: SharedCredentialsProvider, region: impl Into<String>) -> Self {
        Self { credentials, region: region.into() }
    }

    /// Signs `request` at the time `at`: adds the headers that contain the signature.
    pub(crate) async fn sign(&self, request: &mut reqwest::Request, at: DateTime<Utc>) -> Result<(), GatewayError> {
        let credentials = self.credentials.provide_credentials().await.map_err(unusable_gateway_error)?;
        let identity = credentials.into();
        let params = SigningParams::builder().identity(&identity).region(&self.region).name(SIGNED_AWS_SERVICE);
        let params =
            params.time(at.into()).settings(SigningSettings::default()).build().map_err(unusable_gateway_error)?.into();
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let (method, url) = (request.method().as_str(), request.url().as_str());
        let signable = SignableRequest::new(method, url, std::iter::empty(), SignableBody::Bytes(body));
        let (instructions, _) =
            sign(signable.map_err(unusable_gateway_error)?, &params).map_err(unusable_gateway_error)?.into_parts();
        for (name, value) in instructions.headers() {
            let name = HeaderName::try_from(name).map_err(unusable_gateway_error)?;
            let mut value = HeaderValue::try_from(value).map_err(unusable_gateway_error)?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Ok(())
    }
}

/// Returns the error for a request that cannot be signed because of `error`.
fn unusable_gateway_error(error: impl std::fmt::Display) -> GatewayError {
    GatewayError::Unusable { reason: format!("the request cannot be signed with AWS credentials: {error}") }
}

#[cfg(test)]
mod tests {
    use aws_credential_types::Credentials;

    use super::*;

    #[tokio::test]
    async fn iam_signature_equals_the_signature_of_another_implementation() {
        let credentials =
            Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", Some("TOKEN".to_owned()), None, "test");
        let signer = IamSigner::new(SharedCredentialsProvider::new(credentials), "eu-west-1");
        let http = reqwest::Client::new();
        // These signatures were computed by another implementation (botocore's SigV4Auth).
        for (request, expected) in [
            (
                http.get(
                    "https://abc.lambda-url.eu-west-1.on.aws/v1/payments?since=2027-01-30T00%3A00%3A00Z&customer=cus_1",
                ),
                "e401182aba9888be10458d5943f22d86d22e262af5513ac8f1b8e85383901e74",
            ),
            (
                http.post("https://abc.lambda-url.eu-west-1.on.aws/v1/refunds").body(r#"{"refund":"R"}"#),
                "5c05a53fe7d180382b457767e04f89d5e7ba7981bcacab0c2685f206e62a991a",
            ),
        ] {
            let mut request = request.build().unwrap();
            signer.sign(&mut request, DateTime::from_timestamp(1_800_000_000, 0).unwrap()).await.unwrap();
            let header = |name: &str| request.headers()[name].to_str().unwrap();
            assert_eq!(header("x-amz-security-token"), "TOKEN");
            assert_eq!(header("x-amz-date"), "20270115T080000Z");
            let authorization = header("authorization");
            let scope = "Credential=AKIDEXAMPLE/20270115/eu-west-1/lambda/aws4_request";
            assert!(authorization.starts_with("AWS4-HMAC-SHA256 ") && authorization.contains(scope), "{authorization}");
            assert!(authorization.ends_with(&format!("Signature={expected}")), "{authorization}");
        }
    }
}
