//! Tests of the encrypted signing secrets of webhook endpoints: encryption keys in the data folder and in the
//! environment, lost and replaced keys, and secrets in plain text.

use crate::demo_folder::write_demo_folder;
use crate::terminal;

use std::net::Ipv4Addr;
use std::path::Path;

use billing::{SigningSecret, StoredSecret, WebhookEndpoint};
use clock::{Clock as _, SystemClock};
use emulator::Engine;
use encryption::generate_key;
use serde_json::Value;
use store::{Settings, Table};
use terminal::{dueday, output};
use testkit::{ENCRYPTION_KEY, items_with_plain_secret};

/// The arguments of a command that creates a webhook endpoint.
const CREATE: [&str; 4] = ["webhooks", "create", "https://1.1.1.1/hook", "--json"];

/// Returns the id and the signing secret of the endpoint from the output of `dueday webhooks create`.
fn created_endpoint(stdout: &str) -> (String, SigningSecret) {
    let created: Value = serde_json::from_str(stdout).unwrap();
    (created["id"].as_str().unwrap().to_owned(), created["secret"].as_str().unwrap().parse().unwrap())
}

/// Runs `dueday` with `arguments` on the data folder `data`. Returns its exit code, standard output and standard error.
fn run(data: &Path, arguments: &[&str]) -> (i32, String, String) {
    output(dueday(data).args(arguments))
}

#[test]
fn lost_key_is_reported_for_its_endpoint_only_and_rotated_secrets_repair_it() {
    let folder = tempfile::tempdir().unwrap();
    let (data, keys) = (folder.path().join("data"), folder.path().join("data/encryption-keys"));
    write_demo_folder(&data);
    let (lost, _) = created_endpoint(&run(&data, &CREATE).1);
    let old_key = std::fs::read_to_string(&keys).unwrap();
    std::fs::remove_file(&keys).unwrap();
    let (other, _) = created_endpoint(&run(&data, &CREATE).1);
    let new_key = std::fs::read_to_string(&keys).unwrap();
    assert_ne!(new_key, old_key, "a new key was created");
    for command in ["webhooks", "audit"] {
        let (code, stdout, stderr) = run(&data, &[command, "--json"]);
        let text = stdout + &stderr;
        assert!(code == 1 && text.contains(&format!("rotate-secret {lost}")), "{command}: {text}");
        assert!(!text.contains(&format!("rotate-secret {other}")), "{command}: {text}");
    }
    let (code, _, stderr) = run(&data, &["webhooks", "encrypt-secrets"]);
    assert!(code == 1 && stderr.contains(&format!("rotate-secret {lost}")), "{stderr}");

    std::fs::write(&keys, new_key.clone() + &old_key).unwrap();
    assert_eq!(run(&data, &["audit"]).0, 0, "the old key was found again");
    let (code, stdout, _) = run(&data, &["webhooks", "encrypt-secrets"]);
    assert_eq!((code, stdout.as_str()), (0, "the secrets of 2 endpoints are encrypted with the first key\n"));
    std::fs::write(&keys, new_key).unwrap();
    assert_eq!(run(&data, &["audit"]).0, 0, "the old key is not needed any more");

    std::fs::remove_file(&keys).unwrap();
    for endpoint in [&lost, &other] {
        assert_eq!(run(&data, &["webhooks", "rotate-secret", endpoint]).0, 0);
    }
    assert_eq!((run(&data, &["webhooks"]).0, run(&data, &["audit"]).0), (0, 0));
    std::fs::write(&keys, "no key").unwrap();
    let (code, _, stderr) = run(&data, &["webhooks"]);
    assert!(code == 2 && stderr.contains("encryption-keys") && stderr.contains("64 hexadecimal digits"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_for_a_table_on_aws_get_the_keys_from_the_environment() {
    let engine = Engine::in_memory();
    let table = Table::new(engine.client(), "payments");
    table.create_if_absent().await.unwrap();
    table.init_settings(&Settings::new(1, SystemClock.ulid())).await.unwrap();
    let served = engine.clone().serve((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = |keys: Option<&str>, arguments: &[&str]| {
        let mut command = dueday(&folder.path().join("data"));
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret").env("AWS_REGION", "eu-west-1");
        command.env("DUEDAY_DYNAMODB_ENDPOINT", served.url()).args(["--table", "payments"]).args(arguments);
        command.envs(keys.map(|keys| ("DUEDAY_ENCRYPTION_KEYS", keys)));
        output(&mut command)
    };
    let (code, _, stderr) = run(None, &CREATE);
    assert!(code == 2 && stderr.contains("set DUEDAY_ENCRYPTION_KEYS to the text"), "{stderr}");
    let (code, _, stderr) = run(Some("0123abc"), &CREATE);
    assert!(code == 2 && stderr.contains("DUEDAY_ENCRYPTION_KEYS must contain"), "{stderr}");
    assert!(!stderr.contains("0123abc"), "the message does not repeat the key: {stderr}");
    let (code, stdout, stderr) = run(Some(ENCRYPTION_KEY), &CREATE);
    assert_eq!(code, 0, "{stderr}");
    let (endpoint, secret) = created_endpoint(&stdout);
    assert_eq!(items_with_plain_secret(&table, &secret).await, []);

    for arguments in [&["webhooks"][..], &["webhooks", "disable", &endpoint], &["webhooks", "enable", &endpoint]] {
        assert_eq!(run(None, arguments).0, 0, "{arguments:?} needs no keys");
    }
    let (code, _, stderr) = run(None, &["audit"]);
    assert!(code == 0 && stderr.contains("were not decrypted, because DUEDAY_ENCRYPTION_KEYS is not set"), "{stderr}");
    let (code, stdout, _) = run(Some(&generate_key(&SystemClock)), &["audit"]);
    assert!(code == 1 && stdout.contains("cannot be decrypted"), "{stdout}");
    assert_eq!(run(Some(ENCRYPTION_KEY), &["audit"]).0, 0);

    let (id, plain) = (SystemClock.ulid(), SigningSecret::new([9; 32]));
    let url = "https://1.1.1.1/".parse().unwrap();
    let of_earlier_version = WebhookEndpoint::new(id, url, StoredSecret::Plain(plain.clone()), SystemClock.now());
    table.create_webhook_endpoint(&of_earlier_version, None).await.unwrap();
    let (code, stdout, _) = run(None, &["audit", "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let broken = &report["broken"];
    assert_eq!(
        (code, broken.as_array().unwrap().len(), &broken[0]["invariant"]),
        (1, 1, &"encrypted".into()),
        "{report}"
    );
    assert!(!stdout.contains(&plain.reveal()), "{stdout}");
    assert_eq!(run(Some(ENCRYPTION_KEY), &["webhooks", "encrypt-secrets"]).0, 0);
    assert_eq!(items_with_plain_secret(&table, &plain).await, []);
    assert_eq!(run(Some(ENCRYPTION_KEY), &["audit"]).0, 0);
}
