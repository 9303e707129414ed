//! Gives customers to another representative.

use billing::AccountId;
use orders::EmployeeId;
use orders_desk::OrderDesk;
use serde::Serialize;

use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::{Exit, Failure};

/// The output of `dueday orders hand-over` with `--json`.
#[derive(Serialize)]
struct HandOverReport {
    /// The number of customers whom the new representative was given.
    customers: usize,
}

/// Checks that `account` exists, because the order desk would create a customer for any account id.
pub async fn require_account(open_table: &OpenTable, account: &AccountId) -> Result<(), Failure> {
    match open_table.table.get_account(account).await? {
        Some(_) => Ok(()),
        None => Err(Failure::Refused(format!("there is no account {account}"))),
    }
}

/// Gives the customers `accounts` to `representative`.
pub async fn hand_over_customers(
    context: &CommandContext,
    desk: &OrderDesk,
    open_table: &OpenTable,
    accounts: &[AccountId],
    representative: &EmployeeId,
) -> Result<Exit, Failure> {
    for account in accounts {
        require_account(open_table, account).await?;
    }
    for account in accounts {
        desk.hand_over_customer(account, representative).await?;
    }
    let customers = accounts.len();
    context.print(&HandOverReport { customers }, || {
        let names: Vec<&str> = accounts.iter().map(AccountId::as_str).collect();
        format!("{representative} now represents {}\n", names.join(", "))
    })?;
    Ok(Exit::Done)
}
