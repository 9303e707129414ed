//! Runs the documented `sam local invoke` commands without containers: starts the binary of the function with the
//! variables that SAM would give it, on a local system like that of `cargo run`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;

use clock::{Clock as _, SystemClock};
use emulator::Engine;
use orders_table::OrdersTable;
use sandbox::{Ledger, Sandbox, gateway_router};
use serde_json::Value;
use store::Table;
use tokio::process::Command;

use crate::sam_variables::{declared_variables, read_project_file};
use crate::{InvocationResult, RuntimeApi};

/// The URLs in `events/env.json` of the servers that `cargo run` starts: the DynamoDB API and the sandbox gateway.
const DOCUMENTED_URLS: [&str; 2] = ["http://host.docker.internal:8000", "http://host.docker.internal:7879"];

/// The folder in `events/env.json` into which mails are written.
const DOCUMENTED_OUTBOX: &str = "/tmp/outbox";

/// A documented command `sam local invoke FUNCTION --event EVENT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SamLocalCommand {
    /// The logical id of the function in `template.yaml`.
    pub function: String,
    /// The path of the event, such as `events/batch-request.json`.
    pub event: String,
}

/// Returns the `sam local invoke` commands in `docs/operations.md`.
///
/// # Panics
/// If a command has another form.
pub fn sam_local_commands() -> Vec<SamLocalCommand> {
    let document = read_project_file("docs/operations.md");
    let commands = document.lines().filter_map(|line| line.strip_prefix("sam local invoke "));
    let read = |command: &str| {
        let (function, event) = command.split_once(" --event ").expect("FUNCTION --event EVENT");
        SamLocalCommand { function: function.to_owned(), event: event.trim().to_owned() }
    };
    commands.map(read).collect()
}

/// Runs the documented commands that invoke `function`, whose binary is at `path`, each on a new local system. Returns the
/// responses of the function.
///
/// # Panics
/// If no command is documented, `events/env.json` sets a variable that the template does not declare, the function's
/// process ends, or the function fails.
pub async fn run_sam_local_commands(function: &str, path: &str) -> Vec<Value> {
    let commands: Vec<_> = sam_local_commands().into_iter().filter(|command| command.function == function).collect();
    assert!(!commands.is_empty(), "no command for {function} is documented");
    let mut responses = Vec::new();
    for command in commands {
        responses.push(run_sam_local_command(&command, path).await);
    }
    responses
}

/// Starts a local system and the function's binary at `path`, and passes the event of `command` to the function.
async fn run_sam_local_command(command: &SamLocalCommand, path: &str) -> Value {
    let engine = Engine::in_memory();
    let table = Table::new(engine.client(), "dueday");
    table.create_if_absent().await.expect("a table");
    let settings = crate::read_test_config(&[]).expect("the default settings").table.initial_settings(&SystemClock);
    table.init_settings(&settings).await.expect("the settings");
    OrdersTable::new(engine.client(), "dueday-orders").create_if_absent().await.expect("a table");
    let dynamodb = engine.serve((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
    let sandbox = Arc::new(Sandbox::new(Ledger::in_memory(), Arc::new(SystemClock)));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let gateway = format!("http://{}", listener.local_addr().expect("an address"));
    let server = tokio::spawn(async move { axum::serve(listener, gateway_router(sandbox)).await });

    let mut variables = declared_variables(&command.function);
    let set: Value = serde_json::from_str(&read_project_file("events/env.json")).expect("JSON");
    let set: BTreeMap<String, String> = serde_json::from_value(set[&command.function].clone()).unwrap_or_default();
    for (name, value) in set {
        let declared = variables.get_mut(&name);
        *declared.unwrap_or_else(|| panic!("SAM ignores {name}, because the template does not declare it")) = value;
    }
    let outbox = tempfile::tempdir().expect("a folder");
    for value in variables.values_mut() {
        *value = value.replace(DOCUMENTED_OUTBOX, &outbox.path().display().to_string());
        for (documented, url) in DOCUMENTED_URLS.iter().zip([&dynamodb.url(), &gateway]) {
            *value = value.replace(documented, url);
        }
    }

    let mut api = RuntimeApi::start().await.expect("a free port");
    let mut process = Command::new(path)
        .env_clear()
        .envs(api.environment_variables(&command.function))
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_REGION", "us-east-1")
        .envs(variables)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .expect("the function's binary");
    let event = read_project_file(&command.event);
    let deadline_ms = SystemClock.now().timestamp_millis() + 60_000;
    let result = tokio::select! {
        result = api.invoke(&event, deadline_ms) => result.expect("the function's process is running"),
        status = process.wait() => panic!("{command:?}: the function's process has ended: {status:?}"),
    };
    server.abort();
    let InvocationResult::Response(response) = result else { panic!("{command:?}: {result:?}") };
    let (status, failed) = (response["statusCode"].as_u64(), response["batchItemFailures"].as_array());
    assert!(status.is_none_or(|status| status < 300), "{command:?}: {response}");
    assert!(failed.is_none_or(Vec::is_empty), "{command:?}: {response}");
    response
}
