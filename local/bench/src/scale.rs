//! `bench scale`: simulates the busiest day of ten million subscriptions. Every payment waits for the gateway's rate
//! limit, for the latencies of the requests, and for the write capacity of the index partition of its shard. The result
//! shows which of these limits determines the throughput.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use clap::Args;
use serde::Serialize;

use crate::Failure;
use crate::chart::{ChartBar, SvgChart};

/// A time since the start of the simulated day, or a duration, in microseconds.
type Microseconds = u64;

/// One second, in microseconds.
const SECOND: Microseconds = 1_000_000;

#[derive(Debug, Args)]
pub struct ScaleArgs {
    /// Number of subscriptions
    #[arg(long, default_value_t = 10_000_000)]
    pub subscriptions: u64,
    /// Percentage of subscriptions that are due on the busiest day
    #[arg(long, default_value_t = 20)]
    pub peak_percent: u64,
    /// Requests per second that the gateway allows
    #[arg(long, value_delimiter = ',', default_value = "25,100,1000,10000")]
    pub rates: Vec<u64>,
    /// Numbers of shards to simulate
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64")]
    pub shards: Vec<usize>,
    /// Shards that are processed at the same time
    #[arg(long, default_value_t = 40)]
    pub at_once: usize,
    /// Accounts that are processed at the same time in each shard
    #[arg(long, default_value_t = 256)]
    pub concurrency: usize,
    /// Latency of each DynamoDB request in milliseconds
    #[arg(long, default_value_t = 5)]
    pub engine_ms: u64,
    /// Duration of each charge in milliseconds
    #[arg(long, default_value_t = 300)]
    pub gateway_ms: u64,
}

/// The result of the simulation of one day.
#[derive(Serialize)]
struct SimulatedDay {
    shards: usize,
    gateway_rate: u64,
    payments_per_second: f64,
    hours: f64,
    /// The part of the payments' total time that was spent waiting for the index partition of a shard, from 0 to 1.
    waited_for_partition: f64,
    /// The limit that determines the throughput: the gateway, the partitions or the concurrency.
    limited_by: &'static str,
}

/// A rate limit, as a token bucket without bursts.
#[derive(Clone, Copy)]
struct RateLimit {
    /// The time between two units. A unit is a request or a write, depending on the limit.
    interval: Microseconds,
    /// The time at which the next unit is available.
    free_at: Microseconds,
}

impl RateLimit {
    /// Creates a limit of `units` per second.
    fn per_second(units: u64) -> Self {
        Self { interval: (SECOND / units.max(1)).max(1), free_at: 0 }
    }

    /// Reserves `units` of the limit. Returns the time at which the units are available.
    fn reserve_units(&mut self, now: Microseconds, units: u64) -> Microseconds {
        let available_at = self.free_at.max(now);
        self.free_at = available_at + self.interval * units;
        available_at
    }
}

/// The state of one shard of the payment index during the simulated day.
struct ShardState {
    /// The number of payments of the shard that are still due.
    due: u64,
    /// The write limit of the shard's index partition.
    partition: RateLimit,
}

/// The largest number of index entries that one partition can write per second.
const WRITES_PER_PARTITION: u64 = 1_000;
/// The number of index writes of a payment: the payment index loses the entry of the paid month, and gets the entry of
/// the next month.
const WRITES_PER_PAYMENT: u64 = 2;

