//! Sends requests to a server, and measures their latencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode};
use serde_json::Value;

use super::request::BenchmarkRequest;
use crate::Failure;

/// The time after which a request without a response fails.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A response of a server.
#[derive(Clone, Debug)]
pub struct ServerResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The JSON body; null if the body is not JSON.
    pub body: Value,
}

/// A response of a server whose body is not parsed yet.
struct UnparsedResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// The responses and latencies of all requests of a measurement.
#[derive(Debug, Default)]
pub struct CompletedRequests {
    /// The responses, each with the index of its request.
    pub responses: Vec<(usize, ServerResponse)>,
    pub latencies: Vec<Duration>,
    /// The time from the first request to the last response.
    pub duration: Duration,
}

/// Creates a client that keeps its connections open.
pub fn create_client() -> Result<Client, Failure> {
    Ok(Client::builder().no_proxy().http1_only().timeout(TIMEOUT).build()?)
}

/// Sends `request` to the server at `url`.
pub async fn send_request(http: &Client, url: &str, request: &BenchmarkRequest) -> Result<ServerResponse, Failure> {
    Ok(send_without_parsing_response(http, url, request).await?.parse())
}

/// Sends `request` to the server at `url`, and returns the response without parsing its body.
async fn send_without_parsing_response(
    http: &Client,
    url: &str,
    request: &BenchmarkRequest,
) -> Result<UnparsedResponse, Failure> {
    let mut outgoing = http.request(request.method.clone(), format!("{url}{}", request.path));
    for (name, value) in &request.headers {
        outgoing = outgoing.header(*name, value);
    }
    if let Some(body) = &request.body {
        outgoing = outgoing.body(body.clone());
    }
    let response = outgoing.send().await?;
    let status = response.status();
    let headers = response.headers().clone();
    Ok(UnparsedResponse { status, headers, body: response.bytes().await?.into() })
}

impl UnparsedResponse {
    /// Parses the body of the response.
    fn parse(self) -> ServerResponse {
        let Self { status, headers, body } = self;
        ServerResponse { status, headers, body: serde_json::from_slice(&body).unwrap_or_default() }
    }
}

/// Sends `requests` to the server at `url`, with up to `in_flight` requests in progress at the same time.
pub async fn send_requests(
    http: &Client,
    url: &str,
    requests: Vec<BenchmarkRequest>,
    in_flight: usize,
) -> Result<CompletedRequests, Failure> {
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let started = Instant::now();
    let workers = (0..in_flight).map(|_| {
        let (http, url, requests, next) = (http.clone(), url.to_owned(), requests.clone(), next.clone());
        tokio::spawn(async move {
            let mut sent = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(number) else { return Ok::<_, Failure>(sent) };
                let started = Instant::now();
                let response = send_without_parsing_response(&http, &url, request).await?;
                sent.push((number, started.elapsed(), response));
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await??);
    }
    let duration = started.elapsed();
    // The bodies are parsed only after the measurement. Otherwise the parsing would use processor time that the server
    // on the same machine needs.
    let latencies = all.iter().map(|(_, latency, _)| *latency).collect();
    let responses = all.into_iter().map(|(number, _, response)| (number, response.parse())).collect();
    Ok(CompletedRequests { responses, latencies, duration })
}
