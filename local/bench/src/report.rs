//! What was measured, as a table for the terminal, as JSON, and as a chart.

use std::fmt::Write as _;

use serde::Serialize;

use crate::Failure;
use crate::contestant::{Contestant, Measured};
use crate::rounds::{Results, RoundsArgs};

#[derive(Serialize)]
struct Row {
    concurrency: u32,
    contestant: Contestant,
    #[serde(flatten)]
    median: Measured,
    /// The lowest and the highest of all rounds.
    payments_per_second_range: (f64, f64),
    /// Of the floor, at the same concurrency.
    share_of_floor: f64,
}

/// One of the figures of a contestant.
type Figure = fn(&Measured) -> f64;

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn medians(all: &[Measured]) -> Measured {
    let of = |field: Figure| median(all.iter().map(field));
    Measured {
        payments_per_second: of(|m| m.payments_per_second),
        cpu_seconds_per_1000: of(|m| m.cpu_seconds_per_1000),
        peak_mb: of(|m| m.peak_mb),
        start_ms: of(|m| m.start_ms),
    }
}

/// Prints the table, and writes `results.json` and `results.svg`.
pub fn write(args: &RoundsArgs, results: &Results) -> Result<(), Failure> {
    let floor =
        |concurrency| results.get(&(concurrency, Contestant::Floor)).map(|all| medians(all).payments_per_second);
    let rows: Vec<Row> = results
        .iter()
        .map(|(&(concurrency, contestant), all)| {
            let rates = || all.iter().map(|measured| measured.payments_per_second);
            let median = medians(all);
            let share_of_floor = median.payments_per_second / floor(concurrency).unwrap_or(f64::NAN);
            let payments_per_second_range = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
            Row { concurrency, contestant, median, payments_per_second_range, share_of_floor }
        })
        .collect();
    println!("\n{} payments, medians of {} rounds\n", args.rows, args.rounds);
    println!(
        "{:>8}  {:<12}  {:>10}  {:>13}  {:>8}  {:>11}  {:>8}  {:>8}",
        "at once", "contestant", "payments/s", "range", "of floor", "CPU s/1,000", "peak MB", "start ms"
    );
    for row in &rows {
        let Measured { payments_per_second, cpu_seconds_per_1000, peak_mb, start_ms } = row.median;
        let range = format!("{:.0}-{:.0}", row.payments_per_second_range.0, row.payments_per_second_range.1);
        println!(
            "{:>8}  {:<12}  {payments_per_second:>10.0}  {range:>13}  {:>7.0}%  {cpu_seconds_per_1000:>11.2}  \
             {peak_mb:>8.0}  {start_ms:>8.0}",
            row.concurrency,
            row.contestant.name(),
            row.share_of_floor * 100.0,
        );
    }
    let folder = crate::folder();
    std::fs::write(folder.join("results.json"), serde_json::to_string_pretty(&rows)? + "\n")?;
    std::fs::write(folder.join("results.svg"), chart(&rows))?;
    println!("\nwritten: results.json and results.svg in {}", folder.display());
    Ok(())
}

/// Bars of payments per second and of processor time, by concurrency.
fn chart(rows: &[Row]) -> String {
    const COLOURS: [(Contestant, &str); 4] = [
        (Contestant::Dueday, "#c2410c"),
        (Contestant::Javascript, "#0369a1"),
        (Contestant::Boto3, "#4d7c0f"),
        (Contestant::Floor, "#a3a3a3"),
    ];
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 820 300\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"820\" height=\"300\" fill=\"#ffffff\"/>\n",
    );
    let panels: [(&str, Figure); 2] = [
        ("payments per second (more is better)", |m| m.payments_per_second),
        ("processor seconds per 1,000 payments (less is better)", |m| m.cpu_seconds_per_1000),
    ];
    let mut levels: Vec<u32> = rows.iter().map(|row| row.concurrency).collect();
    levels.dedup();
    for ((title, of), left) in panels.into_iter().zip([20.0, 430.0]) {
        let highest = rows.iter().map(|row| of(&row.median)).fold(f64::MIN_POSITIVE, f64::max);
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"24\" font-weight=\"bold\">{title}</text>");
        for (place, level) in (0_u32..).zip(&levels) {
            let group = left + f64::from(place) * 125.0;
            let _ =
                writeln!(svg, "<text x=\"{}\" y=\"262\" text-anchor=\"middle\">{level} at once</text>", group + 54.0);
            for (bar, (contestant, colour)) in (0_u32..).zip(COLOURS) {
                let is_ours = |row: &&Row| row.concurrency == *level && row.contestant == contestant;
                let Some(row) = rows.iter().find(is_ours) else { continue };
                let value = of(&row.median);
                let (x, height) = (group + f64::from(bar) * 28.0, value / highest * 180.0);
                let shown = if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{:.1}\" width=\"24\" height=\"{height:.1}\" fill=\"{colour}\"/>\
                     <text x=\"{}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\">{shown}</text>",
                    245.0 - height,
                    x + 12.0,
                    240.0 - height,
                );
            }
        }
    }
    for (place, (contestant, colour)) in (0_u32..).zip(COLOURS) {
        let x = 20.0 + f64::from(place) * 130.0;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"278\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"288\">{}</text>",
            x + 18.0,
            contestant.name(),
        );
    }
    svg + "</svg>\n"
}
