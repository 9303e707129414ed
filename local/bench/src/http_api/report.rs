//! Prints the results of `bench api` as a table, and compares them with the goals.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ApiArgs;
use super::contestant::ApiContestant;
use super::load::CompletedRequests;
use super::request::RequestKind;
use crate::contestant::duration_in_milliseconds;
use crate::report::median_of_numbers;

/// The measured figures of one server, for one kind of request.
#[derive(Clone, Copy, Debug)]
pub struct ApiMeasurement {
    pub requests_per_second: f64,
    /// The processor time of the server's process for each request, in milliseconds.
    pub cpu_ms: f64,
    /// The median latency, in milliseconds.
    pub median_ms: f64,
    /// The 99th percentile of the latencies, in milliseconds.
    pub p99_ms: f64,
}

/// All measurements by kind of request, number of requests in flight, and server.
pub type Results = BTreeMap<(RequestKind, usize, ApiContestant), Vec<ApiMeasurement>>;

impl ApiMeasurement {
    /// Computes the figures of `completed`, during which the server used `cpu` seconds of processor time.
    pub fn new(completed: &CompletedRequests, cpu: f64) -> Self {
        let mut latencies = completed.latencies.clone();
        latencies.sort_unstable();
        let count = latencies.len() as f64;
        Self {
            requests_per_second: count / completed.duration.as_secs_f64(),
            cpu_ms: cpu / count * 1_000.0,
            median_ms: latency_percentile_in_milliseconds(&latencies, 50),
            p99_ms: latency_percentile_in_milliseconds(&latencies, 99),
        }
    }

    /// Returns the median of each figure over all measurements.
    fn medians(all: &[Self]) -> Self {
        let median_of = |figure: fn(&Self) -> f64| median_of_numbers(all.iter().map(figure));
        Self {
            requests_per_second: median_of(|figures| figures.requests_per_second),
            cpu_ms: median_of(|figures| figures.cpu_ms),
            median_ms: median_of(|figures| figures.median_ms),
            p99_ms: median_of(|figures| figures.p99_ms),
        }
    }
}

/// Returns a percentile of the `sorted` latencies, in milliseconds: `percent` percent of all latencies are not longer
/// than the result.
fn latency_percentile_in_milliseconds(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().map_or(f64::NAN, duration_in_milliseconds)
}

/// Prints the medians of all measurements, and whether each goal was reached.
pub fn print_results(args: &ApiArgs, results: &Results) {
    let medians: BTreeMap<_, _> = results.iter().map(|(key, all)| (*key, ApiMeasurement::medians(all))).collect();
    println!(
        "\n{} requests of each kind, a third of them for sign-ups; medians of {} rounds\n",
        args.requests, args.rounds
    );
    println!(
        "{:<24}  {:>9}  {:<10}  {:>10}  {:>8}  {:>9}  {:>9}",
        "request", "in flight", "", "requests/s", "CPU ms", "median ms", "99% ms"
    );
    for (&(kind, in_flight, contestant), figures) in &medians {
        let ApiMeasurement { requests_per_second, cpu_ms, median_ms, p99_ms } = figures;
        println!(
            "{:<24}  {in_flight:>9}  {:<10}  {requests_per_second:>10.0}  {cpu_ms:>8.2}  {median_ms:>9.2}  {p99_ms:>9.2}",
            kind.name(),
            contestant.name()
        );
    }
    println!(
        "\n{:<24}  {:>9}  {:<13}  {:>22}  {:>26}",
        "", "in flight", "compared with", "CPU, of goal", "median latency, of goal"
    );
    let (mut reached, mut all) = (0, 0);
    for (&(kind, in_flight, contestant), theirs) in &medians {
        let (Some(goal), Some(ours)) = (cpu_goal(contestant), medians.get(&(kind, in_flight, ApiContestant::Dueday)))
        else {
            continue;
        };
        let cpu = RatioGoal { factor: theirs.cpu_ms / ours.cpu_ms, wanted: goal };
        let latency = RatioGoal { factor: theirs.median_ms / ours.median_ms, wanted: 2.0 };
        reached += u32::from(cpu.is_reached()) + u32::from(latency.is_reached());
        all += 2;
        println!(
            "{:<24}  {in_flight:>9}  {:<13}  {:>22}  {:>26}",
            kind.name(),
            contestant.name(),
            cpu.format_cell(),
            latency.format_cell()
        );
    }
    println!("\n{reached} of {all} goals were reached");
}

/// Returns the goal for the processor time of `contestant`, as a multiple of the processor time of Dueday's server;
/// `None` for Dueday's server.
fn cpu_goal(contestant: ApiContestant) -> Option<f64> {
    match contestant {
        ApiContestant::Dueday => None,
        ApiContestant::Javascript => Some(3.0),
    }
}

/// A goal for the ratio of a figure of another server to the same figure of Dueday's server.
struct RatioGoal {
    /// The measured ratio.
    factor: f64,
    /// The smallest ratio that reaches the goal.
    wanted: f64,
}

impl RatioGoal {
    fn is_reached(&self) -> bool {
        self.factor >= self.wanted
    }

    /// Returns the cell of the table: the measured ratio, the goal, and whether the goal was reached.
    fn format_cell(&self) -> String {
        let Self { factor, wanted } = self;
        format!("1/{factor:.1} of 1/{wanted:.0}: {}", if self.is_reached() { "yes" } else { "no" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_returns_a_latency_of_the_measurement() {
        let latencies: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(
            (latency_percentile_in_milliseconds(&latencies, 50), latency_percentile_in_milliseconds(&latencies, 99)),
            (100.0, 198.0)
        );
        assert_eq!(latency_percentile_in_milliseconds(&latencies[..1], 99), 1.0);
        assert!(latency_percentile_in_milliseconds(&[], 50).is_nan());
    }

    #[test]
    fn goal_is_reached_if_the_measured_factor_is_at_least_the_wanted_factor() {
        assert_eq!(RatioGoal { factor: 3.04, wanted: 3.0 }.format_cell(), "1/3.0 of 1/3: yes");
        assert!(!RatioGoal { factor: 2.99, wanted: 3.0 }.is_reached());
        assert!(!RatioGoal { factor: f64::NAN, wanted: 3.0 }.is_reached());
    }
}
