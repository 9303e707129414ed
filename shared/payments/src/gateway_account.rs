//! Whether the gateway charges for the account that takes a table's payments.

use super::ChargeDue;
use billing::GatewayAccount;
use gateways::GatewayError;
use store::{Table, TableError};

impl ChargeDue {
    /// Returns why nothing of `table` may be charged at this gateway: its payments are made at another account, or the account is not
    /// known. The first run names the account in the table's settings.
    pub(super) async fn refuses_account_of(&self, table: &Table) -> Result<Option<String>, TableError> {
        let named = table.get_settings().await?.and_then(|settings| settings.gateway);
        if named.is_some() && named.as_ref() == self.marker.get() {
            return Ok(None);
        }
        let is_ours = match &named {
            Some(named) => self.gateway.has_marker(named).await,
            None => Ok(None),
        };
        match (named, is_ours) {
            (named, Ok(Some(true))) => {
                // Another task of this process may have found the same meanwhile.
                if let Some(named) = named {
                    let _ = self.marker.set(named);
                }
                Ok(None)
            }
            (Some(named), Ok(Some(false))) => Ok(Some(elsewhere(&named, "the account of this key"))),
            (_, Err(error)) => Ok(Some(unknown(&error))),
            (named, Ok(_)) => match self.account.get_or_try_init(|| self.gateway.account()).await {
                Ok(ours) => {
                    let named = match named {
                        Some(named) => named,
                        None => table.set_gateway(None, ours).await?,
                    };
                    Ok((named != *ours).then(|| elsewhere(&named, &ours.to_string())))
                }
                Err(error) => match named {
                    None => self.name_by_marker(table, &error).await,
                    Some(named) if matches!(error, GatewayError::Unusable { .. }) => Ok(Some(format!(
                        "{}. The payments of this table are made at {named}; a key that may not read the account needs \
                         `dueday move-gateway` once",
                        unknown(&error)
                    ))),
                    Some(_) => Ok(Some(unknown(&error))),
                },
            },
        }
    }

    /// Names the account of a key that may not read it by a marker. Returns why that is not possible: `refusal`, if the gateway has no
    /// markers.
    async fn name_by_marker(&self, table: &Table, refusal: &GatewayError) -> Result<Option<String>, TableError> {
        if !matches!(refusal, GatewayError::Unusable { .. }) {
            return Ok(Some(unknown(refusal)));
        }
        let marker = match self.gateway.create_marker().await {
            Ok(Some(marker)) => marker,
            Ok(None) => return Ok(Some(unknown(refusal))),
            Err(error) => return Ok(Some(unknown(&error))),
        };
        let named = table.set_gateway(None, &marker).await?;
        if named == marker {
            return Ok(None);
        }
        // Another worker has named the account meanwhile.
        match self.gateway.has_marker(&named).await {
            Ok(Some(true)) => Ok(None),
            Ok(_) => Ok(Some(elsewhere(&named, "the account of this key"))),
            Err(error) => Ok(Some(unknown(&error))),
        }
    }
}

fn elsewhere(named: &GatewayAccount, ours: &str) -> String {
    format!(
        "the payments of this table are made at {named}, and this run would charge at {ours}, which knows nothing of them; \
         `dueday move-gateway` moves the table"
    )
}

fn unknown(error: &GatewayError) -> String {
    format!("whose account the gateway charges for is not known: {error}")
}
