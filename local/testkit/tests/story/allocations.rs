//! Tests that the date computations, which a batch makes for each row, do not allocate memory.

use allocation_counter::measure;
use billing::{LeadDays, PaymentDay, Period, Policy};
use chrono::NaiveDate;
use testkit::sample_subscription;

fn date(text: &str) -> NaiveDate {
    text.parse().unwrap()
}

#[test]
fn due_dates_are_computed_without_allocations() {
    let (day, today) = (PaymentDay::try_from(31).unwrap(), date("2028-01-31"));
    let (lead, policy) = (LeadDays::default(), Policy::default());
    let subscription = sample_subscription(31, today);
    let mut last = today;
    let allocated = measure(|| {
        let mut period = Period::from_day(today);
        for failed in 0..60 {
            last = last.max(day.due_in(period)).max(subscription.due_in(period));
            last = last.max(day.first_due_date_after(last)).max(day.first_due_date_on_or_after(last));
            last = last.max(lead.date_before(last));
            let _ = policy.dunning.gap_days(failed);
            period = period.next();
        }
    });
    assert_eq!((allocated.count_total, last), (0, date("2033-01-31")));
}
