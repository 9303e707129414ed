//! Runs a Lambda function as AWS does: its real binary in its own process. A stand-in on loopback replaces the Lambda
//! Runtime API, and the function's table is on an engine that listens on a socket.

use std::fs::File;
use std::process::Stdio;

use store::Table;
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

use crate::{ENCRYPTION_KEY, InvocationResult, RuntimeApi};
use emulator::{Engine, RunningEngine, STRIPE_KEY};

/// A running Lambda function with its table and its Runtime API. Dropping this value ends the function's process.
#[derive(Debug)]
pub struct LambdaFunction {
    /// Direct access to the function's table.
    pub table: Table,
    api: RuntimeApi,
    process: Child,
    /// The file with the function's log at all levels. When this value is dropped, the file is searched for
    /// [`NEVER_LOGGED`]. `None` if the log is not searched.
    log: Option<NamedTempFile>,
    _dynamodb: RunningEngine,
}

/// Texts of the sample events that the function must not log at any level: a mail address, tokens and keys.
const NEVER_LOGGED: [&str; 7] =
    ["billing@acme.example.com", "Bearer TOKEN", "pm_card_visa", "cus_acme", STRIPE_KEY, ENCRYPTION_KEY, "whsec_"];

impl LambdaFunction {
    /// Starts the binary at `path` as the function `name`, with the environment `variables` and an empty table. The
    /// function logs at all levels. Dropping the returned value asserts that the log contains no mail address, token
    /// or key of the sample events.
    ///
    /// # Panics
    /// If no port is free or the process cannot be started.
    pub async fn start(path: &str, name: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_on_engine(&Engine::in_memory(), path, name, variables).await
    }

    /// Like [`LambdaFunction::start`], but creates the function's table on `engine`, which may contain other tables.
    ///
    /// # Panics
    /// If no port is free or the process cannot be started.
    pub async fn start_on_engine(engine: &Engine, path: &str, name: &str, variables: &[(&str, &str)]) -> Self {
        let log = NamedTempFile::new().expect("a temporary file");
        let writer = log.reopen().expect("a temporary file");
        let variables: Vec<_> = variables.iter().copied().chain([("AWS_LAMBDA_LOG_LEVEL", "trace")]).collect();
        let mut function = Self::spawn(engine, path, name, &variables, writer.into()).await;
        function.log = Some(log);
        function
    }

    /// Like [`LambdaFunction::start_on_engine`], but with the default log level, and discards the log: for benchmarks.
    ///
    /// # Panics
    /// If no port is free or the process cannot be started.
    pub async fn start_without_log(engine: &Engine, path: &str, name: &str, variables: &[(&str, &str)]) -> Self {
        Self::spawn(engine, path, name, variables, Stdio::null()).await
    }

    /// Like [`LambdaFunction::start`], but writes the log at all levels to the file `log`, and does not search the log.
    ///
    /// # Panics
    /// If no port is free or the process cannot be started.
    pub async fn start_with_log(path: &str, name: &str, variables: &[(&str, &str)], log: File) -> Self {
        let variables: Vec<_> = variables.iter().copied().chain([("AWS_LAMBDA_LOG_LEVEL", "trace")]).collect();
        Self::spawn(&Engine::in_memory(), path, name, &variables, log.into()).await
    }

    /// Starts the binary at `path` as the function `name` with the environment `variables`. The function writes its log
    /// to `log`.
    async fn spawn(engine: &Engine, path: &str, name: &str, variables: &[(&str, &str)], log: Stdio) -> Self {
        let dynamodb = engine.serve((std::net::Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        let table = Table::new(engine.client(), "dueday");
        table.create_if_absent().await.expect("a table");
        let api = RuntimeApi::start().await.expect("a free port");
        let process = Command::new(path)
            .env_clear()
            .envs(api.environment_variables(name))
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_REGION", "eu-west-1")
            .env("DUEDAY_DYNAMODB_ENDPOINT", dynamodb.url())
            .env("DUEDAY_MERCHANT", "Example Shop")
            .env("DUEDAY_ENCRYPTION_KEYS", ENCRYPTION_KEY)
            .envs(variables.iter().copied())
            .stdout(log)
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .expect("the function's binary");
        Self { table, api, process, log: None, _dynamodb: dynamodb }
    }

    /// Invokes the function with `event` and waits for the result. The function gets the deadline `deadline_ms`
    /// (Unix time in milliseconds).
    ///
    /// # Panics
    /// If the function's process has ended.
    pub async fn invoke(&mut self, event: &str, deadline_ms: i64) -> InvocationResult {
        tokio::select! {
            result = self.api.invoke(event, deadline_ms) => result.expect("the function's process is running"),
            status = self.process.wait() => panic!("the function's process has ended: {status:?}"),
        }
    }
}

impl Drop for LambdaFunction {
    fn drop(&mut self) {
        let Some(log) = self.log.as_ref().filter(|_| !std::thread::panicking()) else { return };
        let logged = std::fs::read_to_string(log.path()).unwrap_or_default();
        for text in NEVER_LOGGED {
            let line = logged.lines().find(|line| line.contains(text));
            assert!(line.is_none(), "the function's log contains {text}: {line:?}");
        }
    }
}
