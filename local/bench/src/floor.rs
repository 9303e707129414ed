//! The floor: the function's own requests, sent again over plain sockets by threads that do nothing else. No SDK, no JSON,
//! no arithmetic: what is left is the engine, the gateway and the kernel.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;

use crate::Failure;
use crate::recorder::Request;

#[derive(Debug, Args)]
pub struct FloorArgs {
    /// What was recorded, as JSON
    #[arg(long)]
    pub recorded: PathBuf,
    #[arg(long)]
    pub engine: String,
    #[arg(long)]
    pub gateway: String,
    #[arg(long)]
    pub concurrency: usize,
}

/// A request as it goes over the wire.
struct Wired {
    is_charge: bool,
    bytes: Vec<u8>,
}

fn wired(request: &Request, host: &str) -> Wired {
    let Request { is_charge, method, path, headers, body, .. } = request;
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    text.push_str("\r\n");
    text.push_str(body);
    Wired { is_charge: *is_charge, bytes: text.into_bytes() }
}

/// A connection that is kept.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(host: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(host)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends `request` and reads its answer to the end.
    fn ask(&mut self, request: &Wired) -> Result<(), Failure> {
        self.0.get_mut().write_all(&request.bytes)?;
        let (mut line, mut length, mut is_first) = (String::new(), 0, true);
        loop {
            line.clear();
            self.0.read_line(&mut line)?;
            if is_first && !line.contains(" 200 ") {
                return Err(format!("answered {line:?}").into());
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

pub fn replay(args: &FloorArgs) -> Result<(), Failure> {
    let host = |url: &str| url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let (engine, gateway) = (host(&args.engine), host(&args.gateway));
    let recorded: Vec<Vec<Request>> = serde_json::from_slice(&std::fs::read(&args.recorded)?)?;
    let wire = |request: &Request| wired(request, if request.is_charge { &gateway } else { &engine });
    let mut chains: Vec<Vec<Wired>> = recorded.iter().map(|chain| chain.iter().map(wire).collect()).collect();
    let mut connections: Vec<(Connection, Connection)> = Vec::new();
    for _ in 0..args.concurrency {
        connections.push((Connection::open(&engine)?, Connection::open(&gateway)?));
    }
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let pages = chains.remove(0);
    for request in &pages {
        let (engine, gateway) = &mut connections[0];
        if request.is_charge { gateway.ask(request)? } else { engine.ask(request)? }
    }
    let (chains, next) = (Arc::new(chains), Arc::new(AtomicUsize::new(0)));
    let threads: Vec<_> = connections
        .into_iter()
        .map(|(mut engine, mut gateway)| {
            let (chains, next) = (chains.clone(), next.clone());
            std::thread::spawn(move || -> Result<(), Failure> {
                while let Some(chain) = chains.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for request in chain {
                        if request.is_charge { gateway.ask(request)? } else { engine.ask(request)? }
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
