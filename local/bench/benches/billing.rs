//! `cargo bench -p bench`: measures the computations that a batch makes for every row, with their allocations.

use billing::{LeadDays, PaymentDay, Period};
use chrono::NaiveDate;
use divan::{AllocProfiler, Bencher, black_box};
use store::SubscriptionKey;
use testkit::sample_subscription;

/// The allocator that counts the allocations of each benchmark.
#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Returns the fixed date that the benchmarks use as the current date.
fn fixed_today() -> NaiveDate {
    "2028-01-31".parse().expect("a valid date")
}

/// Measures how long a payment day needs to compute its date in a month.
#[divan::bench]
fn due_date_of_the_next_month(bencher: Bencher<'_, '_>) {
    let day = PaymentDay::try_from(31).expect("a valid day of the month");
    bencher.bench(|| day.due_in(black_box(Period::from_day(fixed_today())).next()));
}

/// Measures how long a subscription needs to compute its due date in a month.
#[divan::bench]
fn subscription_due_date_in_a_month(bencher: Bencher<'_, '_>) {
    let subscription = sample_subscription(31, fixed_today());
    bencher.bench(|| subscription.due_in(black_box(Period::from_day(fixed_today())).next()));
}

/// Measures the computation of the date on which a reminder of a due payment is sent.
#[divan::bench]
fn reminder_before_a_due_date(bencher: Bencher<'_, '_>) {
    bencher.bench(|| LeadDays::default().date_before(black_box(fixed_today())));
}

/// Measures the creation of the table key of a subscription.
#[divan::bench]
fn create_subscription_key(bencher: Bencher<'_, '_>) {
    let key = SubscriptionKey::from_subscription(&sample_subscription(31, fixed_today()));
    bencher.bench(|| black_box(&key).key());
}

/// Measures the parsing of the table key of a subscription.
#[divan::bench]
fn parse_subscription_key(bencher: Bencher<'_, '_>) {
    let key = SubscriptionKey::from_subscription(&sample_subscription(31, fixed_today())).key();
    bencher.bench(|| SubscriptionKey::parse(black_box(&key)));
}
