//! Tests of the command `dueday token`, and of the public key of its tokens.

use chrono::{DateTime, Utc};
use reqwest::Method;
use serde_json::{Value, json};

use super::server::Server;
use crate::terminal::{dueday, output};

#[tokio::test]
async fn token_of_a_subject_is_valid_for_the_account_of_this_subject() {
    let server = Server::start();
    let mut command = dueday(server.data());
    command.args(["token", "--account", "auth0|123456", "--hours", "2", "--json"]);
    let (code, stdout, stderr) = output(&mut command);
    let created: Value = serde_json::from_str(&stdout).unwrap();
    let account = "sha256-59b4f4f5e80f5eb398cfab577367bb25";
    assert_eq!((code, &created["account"]), (0, &account.into()), "{stdout}{stderr}");
    let expires_at: DateTime<Utc> = created["expires_at"].as_str().unwrap().parse().unwrap();
    assert!((110..=120).contains(&(expires_at - Utc::now()).num_minutes()), "{expires_at}");

    let path = format!("/accounts/{account}");
    server.send_as_operator(Method::PUT, &path, json!({"email": "a@example.com", "name": "A"})).await;
    let authorization = format!("bearer {}", created["token"].as_str().unwrap());
    assert_eq!(server.send(Some(&authorization), &Method::GET, &path, None).await.status, 200);

    let keys = server.send(None, &Method::GET, "/.well-known/jwks.json", None).await;
    assert_eq!((keys.status, &keys.json()["keys"][0]["crv"]), (200, &"P-256".into()), "{keys:?}");
    let document = server.send(None, &Method::GET, "/openapi.json", None).await.json();
    assert_eq!(document["paths"]["/accounts/{account}"]["get"]["security"], json!([{"token": []}]));
}

#[tokio::test]
async fn token_of_another_data_folder_is_refused() {
    let (server, other) = (Server::start(), Server::start());
    let authorization = format!("Bearer {}", other.operator);
    let refused = server.send(Some(&authorization), &Method::GET, "/runs", None).await;
    let reason = "401 invalid-token the token was not signed with the key of the issuer";
    assert_eq!(refused.problem(), reason);
}

#[test]
fn wrong_arguments_of_the_token_command_are_refused_with_the_allowed_values() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, reason) in [
        (&["--role", "admin"][..], "start `dueday --auth` once"),
        (&[], "--role"),
        (&["--role", "admin", "--account", "acme"], "cannot be used with"),
        (&["--role", "operator"], "must be one of read, support, admin"),
        (&["--account", ""], "1 to 255 characters"),
        (&["--role", "read", "--hours", "0"], "must be a whole number from 1 to 720"),
        (&["--role", "read", "--table", "dueday"], "only works on the local table"),
    ] {
        let (code, stdout, stderr) = output(dueday(folder.path()).arg("token").args(arguments));
        assert!(code == 2 && stdout.is_empty() && stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}
