//! `bench api`: compares Dueday's HTTP API with the same API in JavaScript.
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

use std::path::Path;

use clap::Args;

use crate::process::{read_cpu_seconds, read_peak_memory_mb};
use crate::{Failure, peers};
use contestant::ApiContestant;
use report::{ApiMeasurement, Results};
use request::{BenchmarkLoad, RequestKind};
use world::BenchmarkWorld;

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
pub async fn compare_api_servers(args: &ApiArgs) -> Result<(), Failure> {
    let javascript_server = peers::install_api_server()?;
    let case_count = agreement::check_servers_agree(&args.contestants, &javascript_server).await?;
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
            let peak = measure_api_server(contestant, args, &javascript_server, &mut results).await?;
            eprintln!("round {} of {}: {} (peak memory {peak:.0} MB)", round + 1, args.rounds, contestant.name());
        }
    }
    report::print_results(args, &results);
    Ok(())
}

/// Measures all kinds of requests to a new server of `contestant`, and adds the figures to `results`. Returns the
/// server's peak memory in MB.
async fn measure_api_server(
    contestant: ApiContestant,
    args: &ApiArgs,
    javascript_server: &Path,
    results: &mut Results,
) -> Result<f64, Failure> {
    let world = BenchmarkWorld::start().await?;
    let (server, url) = contestant.start(javascript_server, &world.engine.1, &world.gateway.1).await?;
    let http = load::create_client()?;
    for &in_flight in &args.in_flight {
        for kind in RequestKind::ALL {
            let set =
                BenchmarkLoad { kind, in_flight, count: args.warm_up + kind.measured_request_count(args.requests) };
            world.create_items_for_load(&set).await?;
            let mut requests = set.requests(world.today);
            let measured_requests = requests.split_off(args.warm_up);
            let warm_up = load::send_requests(&http, &url, requests, in_flight).await?;
            let cpu = read_cpu_seconds(server.id())?;
            let measured = load::send_requests(&http, &url, measured_requests, in_flight).await?;
            let cpu = read_cpu_seconds(server.id())? - cpu;
            let responses = warm_up.responses.iter().chain(&measured.responses);
            let checked = checks::check_responses_and_stored_items(&world, &set, responses).await;
            checked.map_err(|error| format!("{}, {}: {error}", contestant.name(), set.name()))?;
            let figures = ApiMeasurement::new(&measured, cpu);
            results.entry((kind, in_flight, contestant)).or_default().push(figures);
        }
    }
    let peak = read_peak_memory_mb(server.id())?;
    server.stop().await?;
    world.stop().await?;
    Ok(peak)
}
