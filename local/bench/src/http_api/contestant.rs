//! The servers that are measured.

use std::path::Path;

use clap::ValueEnum;

use crate::Failure;
use crate::process::{ChildProcess, path_of_built_program};

/// An implementation of the HTTP API that is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum ApiContestant {
    /// Dueday's router.
    Dueday,
    /// The Node.js program in `peers/fastify`.
    Javascript,
}

impl ApiContestant {
    /// All servers. The other server is compared with the first server.
    pub const ALL: [Self; 2] = [Self::Dueday, Self::Javascript];

    /// Returns the name of the server in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dueday => "Dueday",
            Self::Javascript => "JavaScript",
        }
    }

    /// Starts the server. `engine` is the URL of the database engine with the server's table, and `gateway` is the URL
    /// of the gateway at which the server charges. `javascript_server` is the path of the JavaScript server. Returns the process and the URL of the server.
    pub async fn start(
        self,
        javascript_server: &Path,
        engine: &str,
        gateway: &str,
    ) -> Result<(ChildProcess, String), Failure> {
        let (engine_variable, gateway_variable) = match self {
            Self::Dueday => ("DUEDAY_DYNAMODB_ENDPOINT", "DUEDAY_GATEWAY"),
            Self::Javascript => ("ENGINE", "GATEWAY"),
        };
        let environment = [
            (engine_variable, engine),
            (gateway_variable, gateway),
            ("DUEDAY_MERCHANT", "Example Shop"),
            ("NODE_ENV", "production"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_DEFAULT_REGION", "eu-west-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut process = match self {
            Self::Dueday => {
                let program = path_of_built_program("bench-api-server")?;
                ChildProcess::start(&program.to_string_lossy(), None::<&str>, &environment)?
            }
            Self::Javascript => ChildProcess::start("node", [javascript_server], &environment)?,
        };
        let url = process.read_line().await.map_err(|error| format!("{}: {error}", self.name()))?;
        Ok((process, url))
    }
}
