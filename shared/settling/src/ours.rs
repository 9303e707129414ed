//! Whether a gateway is the one that takes a table's payments: what is given or asked of another one would be of nobody here.

use std::sync::Arc;

use tokio::sync::OnceCell;

use gateways::{GatewayError, PaymentGateway};
use store::{Table, TableError};

/// Asks once, and remembers.
#[derive(Clone, Debug, Default)]
pub struct Ours(Arc<OnceCell<()>>);

impl Ours {
    /// That the payments of `table` are made at `gateway`, or nowhere yet.
    ///
    /// # Errors
    /// [`GatewayError::Unusable`] if they are made elsewhere; that one of the two gave no answer.
    pub async fn check<E: From<TableError> + From<GatewayError>>(
        &self,
        table: &Table,
        gateway: &dyn PaymentGateway,
    ) -> Result<(), E> {
        if self.0.initialized() {
            return Ok(());
        }
        let Some(named) = table.get_settings().await?.and_then(|settings| settings.gateway) else { return Ok(()) };
        let ours = match gateway.has_marker(&named).await? {
            Some(true) => named.clone(),
            Some(false) => {
                let reason =
                    format!("the payments of this table are made at {named}, and this key is of another account");
                return Err(GatewayError::Unusable { reason }.into());
            }
            None => gateway.account().await?,
        };
        if named != ours {
            let reason = format!("the payments of this table are made at {named}, and this is {ours}");
            return Err(GatewayError::Unusable { reason }.into());
        }
        // Whoever else has found so meanwhile has found the same.
        let _ = self.0.set(());
        Ok(())
    }
}
