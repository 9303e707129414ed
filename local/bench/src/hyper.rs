//! What any asynchronous program pays: the floor's requests, by hyper on one thread. No SDK, no JSON, no signatures; between
//! this and the function is what those cost.

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
use crate::recorder::Request;

type Hyper = Client<HttpConnector, Full<Bytes>>;

struct Wired {
    http: Http<()>,
    body: Bytes,
}

fn wired(request: Request, base: &str) -> Result<Wired, Failure> {
    let uri = format!("{base}{}", request.path);
    let mut http = Http::builder().method(request.method.as_str()).uri(uri);
    for (name, value) in &request.headers {
        http = http.header(name, value);
    }
    Ok(Wired { http: http.body(())?, body: request.body.into() })
}

async fn ask(hyper: &Hyper, request: Wired) -> Result<(), Failure> {
    let Wired { http, body } = request;
    let answer = hyper.request(http.map(|()| Full::new(body))).await?;
    if !answer.status().is_success() {
        return Err(format!("answered {}", answer.status()).into());
    }
    answer.into_body().collect().await?;
    Ok(())
}

async fn all(hyper: &Hyper, chain: Vec<Wired>) -> Result<(), Failure> {
    for request in chain {
        ask(hyper, request).await?;
    }
    Ok(())
}

pub fn replay(args: &FloorArgs) -> Result<(), Failure> {
    let recorded: Vec<Vec<Request>> = serde_json::from_slice(&std::fs::read(&args.recorded)?)?;
    let (engine, gateway) = (args.engine.trim_end_matches('/'), args.gateway.trim_end_matches('/'));
    let wire = |request: Request| {
        let base = if request.is_charge { gateway } else { engine };
        wired(request, base)
    };
    let chains = recorded.into_iter().map(|chain| chain.into_iter().map(wire).collect::<Result<Vec<_>, _>>());
    let mut chains = chains.collect::<Result<Vec<_>, _>>()?.into_iter();
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let pages = chains.next().unwrap_or_default();
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let hyper: Hyper = Client::builder(TokioExecutor::new()).build(connector);
        all(&hyper, pages).await?;
        stream::iter(chains.map(Ok)).try_for_each_concurrent(args.concurrency, |chain| all(&hyper, chain)).await
    })?;
    println!("done");
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}
