//! Compares the states, the waived months, the retries and the events in `docs/life-of-a-subscription.md` with the
//! domain.

use std::collections::BTreeSet;

use billing::{Dunning, EventType, SubscriptionStatus, WaivedReason};
use serde::de::DeserializeOwned;
use strum::IntoEnumIterator as _;

use super::{code_spans, read_document};

/// Returns the section of `page` with the heading `heading`.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap();
    section.split("\n## ").next().unwrap()
}

/// Returns the number of rows of the table in `section` whose first cell is a name of `T` in backticks.
///
/// # Panics
/// If a first cell in backticks is no name of `T`.
fn count_names<T: DeserializeOwned>(section: &str) -> usize {
    let names: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for name in &names {
        serde_json::from_value::<T>((*name).into()).unwrap();
    }
    names.len()
}

#[test]
fn page_describes_each_status_and_each_reason_of_a_waived_month() {
    let page = read_document("life-of-a-subscription.md");
    assert_eq!(count_names::<SubscriptionStatus>(section(&page, "States")), 5);
    assert_eq!(count_names::<WaivedReason>(section(&page, "Waived months")), 7);
}

#[test]
fn page_shows_the_default_days_of_the_retries() {
    let page = read_document("life-of-a-subscription.md");
    let (retries, dunning) = (section(&page, "Retries"), Dunning::default());
    assert!(retries.contains(&format!("by default `{dunning}`")));
    let days = dunning.gaps().iter().scan(0, |day, gap| {
        *day += gap;
        Some(*day)
    });
    let expected: Vec<String> = days.map(|day| format!("due date + {day}")).collect();
    let cells = retries.lines().filter_map(|line| line.split(" | ").nth(1));
    assert_eq!(cells.filter(|cell| cell.starts_with("due date +")).collect::<Vec<_>>(), expected);
}

#[test]
fn page_names_only_types_of_events_and_all_those_of_subscriptions() {
    let page = read_document("life-of-a-subscription.md");
    let is_event = |text: &&str| ["subscription.", "payment.", "period."].iter().any(|start| text.starts_with(start));
    let named: BTreeSet<&str> = code_spans(&page).filter(is_event).filter(|text| !text.ends_with('*')).collect();
    let unknown: Vec<&&str> = named.iter().filter(|name| name.parse::<EventType>().is_err()).collect();
    assert!(unknown.is_empty(), "the page names types of events that do not exist: {unknown:?}");
    let types = EventType::iter().map(|event| event.to_string()).filter(|name| name.starts_with("subscription."));
    let missing: Vec<String> = types.filter(|name| !named.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "the page does not name {missing:?}");
}
