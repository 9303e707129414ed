//! A fake `aws` program, which prints files as responses, and a DynamoDB server on the embedded engine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use emulator::{Engine, ServerLimits};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The fake `aws` program, a shell script. It prints a file as the response to a request. The name of the file consists
/// of the service and the operation; for a secret or a queue, the last part of its ARN or URL follows. If there is no
/// such file, the program fails as if the permission were missing. It records each request in the file `requests`.
const AWS_PROGRAM_STAND_IN: &str = r#"#!/bin/sh
folder="${0%/*}"
echo "$AWS_REGION $*" >> "$folder/requests"
name="$1.$2"
for argument in "$@"; do
  case "$argument" in
    arn:*:secret:*) name="$name.${argument##*:}";;
    https://sqs.*) name="$name.${argument##*/}";;
  esac
done
if [ -f "$folder/$name.json" ]; then cat "$folder/$name.json"; exit 0; fi
if [ -f "$folder/$name.error" ]; then cat "$folder/$name.error" >&2; exit 254; fi
echo "An error occurred (AccessDeniedException) when calling the $2 operation: User: arn:aws:iam::123456789012:user/mary is not authorized to perform: $1:$2 on resource: *" >&2
exit 254
"#;

/// Writes the fake program `aws` into `folder`.
pub fn install_aws(folder: &Path) {
    let program = folder.join("aws");
    fs::write(&program, AWS_PROGRAM_STAND_IN).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Sets the response to the request `name`, such as `sns.list-subscriptions-by-topic`.
pub fn set_response(folder: &Path, name: &str, response: &Value) {
    fs::write(folder.join(format!("{name}.json")), response.to_string()).unwrap();
}

/// Sets the response to a request for the secret whose ARN ends with `name`.
pub fn set_secret(folder: &Path, name: &str, text: &str) {
    let secret =
        json!({"ARN": format!("arn:aws:secretsmanager:eu-west-1:123456789012:secret:{name}"), "SecretString": text});
    set_response(folder, &format!("secretsmanager.get-secret-value.{name}"), &secret);
}

/// Serves `engine` like DynamoDB, on a free port. Adds the descriptions of the backups and of the deletion protection,
/// which the engine does not have. Both are on if `is_protected` is true. Returns the URL.
pub async fn serve_dynamodb(engine: Engine, is_protected: bool) -> String {
    let respond = move |headers: HeaderMap, body: Bytes| async move {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        if operation == "DescribeContinuousBackups" {
            let status = if is_protected { "ENABLED" } else { "DISABLED" };
            let backups = json!({"ContinuousBackupsDescription": {
                "ContinuousBackupsStatus": "ENABLED",
                "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": status},
            }});
            return (StatusCode::OK, backups.to_string());
        }
        match engine.execute(operation, &serde_json::from_slice(&body).unwrap()) {
            Ok(mut response) => {
                if operation == "DescribeTable" {
                    response["Table"]["DeletionProtectionEnabled"] = is_protected.into();
                }
                (StatusCode::OK, response.to_string())
            }
            Err(error) => (StatusCode::BAD_REQUEST, error),
        }
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(emulator::serve_http(listener, Router::new().route("/", post(respond)), ServerLimits::default()));
    url
}
