//! Starts a `dueday` server for a test, and sends requests to its API.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::process::Process;
use crate::terminal::dueday;

/// Starts a `dueday` server. Returns its process and the URL of its API.
pub fn start_server(data: &Path) -> (Process, String) {
    let mut command = dueday(data);
    command.args(["--api-port", "0", "--dynamodb-port", "0", "--gateway-port", "0", "--billing-time", "21:00"]);
    let mut server = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let api = lines.find_map(|line| {
        let line = line.unwrap();
        line.contains("  API  ").then(|| line.split_whitespace().nth(1).unwrap().to_owned())
    });
    std::thread::spawn(move || lines.for_each(drop));
    (server, api.unwrap())
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
