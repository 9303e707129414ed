//! Checks that the gateway's API key belongs to the gateway account that receives a table's payments.

use crate::Charger;
use billing::GatewayAccount;
use gateways::GatewayError;
use store::{Settings, Table, TableError};

impl Charger {
    /// Returns the reason why the payments of `table` must not be charged at this gateway: the table's payments are
    /// made at another account, or the account of the API key is unknown. Returns `None` if the payments may be
    /// charged. If the table's settings contain no account yet, stores the account of the API key in the settings.
    pub async fn reason_to_refuse_gateway_account(
        &self,
        table: &Table,
        settings: &Settings,
    ) -> Result<Option<String>, TableError> {
        let stored = settings.gateway.clone();
        if stored.is_some() && stored.as_ref() == self.marker.get() {
            return Ok(None);
        }
        let has_marker = match &stored {
            Some(stored) => self.gateway.has_marker(stored).await,
            None => Ok(None),
        };
        match (stored, has_marker) {
            (stored, Ok(Some(true))) => {
                // Another task of this process may have set the same marker already.
                if let Some(stored) = stored {
                    let _ = self.marker.set(stored);
                }
                Ok(None)
            }
            (Some(stored), Ok(Some(false))) => Ok(Some(other_account_message(&stored, "the account of this key"))),
            (_, Err(error)) => Ok(Some(unknown_account_message(&error))),
            (stored, Ok(_)) => match self.account.get_or_try_init(|| self.gateway.account()).await {
                Ok(current) => {
                    let stored = match stored {
                        Some(stored) => stored,
                        None => table.set_gateway(None, current, None).await?,
                    };
                    Ok((stored != *current).then(|| other_account_message(&stored, &current.to_string())))
                }
                Err(error) => match stored {
                    None => self.store_marker(table, &error).await,
                    Some(stored) if matches!(error, GatewayError::Unusable { .. }) => Ok(Some(format!(
                        "{}. The payments of this table are made at {stored}; a key without permission to read the account needs \
                         `dueday move-gateway` once",
                        unknown_account_message(&error)
                    ))),
                    Some(_) => Ok(Some(unknown_account_message(&error))),
                },
            },
        }
    }

    /// Creates a marker at the gateway, and stores it in the table's settings. A marker is a customer by which runs
    /// recognize the gateway account, because the API key has no permission to read the account. Returns `None` if both
    /// steps succeed, otherwise the reason why the table's payments must not be charged. `refusal` is the error that
    /// the gateway returned when this run tried to read the account.
    async fn store_marker(&self, table: &Table, refusal: &GatewayError) -> Result<Option<String>, TableError> {
        if !matches!(refusal, GatewayError::Unusable { .. }) {
            return Ok(Some(unknown_account_message(refusal)));
        }
        let marker = match self.gateway.create_marker().await {
            Ok(Some(marker)) => marker,
            Ok(None) => return Ok(Some(unknown_account_message(refusal))),
            Err(error) => return Ok(Some(unknown_account_message(&error))),
        };
        let stored = table.set_gateway(None, &marker, None).await?;
        if stored == marker {
            return Ok(None);
        }
        // Another worker has stored an account first.
        match self.gateway.has_marker(&stored).await {
            Ok(Some(true)) => Ok(None),
            Ok(_) => Ok(Some(other_account_message(&stored, "the account of this key"))),
            Err(error) => Ok(Some(unknown_account_message(&error))),
        }
    }
}

/// Returns the message that the table's payments are made at `stored`, but this run would charge at `current`.
fn other_account_message(stored: &GatewayAccount, current: &str) -> String {
    format!(
        "the payments of this table are made at {stored}, and this run would charge at {current}, which does not have them; \
         `dueday move-gateway` moves the table"
    )
}

/// Returns the message that the gateway account is unknown, because the gateway returned `error`.
fn unknown_account_message(error: &GatewayError) -> String {
    format!("the account of the gateway is unknown: {error}")
}
