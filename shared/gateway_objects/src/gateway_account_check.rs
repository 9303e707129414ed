//! Checks that the gateway's API key belongs to the gateway account that receives a table's payments. With the key of
//! another account, refunds and look-ups would concern the payments of another deployment.

use std::sync::Arc;

use tokio::sync::OnceCell;

use gateways::{GatewayError, PaymentGateway};
use store::{Table, TableError};

/// The check that a table's payments are made at the gateway account of the API key. After the check has succeeded
/// once, it is not repeated.
#[derive(Clone, Debug, Default)]
pub struct GatewayAccountCheck(Arc<OnceCell<()>>);

impl GatewayAccountCheck {
    /// Checks that the payments of `table` are made at the account of `gateway`. Also succeeds if the table has no
    /// gateway account yet.
    ///
    /// # Errors
    /// - [`GatewayError::Unusable`] if the payments are made at another account.
    /// - [`TableError`] or another [`GatewayError`] if the settings or the account could not be read.
    pub async fn check<E: From<TableError> + From<GatewayError>>(
        &self,
        table: &Table,
        gateway: &dyn PaymentGateway,
    ) -> Result<(), E> {
        if self.0.initialized() {
            return Ok(());
        }
        let Some(stored) = table.get_settings().await?.and_then(|settings| settings.gateway) else { return Ok(()) };
        let current = match gateway.has_marker(&stored).await? {
            Some(true) => stored.clone(),
            Some(false) => {
                let reason =
                    format!("the payments of this table are made at {stored}, and this key belongs to another account");
                return Err(GatewayError::Unusable { reason }.into());
            }
            None => gateway.account().await?,
        };
        if stored != current {
            let reason = format!("the payments of this table are made at {stored}, and this key belongs to {current}");
            return Err(GatewayError::Unusable { reason }.into());
        }
        let _ = self.0.set(());
        Ok(())
    }
}
