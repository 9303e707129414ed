//! Generates the alarms, the metric filters and the dashboard of `template.yaml`, and the section "Alarms" of
//! `docs/operations.md`, from the table `docs/alarms.yaml`. `UPDATE_EXAMPLES=1` writes them.

mod alarms;
mod dashboard;
mod table;

use std::collections::BTreeSet;

use strum::IntoEnumIterator as _;

use crate::architecture::root;
use alarms::write_alarms;
use dashboard::write_dashboard;
use table::{Alarm, Monitoring, Part};

/// The end of the line before a generated part of the template.
const GENERATED: &str = "generated from docs/alarms.yaml by `UPDATE_EXAMPLES=1 cargo test --test commands monitoring`";

/// The line of the runbook before the generated section.
const RUNBOOK_BEGIN: &str =
    "<!-- The alarms, generated from docs/alarms.yaml by `UPDATE_EXAMPLES=1 cargo test --test commands monitoring` -->";
/// The line of the runbook after the generated section.
const RUNBOOK_END: &str = "<!-- End of the alarms -->";

/// Compares the part of the template with the title `title` with `generated`, or writes it.
fn check_template(title: &str, generated: &str) {
    let begin = format!("  # {title}, {GENERATED}");
    let end = format!("  # End of: {title}");
    testkit::check_generated_section(&root().join("template.yaml"), &begin, &end, generated);
}

#[test]
fn monitoring_of_the_template_is_generated_from_the_table() {
    let monitoring = Monitoring::read();
    for part in Part::iter() {
        check_template(&format!("Alarms of the part {part}"), &write_alarms(&monitoring.alarms, part));
    }
    check_template("The dashboard", &write_dashboard(&monitoring.dashboard));
}

/// Returns the section of the runbook about `part`: for each text, the names of its alarms and the text.
fn runbook(alarms: &[Alarm], part: Part) -> String {
    let mut text = String::new();
    for alarm in alarms.iter().filter(|alarm| alarm.part == part) {
        let Some(what_to_do) = &alarm.what_to_do else { continue };
        let others = alarms.iter().filter(|other| other.described_with.as_deref() == Some(&alarm.name));
        let names: Vec<String> = [alarm].into_iter().chain(others).map(|alarm| format!("`{}`", alarm.name)).collect();
        text.push_str(&format!("### {}\n\n{}\n\n", names.join(", "), what_to_do.trim_end()));
    }
    text
}

#[test]
fn runbook_is_generated_from_the_table() {
    let alarms = Monitoring::read().alarms;
    for alarm in &alarms {
        let described = alarm.described_with.as_ref().map(|name| alarms.iter().find(|other| other.name == *name));
        let is_described = match (&alarm.what_to_do, described) {
            (Some(_), None) => true,
            (None, Some(Some(other))) => other.what_to_do.is_some(),
            _ => false,
        };
        assert!(
            is_described,
            "{} needs either what_to_do, or described_with and the name of an alarm with it",
            alarm.name
        );
    }
    let all: String = Part::iter().map(|part| runbook(&alarms, part)).collect();
    testkit::check_generated_section(&root().join("docs/operations.md"), RUNBOOK_BEGIN, RUNBOOK_END, &all);
}

#[test]
fn every_alarm_names_a_command_to_type() {
    for Alarm { name, what_to_do, .. } in Monitoring::read().alarms {
        let Some(text) = what_to_do else { continue };
        let mut commands = text.split('`').skip(1).step_by(2).filter(|code| {
            ["dueday ", "aws "].iter().any(|program| code.strip_prefix(program).is_some_and(|rest| !rest.is_empty()))
        });
        assert!(commands.next().is_some(), "{name}: the text names no command to type");
    }
}

#[test]
fn names_of_alarms_and_filters_are_different() {
    let alarms = Monitoring::read().alarms;
    let names: Vec<&String> =
        alarms.iter().flat_map(|alarm| alarm.filters.iter().map(|filter| &filter.name).chain([&alarm.name])).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}
