//! Checks the table of problem types in `docs/api.md`. With `UPDATE_EXAMPLES=1` in the environment, the test writes the
//! table instead.

use std::collections::BTreeSet;
use std::path::Path;

use rest::ProblemType;

/// The line of the document before the table.
const TABLE_BEGIN: &str =
    "<!-- The problem types, written by `UPDATE_EXAMPLES=1 cargo test --test routes problem_types` -->";
/// The line of the document after the table.
const TABLE_END: &str = "<!-- End of the problem types -->";

/// Returns the Markdown table of all problem types. The first column contains the part of the URN after
/// `urn:dueday:problem:`.
fn write_table() -> String {
    let header = "| type | status | when it occurs | what the client does |\n|---|---|---|---|\n".to_owned();
    ProblemType::ALL.iter().fold(header, |table, of| {
        let name = of.urn.trim_start_matches("urn:dueday:problem:");
        format!("{table}| `{name}` | {} | {} | {} |\n", of.status.as_u16(), of.occurs_when, of.remedy)
    })
}

#[test]
fn document_of_the_api_lists_all_problem_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    testkit::check_generated_section(&path, TABLE_BEGIN, TABLE_END, &write_table());
}

#[test]
fn each_problem_type_has_a_urn_of_its_own_and_they_are_sorted_by_status() {
    let urns: BTreeSet<&str> = ProblemType::ALL.iter().map(|of| of.urn).collect();
    assert_eq!(urns.len(), ProblemType::ALL.len());
    assert!(ProblemType::ALL.is_sorted_by_key(|of| of.status));
}
