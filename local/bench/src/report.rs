//! Prints the results of the benchmark as a table, and writes them to a JSON file and a chart.

use serde::Serialize;

use crate::Failure;
use crate::chart::{ChartBar, SvgChart};
use crate::comparison::{CONTESTANTS, ComparisonArgs, Results};
use crate::contestant::{Contestant, Measurement};

/// The results of one contestant at one concurrency.
#[derive(Serialize)]
pub struct ResultRow {
    concurrency: u32,
    contestant: Contestant,
    #[serde(flatten)]
    median: Measurement,
    /// The lowest and the highest throughput of all rounds.
    payments_per_second_range: (f64, f64),
    /// The throughput as a share of the throughput of the contestant `floor` at the same concurrency. `None` if `floor`
    /// was not measured.
    share_of_floor: Option<f64>,
}

/// A function that selects one of the measured figures.
type MeasurementFigure = fn(&Measurement) -> f64;

/// Returns the median of `values`; not a number if there are no values.
pub fn median_of_numbers(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the median of each figure over all measurements.
fn median_measurement(all: &[Measurement]) -> Measurement {
    let median_of = |figure: MeasurementFigure| median_of_numbers(all.iter().map(figure));
    Measurement {
        payments_per_second: median_of(|m| m.payments_per_second),
        cpu_seconds_per_1000: median_of(|m| m.cpu_seconds_per_1000),
        peak_mb: median_of(|m| m.peak_mb),
        start_ms: median_of(|m| m.start_ms),
    }
}

/// Prints the medians of `results`. If all contestants were measured, also writes them to `results.json` and
/// `results.svg`.
pub fn report_results(args: &ComparisonArgs, results: &Results) -> Result<(), Failure> {
    let rows = result_rows(results);
    print_rows(args, &rows);
    if args.contestants == CONTESTANTS { write_files(&rows) } else { Ok(()) }
}

/// Returns a row for each contestant at each concurrency.
fn result_rows(results: &Results) -> Vec<ResultRow> {
    let floor = |concurrency| {
        results.get(&(concurrency, Contestant::Floor)).map(|all| median_measurement(all).payments_per_second)
    };
    results
        .iter()
        .map(|(&(concurrency, contestant), all)| {
            let rates = || all.iter().map(|measured| measured.payments_per_second);
            let median = median_measurement(all);
            let share_of_floor = floor(concurrency).map(|floor| median.payments_per_second / floor);
            let payments_per_second_range = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
            ResultRow { concurrency, contestant, median, payments_per_second_range, share_of_floor }
        })
        .collect()
}

fn print_rows(args: &ComparisonArgs, rows: &[ResultRow]) {
    println!("\n{} payments, medians of {} rounds\n", args.rows, args.rounds);
    println!(
        "{:>8}  {:<12}  {:>10}  {:>13}  {:>8}  {:>11}  {:>8}  {:>8}",
        "parallel", "contestant", "payments/s", "range", "of floor", "CPU s/1,000", "peak MB", "start ms"
    );
    for row in rows {
        let Measurement { payments_per_second, cpu_seconds_per_1000, peak_mb, start_ms } = row.median;
        let range = format!("{:.0}-{:.0}", row.payments_per_second_range.0, row.payments_per_second_range.1);
        let share = row.share_of_floor.map_or(String::new(), |share| format!("{:.0}%", share * 100.0));
        println!(
            "{:>8}  {:<12}  {payments_per_second:>10.0}  {range:>13}  {share:>8}  {cpu_seconds_per_1000:>11.2}  \
             {peak_mb:>8.0}  {start_ms:>8.0}",
            row.concurrency,
            row.contestant.name(),
        );
    }
}

/// Writes `results.json` and `results.svg`.
fn write_files(rows: &[ResultRow]) -> Result<(), Failure> {
    let folder = crate::bench_folder();
    std::fs::write(folder.join("results.json"), serde_json::to_string_pretty(rows)? + "\n")?;
    std::fs::write(folder.join("results.svg"), draw_results_chart(rows))?;
    println!("\nwritten: results.json and results.svg in {}", folder.display());
    Ok(())
}

/// Returns the SVG text of a chart with the payments per second and the processor time, by concurrency.
fn draw_results_chart(rows: &[ResultRow]) -> String {
    const COLOURS: [(Contestant, &str); 4] = [
        (Contestant::Dueday, "#c2410c"),
        (Contestant::Javascript, "#0369a1"),
        (Contestant::Boto3, "#4d7c0f"),
        (Contestant::Floor, "#a3a3a3"),
    ];
    let mut chart = SvgChart::new(820, 300);
    let panels: [(&str, MeasurementFigure); 2] = [
        ("payments per second (more is better)", |m| m.payments_per_second),
        ("processor seconds per 1,000 payments (less is better)", |m| m.cpu_seconds_per_1000),
    ];
    let mut levels: Vec<u32> = rows.iter().map(|row| row.concurrency).collect();
    levels.dedup();
    for ((title, figure), left) in panels.into_iter().zip([20.0, 430.0]) {
        let highest = rows.iter().map(|row| figure(&row.median)).fold(f64::MIN_POSITIVE, f64::max);
        chart.add_title(left, title);
        for (place, level) in (0_u32..).zip(&levels) {
            let group = left + f64::from(place) * 125.0;
            chart.add_caption(group + 54.0, 262.0, &format!("{level} parallel"));
            for (column, (contestant, colour)) in (0_u32..).zip(COLOURS) {
                let is_bar = |row: &&ResultRow| row.concurrency == *level && row.contestant == contestant;
                let Some(row) = rows.iter().find(is_bar) else { continue };
                let value = figure(&row.median);
                let label = if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
                let height = value / highest * 180.0;
                let bar = ChartBar { x: group + f64::from(column) * 28.0, base: 245.0, width: 24.0, height };
                chart.add_bar(&bar, colour, &label);
            }
        }
    }
    chart.add_legend(20.0, 278.0, COLOURS.map(|(contestant, colour)| (colour, contestant.name().to_owned())));
    chart.into_svg()
}
