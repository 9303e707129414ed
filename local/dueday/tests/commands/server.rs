//! Starts a `dueday` server for a test, and sends requests to its API.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::Process;
use crate::terminal::dueday;

/// A running `dueday` server on free ports, killed when dropped.
pub struct Server {
    pub process: Process,
    /// The URL of its API.
    pub api_url: String,
}

impl Server {
    /// Starts a server on the data folder `data` with `arguments`, and waits until it accepts connections.
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        Self::start_command(dueday(data).args(arguments).stderr(Stdio::null()))
    }

    /// Starts the server `command`, such as `dueday --auth`, and waits until it accepts connections.
    pub fn start_command(command: &mut Command) -> Self {
        let ports = ["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0", "--billing-time", "19:00"];
        let mut process = Process::start(command.args(ports).stdout(Stdio::piped()));
        // The server prints its addresses when it accepts connections.
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        let api_url = lines.find_map(|line| {
            let line = line.unwrap();
            line.contains("  API  ").then(|| line.split_whitespace().nth(1).unwrap().to_owned())
        });
        // Keep reading: the server ends if it cannot write its output.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, api_url: api_url.expect("the server has ended") }
    }
}

/// A client of the HTTP API.
pub struct ApiClient {
    pub url: String,
    pub http: reqwest::Client,
}

impl ApiClient {
    /// Sends `request`, such as `GET /runs`. Returns the status and the JSON body of the response.
    pub async fn send(&self, request: &str, body: Value) -> (u16, Value) {
        let (method, path) = request.split_once(' ').unwrap();
        let request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.url));
        let response = request.header("content-type", "application/json").body(body.to_string()).send().await.unwrap();
        (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default())
    }
}
