//! The contestant `hyper`. It replays the recorded requests of the payment function with the HTTP client hyper on one
//! thread, without SDK, JSON and signatures. The difference between the time of the function and the time of the replay
//! is the cost of SDK, JSON and signatures. The time of the replay is the cost that any asynchronous program has.

use std::io::BufRead as _;

use axum::body::Bytes;
use futures::stream::{self, TryStreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::Request as Http;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Builder;

use crate::Failure;
use crate::floor::FloorArgs;
use crate::recorder::RecordedRequest;

/// The HTTP client.
type HyperClient = Client<HttpConnector, Full<Bytes>>;

/// A recorded request in the form that hyper sends.
struct PreparedRequest {
    http: Http<()>,
    body: Bytes,
}

/// Converts a recorded request into a request to the server with the URL `base`.
fn prepare_request(request: RecordedRequest, base: &str) -> Result<PreparedRequest, Failure> {
    let uri = format!("{base}{}", request.path);
    let mut http = Http::builder().method(request.method.as_str()).uri(uri);
    for (name, value) in &request.headers {
        http = http.header(name, value);
    }
    Ok(PreparedRequest { http: http.body(())?, body: request.body.into() })
}

/// Sends `request`, and reads its response to the end.
async fn send_request(hyper: &HyperClient, request: PreparedRequest) -> Result<(), Failure> {
    let PreparedRequest { http, body } = request;
    let response = hyper.request(http.map(|()| Full::new(body))).await?;
    if !response.status().is_success() {
        return Err(format!("unexpected response {}", response.status()).into());
    }
    response.into_body().collect().await?;
    Ok(())
}

/// Sends the requests of `chain` one after the other. A chain contains all requests that belong to one subscription, or
/// all requests that belong to no subscription.
async fn send_chain(hyper: &HyperClient, chain: Vec<PreparedRequest>) -> Result<(), Failure> {
    for request in chain {
        send_request(hyper, request).await?;
    }
    Ok(())
}

/// Sends all recorded requests. The requests of one subscription are sent one after the other.
pub fn replay_recorded_requests(args: &FloorArgs) -> Result<(), Failure> {
    let recorded: Vec<Vec<RecordedRequest>> = serde_json::from_slice(&std::fs::read(&args.recorded)?)?;
    let (engine, gateway) = (args.engine.trim_end_matches('/'), args.gateway.trim_end_matches('/'));
    let prepare = |request: RecordedRequest| {
        let base = if request.is_charge { gateway } else { engine };
        prepare_request(request, base)
    };
    let chains = recorded.into_iter().map(|chain| chain.into_iter().map(prepare).collect::<Result<Vec<_>, _>>());
    let mut chains = chains.collect::<Result<Vec<_>, _>>()?.into_iter();
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    // The requests that belong to no subscription are sent first.
    let first_chain = chains.next().unwrap_or_default();
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let hyper: HyperClient = Client::builder(TokioExecutor::new()).build(connector);
        send_chain(&hyper, first_chain).await?;
        stream::iter(chains.map(Ok)).try_for_each_concurrent(args.concurrency, |chain| send_chain(&hyper, chain)).await
    })?;
    println!("done");
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}
