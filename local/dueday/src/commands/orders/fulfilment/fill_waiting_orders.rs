//! Fills waiting orders (deducts their products from the stock) after a command that adds stock or sets an address.

use chrono::{DateTime, Utc};
use orders_desk::{FillCounts, OrderDesk};
use serde::Serialize;

use crate::context::CommandContext;
use crate::terminal::output::format_count;
use crate::{Exit, Failure};

/// The result of filling waiting orders. On AWS, the orders function fills the orders later, so both numbers are
/// `None`.
#[derive(Serialize)]
pub struct FillReport {
    /// The number of waiting orders for which the stock was reserved.
    pub filled: Option<u32>,
    /// The number of orders and fill tasks that failed with an error.
    pub failed: Option<u32>,
}

impl FillReport {
    /// Completes all fill tasks (a fill task tries to fill the waiting orders of a product or a customer). Does nothing
    /// if the command uses a table on AWS.
    pub async fn fill_waiting_orders(context: &CommandContext, desk: &OrderDesk) -> Self {
        if context.options.table().is_some() {
            return Self { filled: None, failed: None };
        }
        let FillCounts { filled, failed, .. } = desk.fill_waiting_orders(DateTime::<Utc>::MAX_UTC).await;
        Self { filled: Some(filled), failed: Some(failed) }
    }

    /// Returns a text such as `3 waiting orders were filled`.
    pub fn text(&self) -> String {
        let Some(filled) = self.filled else {
            return "the orders function fills the waiting orders within a few minutes".to_owned();
        };
        let verb = if filled == 1 { "was" } else { "were" };
        let failed = match self.failed {
            None | Some(0) => String::new(),
            Some(failed) => format!(", {failed} could not be processed: try again"),
        };
        format!("{} {verb} filled{failed}", format_count(filled.into(), "waiting order"))
    }

    /// Returns [`Exit::Attention`] if an order or a fill task failed with an error. An order that still waits for stock
    /// has not failed.
    pub fn exit(&self) -> Exit {
        Exit::done_if(self.failed.unwrap_or_default() == 0)
    }
}

/// Fills waiting orders after a change of stock or of an address, and prints the text `change` with the number of
/// filled orders. Returns [`Exit::Attention`] if an order or a fill task failed with an error.
pub async fn fill_orders_after_change(
    context: &CommandContext,
    desk: &OrderDesk,
    change: &str,
) -> Result<Exit, Failure> {
    let report = FillReport::fill_waiting_orders(context, desk).await;
    context.print(&report, || format!("{change}; {}\n", report.text()))?;
    Ok(report.exit())
}
