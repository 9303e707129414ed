//! A function as Lambda runs it: its real binary, in a process of its own, fed by a Runtime API on loopback, with its
//! table on an engine that listens on a socket.

use std::fs::File;
use std::process::Stdio;

use chrono::TimeDelta;
use store::Table;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use crate::{Answer, RuntimeApi};
use emulator::{Engine, STRIPE_KEY, Served};

/// A running function and its surroundings. The process ends when this is dropped.
#[derive(Debug)]
pub struct Function {
    /// The function's table, reached without the function.
    pub table: Table,
    api: RuntimeApi,
    process: Child,
    /// Everything that it can log, searched in the end.
    log: Option<NamedTempFile>,
    _dynamodb: Served,
}

/// What no log may hold, at any level: what the sample events have of addresses, tokens and payment methods.
const NEVER_LOGGED: [&str; 5] = ["billing@acme.example.com", "Bearer TOKEN", "pm_card_visa", "cus_acme", STRIPE_KEY];

impl Function {
    /// Starts the binary at `path` as the function `name`, with `variables` in its environment and an empty table. It logs all that it can;
    /// when this is dropped, that is searched for what no log may hold.
    ///
    /// # Panics
    /// If a port of loopback or a process cannot be had.
    pub async fn start(path: &str, name: &str, variables: &[(&str, &str)]) -> Self {
        Self::on(&Engine::memory(), path, name, variables).await
    }

    /// As [`Function::start`], on an `engine` that may hold other tables.
    ///
    /// # Panics
    /// If a port of loopback or a process cannot be had.
    pub async fn on(engine: &Engine, path: &str, name: &str, variables: &[(&str, &str)]) -> Self {
        let log = NamedTempFile::new().expect("a temporary file");
        let writer = log.reopen().expect("a temporary file");
        let variables: Vec<_> = variables.iter().copied().chain([("AWS_LAMBDA_LOG_LEVEL", "trace")]).collect();
        let mut function = Self::spawn(engine, path, (name, &variables), writer.into()).await;
        function.log = Some(log);
        function
    }

    /// As [`Function::start`], logging what it does by itself, to nobody: for whoever measures.
    ///
    /// # Panics
    /// If a port of loopback or a process cannot be had.
    pub async fn quiet(path: &str, name: &str, variables: &[(&str, &str)]) -> Self {
        Self::spawn(&Engine::memory(), path, (name, variables), Stdio::null()).await
    }

    /// As [`Function::start`], with everything that it can log written to `log`.
    ///
    /// # Panics
    /// If a port of loopback or a process cannot be had.
    pub async fn logging(path: &str, name: &str, variables: &[(&str, &str)], log: File) -> Self {
        let variables: Vec<_> = variables.iter().copied().chain([("AWS_LAMBDA_LOG_LEVEL", "trace")]).collect();
        Self::spawn(&Engine::memory(), path, (name, &variables), log.into()).await
    }

    async fn spawn(engine: &Engine, path: &str, (name, variables): (&str, &[(&str, &str)]), log: Stdio) -> Self {
        let dynamodb = engine.serve((std::net::Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        let table = Table::new(engine.client(), "dueday", TimeDelta::days(190));
        table.create_if_absent().await.expect("a table");
        let api = RuntimeApi::start().await.expect("a free port");
        let process = Command::new(path)
            .env_clear()
            .envs(api.environment(name))
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_REGION", "eu-west-1")
            .env("DUEDAY_DYNAMODB_ENDPOINT", dynamodb.url())
            .envs(variables.iter().copied())
            .stdout(log)
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("the function's binary");
        Self { table, api, process, log: None, _dynamodb: dynamodb }
    }

    /// Hands the function an event that must be answered by `deadline_ms`, milliseconds since 1970.
    ///
    /// # Panics
    /// If the function is gone.
    pub async fn invoke(&mut self, event: &str, deadline_ms: i64) -> Answer {
        tokio::select! {
            answer = self.api.invoke(event, deadline_ms) => answer.expect("the function is there"),
            ended = self.process.wait() => panic!("the function has ended: {ended:?}"),
        }
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let Some(log) = self.log.as_ref().filter(|_| !std::thread::panicking()) else { return };
        let logged = std::fs::read_to_string(log.path()).unwrap_or_default();
        for secret in NEVER_LOGGED {
            let line = logged.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{secret} is logged: {line:?}");
        }
    }
}
