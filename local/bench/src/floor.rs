//! The contestant `floor`, which shows the least possible cost of a batch. It replays the recorded requests of the
//! payment function over plain sockets, with one thread for each connection. It uses neither the SDK nor JSON, so the
//! measured time is that of the engine, the gateway and the kernel.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use crate::Failure;
use crate::recorder::RecordedRequest;

#[derive(Debug, Args)]
pub struct FloorArgs {
    /// JSON file with the recorded requests
    #[arg(long)]
    pub recorded: PathBuf,
    /// URL of the engine
    #[arg(long)]
    pub engine: String,
    /// URL of the gateway
    #[arg(long)]
    pub gateway: String,
    /// Number of accounts to process at the same time
    #[arg(long)]
    pub concurrency: usize,
}

/// A recorded request, converted to the bytes that are sent to its server.
struct PreparedRequest {
    is_charge: bool,
    bytes: Vec<u8>,
}

/// Converts a recorded request into the bytes of a request to the server `host`.
fn prepare_request(request: &RecordedRequest, host: &str) -> PreparedRequest {
    let RecordedRequest { is_charge, method, path, headers, body, .. } = request;
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    text.push_str("\r\n");
    text.push_str(body);
    PreparedRequest { is_charge: *is_charge, bytes: text.into_bytes() }
}

/// An HTTP connection that is kept open for many requests.
struct HttpConnection(BufReader<TcpStream>);

impl HttpConnection {
    fn open(host: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends `request`, and reads its response to the end.
    fn send(&mut self, request: &PreparedRequest) -> Result<(), Failure> {
        self.0.get_mut().write_all(&request.bytes)?;
        let mut line = String::new();
        let mut length = 0;
        let mut is_first = true;
        loop {
            line.clear();
            self.0.read_line(&mut line)?;
            if is_first && !line.contains(" 200 ") {
                return Err(format!("unexpected response {line:?}").into());
            }
            is_first = false;
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        Ok(self.0.read_exact(&mut body)?)
    }
}

/// Sends all recorded requests. The requests of one subscription are sent one after the other.
pub fn replay_recorded_requests(args: &FloorArgs) -> Result<(), Failure> {
    let host = |url: &str| url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (engine, gateway) = (host(&args.engine), host(&args.gateway));
    let recorded: Vec<Vec<RecordedRequest>> = serde_json::from_slice(&std::fs::read(&args.recorded)?)?;
    let prepare =
        |request: &RecordedRequest| prepare_request(request, if request.is_charge { &gateway } else { &engine });
    let mut chains: Vec<Vec<PreparedRequest>> =
        recorded.iter().map(|chain| chain.iter().map(prepare).collect()).collect();
    let mut connections: Vec<(HttpConnection, HttpConnection)> = Vec::new();
    for _ in 0..args.concurrency {
        connections.push((HttpConnection::open(&engine)?, HttpConnection::open(&gateway)?));
    }
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    // The requests that belong to no subscription are sent first.
    let first_chain = chains.remove(0);
    for request in &first_chain {
        let (engine, gateway) = &mut connections[0];
        if request.is_charge { gateway.send(request)? } else { engine.send(request)? }
    }
    let (chains, next_chain) = (Arc::new(chains), Arc::new(AtomicUsize::new(0)));
    let threads: Vec<_> = connections
        .into_iter()
        .map(|(mut engine, mut gateway)| {
            let (chains, next_chain) = (chains.clone(), next_chain.clone());
            std::thread::spawn(move || -> Result<(), Failure> {
                while let Some(chain) = chains.get(next_chain.fetch_add(1, Ordering::Relaxed)) {
                    for request in chain {
                        if request.is_charge { gateway.send(request)? } else { engine.send(request)? }
                    }
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread has panicked")??;
    }
    println!("done");
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}
