//! `bench api`: compares Dueday's HTTP API with the same API in JavaScript and in Python.
//!
//! Each server has its own process, and a new engine and a new gateway in two further processes. Before the
//! measurement, [`agreement`] checks that all servers respond alike, send the same requests and store the same items.
//! After each measurement, [`checks`] checks the stored result.

mod agreement;
mod cases;
mod checks;
mod contestant;
mod load;
mod normalized;
mod report;
mod request;
mod world;

use clap::Args;

use crate::process::{cpu_seconds, peak_mb};
use crate::{Failure, peers};
use contestant::ApiContestant;
use report::{ApiMeasurement, Results};
use request::{BenchmarkLoad, Kind};
use world::World;

#[derive(Debug, Args)]
pub struct ApiArgs {
    /// Number of requests of each kind in each measurement; for sign-ups, a third of this number
    #[arg(long, default_value_t = 600)]
    pub requests: usize,
    /// Number of requests of each kind before each measurement
    #[arg(long, default_value_t = 60)]
    pub warm_up: usize,
    /// Number of measurements of each server; the results are medians
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Numbers of requests in flight
    #[arg(long, value_delimiter = ',', default_value = "1,8")]
    pub in_flight: Vec<usize>,
    /// Servers to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = ApiContestant::ALL)]
    pub contestants: Vec<ApiContestant>,
    /// Only check that the servers respond alike
    #[arg(long)]
    pub only_check: bool,
}

/// Checks that all servers respond alike, measures each server in each round, and prints the results.
pub async fn run(args: &ApiArgs) -> Result<(), Failure> {
    let peers = peers::install_api_servers()?;
    let case_count = agreement::check(&args.contestants, &peers).await?;
    eprintln!("the servers respond alike to {case_count} requests");
    if args.only_check {
        return Ok(());
    }
    let mut results = Results::new();
    for round in 0..args.rounds {
        // Each round begins with another server. Otherwise each server would always be measured after the same server.
        let first = usize::try_from(round)? % args.contestants.len().max(1);
        let (before, after) = args.contestants.split_at(first);
        for &contestant in after.iter().chain(before) {
            let peak = measure(contestant, args, &peers, &mut results).await?;
            eprintln!("round {} of {}: {} (peak memory {peak:.0} MB)", round + 1, args.rounds, contestant.name());
        }
    }
    report::print_results(args, &results);
    Ok(())
}

/// Measures all kinds of requests to a new server of `contestant`, and adds the figures to `results`. Returns the
/// server's peak memory in MB.
async fn measure(
    contestant: ApiContestant,
    args: &ApiArgs,
    peers: &peers::ApiPeers,
    results: &mut Results,
) -> Result<f64, Failure> {
    let world = World::start().await?;
    let (server, url) = contestant.start(peers, &world.engine.1, &world.gateway.1).await?;
    let http = load::create_client()?;
    for &in_flight in &args.in_flight {
        for kind in Kind::ALL {
            let set =
                BenchmarkLoad { kind, in_flight, count: args.warm_up + kind.measured_request_count(args.requests) };
            world.prepare(&set).await?;
            let mut requests = set.requests(world.today);
            let measured_requests = requests.split_off(args.warm_up);
            let warm_up = load::send_all(&http, &url, requests, in_flight).await?;
            let cpu = cpu_seconds(server.id())?;
            let measured = load::send_all(&http, &url, measured_requests, in_flight).await?;
            let cpu = cpu_seconds(server.id())? - cpu;
            let responses = warm_up.responses.iter().chain(&measured.responses);
            let checked = checks::check(&world, &set, responses).await;
            checked.map_err(|error| format!("{}, {}: {error}", contestant.name(), set.name()))?;
            let figures = ApiMeasurement::new(&measured, cpu);
            results.entry((kind, in_flight, contestant)).or_default().push(figures);
        }
    }
    let peak = peak_mb(server.id())?;
    server.stop().await?;
    world.stop().await?;
    Ok(peak)
}
