//! The servers that are measured.

use clap::ValueEnum;

use crate::Failure;
use crate::peers::ApiPeers;
use crate::process::{Process, built_program};

/// An implementation of the HTTP API that is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum ApiContestant {
    /// Dueday's router.
    Dueday,
    /// The Node.js program in `peers/fastify`.
    Javascript,
    /// The Python program in `peers/fastapi`.
    Python,
}

impl ApiContestant {
    /// All servers. The other servers are compared with the first server.
    pub const ALL: [Self; 3] = [Self::Dueday, Self::Javascript, Self::Python];

    /// Returns the name of the server in the results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dueday => "Dueday",
            Self::Javascript => "JavaScript",
            Self::Python => "Python",
        }
    }

    /// Starts the server. `engine` is the URL of the database engine with the server's table, and `gateway` is the URL
    /// of the gateway at which the server charges. Returns the process and the URL of the server.
    pub async fn start(self, peers: &ApiPeers, engine: &str, gateway: &str) -> Result<(Process, String), Failure> {
        let (engine_variable, gateway_variable) = match self {
            Self::Dueday => ("DUEDAY_DYNAMODB_ENDPOINT", "DUEDAY_GATEWAY"),
            Self::Javascript | Self::Python => ("ENGINE", "GATEWAY"),
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
                let program = built_program("bench-api-server")?;
                Process::start(&program.to_string_lossy(), None::<&str>, &environment)?
            }
            Self::Javascript => Process::start("node", [&peers.javascript], &environment)?,
            Self::Python => {
                let script = crate::bench_folder().join("peers/fastapi/server.py");
                Process::start(&peers.python.to_string_lossy(), ["-B".as_ref(), script.as_os_str()], &environment)?
            }
        };
        let url = process.read_line().await.map_err(|error| format!("{}: {error}", self.name()))?;
        Ok((process, url))
    }
}