/// Simulates the busiest day with `shards` shards and a gateway that allows `rate` requests per second.
fn simulate_day(args: &ScaleArgs, shards: usize, rate: u64) -> SimulatedDay {
    let due = args.subscriptions * args.peak_percent / 100;
    let each = due / shards as u64;
    let mut all: Vec<ShardState> = (0..shards)
        .map(|n| ShardState {
            due: each + u64::from((n as u64) < due % shards as u64),
            partition: RateLimit::per_second(WRITES_PER_PARTITION),
        })
        .collect();
    let (call, charge) = (args.engine_ms * 1_000, args.gateway_ms * 1_000);
    let mut gateway = RateLimit::per_second(rate);
    let mut last = 0;
    let mut waited = 0_u128;
    let mut total = 0_u128;
    // One entry for each worker: the time at which the worker is free, and the index of its walk. A walk is a group of
    // workers that processes one shard, and then continues with the next shard.
    let mut workers: BinaryHeap<Reverse<(Microseconds, usize)>> = BinaryHeap::new();
    let mut walks: Vec<usize> = (0..args.at_once.min(shards)).collect();
    let mut remaining_shards = walks.len()..shards;
    for walk in 0..walks.len() {
        (0..args.concurrency).for_each(|_| workers.push(Reverse((0, walk))));
    }
    while let Some(Reverse((now, walk))) = workers.pop() {
        let shard = walks[walk];
        if all[shard].due == 0 {
            if let Some(next) = remaining_shards.next() {
                walks[walk] = next;
                workers.push(Reverse((now, walk)));
            }
            continue;
        }
        all[shard].due -= 1;
        let turn = gateway.reserve_units(now, 1);
        let charged = turn + call + charge;
        let written = all[shard].partition.reserve_units(charged, WRITES_PER_PAYMENT);
        let settled = written + call;
        waited += u128::from(written - charged);
        total += u128::from(settled - now);
        last = last.max(settled);
        workers.push(Reverse((settled, walk)));
    }
    let seconds = last as f64 / SECOND as f64;
    let payments_per_second = due as f64 / seconds;
    let waited_for_partition = waited as f64 / total as f64;
    let limited_by = if payments_per_second > rate as f64 * 0.98 {
        "the gateway"
    } else if waited_for_partition > 0.05 {
        "the partitions"
    } else {
        "the concurrency"
    };
    SimulatedDay {
        shards,
        gateway_rate: rate,
        payments_per_second,
        hours: seconds / 3_600.0,
        waited_for_partition,
        limited_by,
    }
}

/// Simulates a day for each gateway rate and each number of shards. Prints the results, and writes them to `scale.json`
/// and `scale.svg`.
pub fn simulate_busiest_day(args: &ScaleArgs) -> Result<(), Failure> {
    let mut days = Vec::new();
    println!("{:>6}  {:>9}  {:>10}  {:>7}  limited by", "shards", "gateway/s", "payments/s", "hours");
    for &rate in &args.rates {
        for &shards in &args.shards {
            let day = simulate_day(args, shards, rate);
            println!(
                "{shards:>6}  {rate:>9}  {:>10.0}  {:>7.2}  {}",
                day.payments_per_second, day.hours, day.limited_by
            );
            days.push(day);
        }
    }
    let folder = crate::bench_folder();
    std::fs::write(folder.join("scale.json"), serde_json::to_string_pretty(&days)? + "\n")?;
    std::fs::write(folder.join("scale.svg"), draw_throughput_chart(args, &days))?;
    println!("\nwritten: scale.json and scale.svg in {}", folder.display());
    Ok(())
}

/// Returns the SVG text of a chart with the payments per second, on a logarithmic scale, for each gateway rate and each
/// number of shards.
fn draw_throughput_chart(args: &ScaleArgs, days: &[SimulatedDay]) -> String {
    const COLOURS: [&str; 4] = ["#fdba74", "#f97316", "#c2410c", "#7c2d12"];
    let colour = |place: usize| COLOURS[place.min(COLOURS.len() - 1)];
    let height = |rate: f64| (rate.max(1.0).log10() * 50.0).max(1.0);
    let mut chart = SvgChart::new(720, 310);
    chart.add_title(20.0, "payments per second on the busiest day, by the gateway's rate limit");
    for (group, rate) in (0_u32..).zip(&args.rates) {
        let left = 30.0 + f64::from(group) * 170.0;
        chart.add_caption(left + 66.0, 272.0, &format!("{rate}/s allowed"));
        chart.add_limit_line(left, left + 132.0, 255.0 - height(*rate as f64));
        for (column, day) in (0_u32..).zip(days.iter().filter(|day| day.gateway_rate == *rate)) {
            let height = height(day.payments_per_second);
            let bar = ChartBar { x: left + f64::from(column) * 34.0, base: 255.0, width: 30.0, height };
            chart.add_bar(&bar, colour(column as usize), &format!("{:.0}", day.payments_per_second));
        }
    }
    let names = args.shards.iter().enumerate().map(|(place, shards)| (colour(place), format!("{shards} shards")));
    chart.add_legend(30.0, 286.0, names);
    chart.into_svg()
}
