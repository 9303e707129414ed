//! A stand-in for AWS Secrets Manager on loopback.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use axum::http::StatusCode;
use axum::{Json, Router};
use emulator::{ServerLimits, serve_http};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Starts a stand-in for Secrets Manager that responds to `GetSecretValue` for these `secrets` (name, text). Returns
/// the URL of the stand-in, for the variable `AWS_ENDPOINT_URL_SECRETS_MANAGER`.
///
/// # Panics
/// If no port is free.
pub async fn start_secrets_manager(secrets: &[(&str, &str)]) -> String {
    let secrets: BTreeMap<String, String> =
        secrets.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let respond = async move |body: String| {
        let request: Value = serde_json::from_str(&body).unwrap_or_default();
        let name = request["SecretId"].as_str().unwrap_or_default();
        match secrets.get(name) {
            Some(text) => (StatusCode::OK, Json(json!({ "Name": name, "SecretString": text }))),
            None => {
                (StatusCode::BAD_REQUEST, Json(json!({ "__type": "ResourceNotFoundException", "Message": "none" })))
            }
        }
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(serve_http(listener, Router::new().fallback(respond), ServerLimits::default()));
    url
}
