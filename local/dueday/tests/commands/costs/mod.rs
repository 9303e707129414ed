//! Computes the costs of the system on AWS, from the counted requests of a running system, from `template.yaml` and
//! from the prices in `docs/prices.json`. `UPDATE_EXAMPLES=1` updates the tables in `docs/costs.md`.

mod bill;
mod meters;
mod patterns;
mod prices;
mod stack;
mod stream_filter;
mod tables;
mod workload;

use crate::architecture::root;
use bill::bill;
use prices::Prices;
use stack::Stack;

/// The line of the document before the generated tables.
const TABLES_BEGIN: &str = "<!-- The costs, computed by `UPDATE_EXAMPLES=1 cargo test --test commands costs` -->";
/// The line of the document after the generated tables.
const TABLES_END: &str = "<!-- End of the costs -->";

/// The largest allowed cost of a million payments, each with a reminder and a request to the API, in dollars. Mails and
/// storage are not included.
const MAX_DOLLARS_FOR_A_MILLION_PAYMENTS: f64 = 15.5;

#[tokio::test]
async fn costs_document_shows_the_computed_costs() {
    let (stack, prices) = (Stack::read(), Prices::read());
    let (one, idle) = (workload::count_per_payment(&stack, &[]).await, workload::count(&stack, 0, &[]).await);
    let without_receipts = workload::count_per_payment(&stack, &[("DUEDAY_MAILS_OFF", "paid")]).await;
    let bills = tables::PAYMENTS_PER_MONTH.map(|payments| bill(&stack, &prices, &one, &idle, payments));
    let without_receipts = tables::PAYMENTS_PER_MONTH
        .map(|payments| bill(&stack, &prices, &without_receipts, &idle, payments).by_payments());
    let core = Stack::with_parts("core");
    let [core_one, core_idle] = [&one, &idle].map(workload::counts_of_core);
    let core = tables::PAYMENTS_PER_MONTH.map(|payments| bill(&core, &prices, &core_one, &core_idle, payments));
    let million = bill(&stack, &prices, &one, &idle, 1e6).by_payments();
    let path = root().join("docs/costs.md");
    let generated = tables::render(&core, &bills, without_receipts, &one, &prices);
    testkit::check_generated_section(&path, TABLES_BEGIN, TABLES_END, &generated);
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let costs = tables::sentence_of_readme(&core, &bills);
    assert!(readme.contains(&costs), "README.md must contain: {costs}");
    assert!(
        million <= MAX_DOLLARS_FOR_A_MILLION_PAYMENTS,
        "a million reminded payments cost {million:.2} dollars, more than {MAX_DOLLARS_FOR_A_MILLION_PAYMENTS}"
    );
}
