//! The busiest day of ten million subscriptions, simulated: every payment takes its turn at the gateway, its latencies, and
//! its units of the partition that its shard's index entries are in. Shows what limits it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use clap::Args;
use serde::Serialize;

use crate::Failure;
use crate::chart::Chart;

/// Microseconds.
type Time = u64;

const SECOND: Time = 1_000_000;

#[derive(Debug, Args)]
pub struct ScaleArgs {
    #[arg(long, default_value_t = 10_000_000)]
    pub subscriptions: u64,
    /// Of a hundred, how many are due on the busiest day
    #[arg(long, default_value_t = 20)]
    pub peak_percent: u64,
    /// Requests per second that the gateway allows
    #[arg(long, value_delimiter = ',', default_value = "25,100,1000,10000")]
    pub rates: Vec<u64>,
    #[arg(long, value_delimiter = ',', default_value = "1,4,16,64")]
    pub shards: Vec<usize>,
    /// Shards that are walked at the same time
    #[arg(long, default_value_t = 40)]
    pub at_once: usize,
    /// Accounts that are worked on at the same time in each of them
    #[arg(long, default_value_t = 256)]
    pub concurrency: usize,
    /// Milliseconds of a call to DynamoDB, and of a charge
    #[arg(long, default_value_t = 5)]
    pub engine_ms: u64,
    #[arg(long, default_value_t = 300)]
    pub gateway_ms: u64,
}

#[derive(Serialize)]
struct Day {
    shards: usize,
    gateway_rate: u64,
    payments_per_second: f64,
    hours: f64,
    /// Of the time that payments took, how much they waited for their shard's index partition.
    waited_for_partition: f64,
    limited_by: &'static str,
}

/// A token bucket without a burst: when the next unit may be had.
#[derive(Clone, Copy)]
struct Bucket {
    every: Time,
    free_at: Time,
}

impl Bucket {
    fn per_second(units: u64) -> Self {
        Self { every: (SECOND / units.max(1)).max(1), free_at: 0 }
    }

    /// Takes `units`; answers when they are had.
    fn take(&mut self, now: Time, units: u64) -> Time {
        let had = self.free_at.max(now);
        self.free_at = had + self.every * units;
        had
    }
}

struct Shard {
    due: u64,
    partition: Bucket,
}

/// Entries of an index partition that are written in a second.
const WRITES_PER_PARTITION: u64 = 1_000;
/// A payment takes an entry out of the payment index and puts one in.
const WRITES_PER_PAYMENT: u64 = 2;

fn simulate(args: &ScaleArgs, shards: usize, rate: u64) -> Day {
    let due = args.subscriptions * args.peak_percent / 100;
    let each = due / shards as u64;
    let mut all: Vec<Shard> = (0..shards)
        .map(|n| Shard {
            due: each + u64::from((n as u64) < due % shards as u64),
            partition: Bucket::per_second(WRITES_PER_PARTITION),
        })
        .collect();
    let (call, charge) = (args.engine_ms * 1_000, args.gateway_ms * 1_000);
    let mut gateway = Bucket::per_second(rate);
    let (mut last, mut waited, mut in_all) = (0, 0_u128, 0_u128);
    // Each worker: when it is free, and of which walk it is. A walk that has ended goes on with the next shard.
    let mut free: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut walks: Vec<usize> = (0..args.at_once.min(shards)).collect();
    let mut later = walks.len()..shards;
    for walk in 0..walks.len() {
        (0..args.concurrency).for_each(|_| free.push(Reverse((0, walk))));
    }
    while let Some(Reverse((now, walk))) = free.pop() {
        let shard = walks[walk];
        if all[shard].due == 0 {
            if let Some(next) = later.next() {
                walks[walk] = next;
                free.push(Reverse((now, walk)));
            }
            continue;
        }
        all[shard].due -= 1;
        let turn = gateway.take(now, 1);
        let charged = turn + call + charge;
        let written = all[shard].partition.take(charged, WRITES_PER_PAYMENT);
        let settled = written + call;
        waited += u128::from(written - charged);
        in_all += u128::from(settled - now);
        last = last.max(settled);
        free.push(Reverse((settled, walk)));
    }
    let seconds = last as f64 / SECOND as f64;
    let payments_per_second = due as f64 / seconds;
    let waited_for_partition = waited as f64 / in_all as f64;
    let limited_by = if payments_per_second > rate as f64 * 0.98 {
        "the gateway"
    } else if waited_for_partition > 0.05 {
        "the partitions"
    } else {
        "what is in flight"
    };
    Day { shards, gateway_rate: rate, payments_per_second, hours: seconds / 3_600.0, waited_for_partition, limited_by }
}

pub fn run(args: &ScaleArgs) -> Result<(), Failure> {
    let mut days = Vec::new();
    println!("{:>6}  {:>9}  {:>10}  {:>7}  limited by", "shards", "gateway/s", "payments/s", "hours");
    for &rate in &args.rates {
        for &shards in &args.shards {
            let day = simulate(args, shards, rate);
            println!(
                "{shards:>6}  {rate:>9}  {:>10.0}  {:>7.2}  {}",
                day.payments_per_second, day.hours, day.limited_by
            );
            days.push(day);
        }
    }
    let folder = crate::folder();
    std::fs::write(folder.join("scale.json"), serde_json::to_string_pretty(&days)? + "\n")?;
    std::fs::write(folder.join("scale.svg"), chart(args, &days))?;
    println!("\nwritten: scale.json and scale.svg in {}", folder.display());
    Ok(())
}

/// Payments per second, on a logarithmic scale, for each rate of the gateway and number of shards.
fn chart(args: &ScaleArgs, days: &[Day]) -> String {
    const COLOURS: [&str; 4] = ["#fdba74", "#f97316", "#c2410c", "#7c2d12"];
    let colour = |place: usize| COLOURS[place.min(COLOURS.len() - 1)];
    let height = |rate: f64| (rate.max(1.0).log10() * 50.0).max(1.0);
    let mut chart = Chart::new(720, 310);
    chart.title(20.0, "payments per second on the busiest day, by what the gateway allows");
    for (group, rate) in (0_u32..).zip(&args.rates) {
        let left = 30.0 + f64::from(group) * 170.0;
        chart.caption(left + 66.0, 272.0, &format!("{rate}/s allowed"));
        chart.limit(left, left + 132.0, 255.0 - height(*rate as f64));
        for (bar, day) in (0_u32..).zip(days.iter().filter(|day| day.gateway_rate == *rate)) {
            let size = (30.0, height(day.payments_per_second));
            let value = format!("{:.0}", day.payments_per_second);
            chart.bar(left + f64::from(bar) * 34.0, 255.0, size, colour(bar as usize), &value);
        }
    }
    let names = args.shards.iter().enumerate().map(|(place, shards)| (colour(place), format!("{shards} shards")));
    chart.legend(30.0, 286.0, names);
    chart.finish()
}
