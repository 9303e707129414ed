//! The steps of an order after it is placed, and the correction of its address.

use dynamo::{IdempotencyKeyReuse, IdempotentRequest, StoredResponse};
use orders::{Order, OrderId, OrderLine, OrderStep, Parcel, ShippingAddress};
use orders_table::{OrderChangeRecords, WriteOutcome};

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};

/// The outcome of a request to advance an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AdvanceOutcome {
    /// The order has the requested status now. Contains the order and its lines.
    Done(Box<Order>, Vec<OrderLine>),
    /// The saved response to an earlier request with the same idempotency key.
    Replayed(IdempotencyKeyReuse),
}

impl OrderDesk {
    /// Changes the status of an order as `step` requests. If the order already has the requested status, returns the
    /// order without a change.
    ///
    /// # Errors
    /// - The order does not exist, or cannot change to this status.
    /// - The order already has this status, but was shipped with another parcel, or was returned with sellable
    ///   products.
    /// - Other requests changed the same items at the same time.
    /// - The table cannot be used.
    pub async fn advance_order(&self, id: OrderId, step: impl Into<OrderStep>) -> Result<Order, DeskError> {
        match self.advance_idempotent(id, &step.into(), None, |_, _| String::new(), |_| Ok::<_, DeskError>(())).await? {
            AdvanceOutcome::Done(order, _) => Ok(*order),
            AdvanceOutcome::Replayed(_) => Err(DeskError::WriteConflict { item: format!("the order {id}") }),
        }
    }

    /// Like [`OrderDesk::advance_order`], but changes the order only if `precondition` returns `Ok` for the stored
    /// order. If `request` is set, the response (`to_json` of the order and its lines, without personal data) is saved
    /// under the idempotency key of `request`, and a repeated request gets the saved response.
    ///
    /// # Errors
    /// The errors of [`OrderDesk::advance_order`], and the error of `precondition`.
    pub async fn advance_idempotent<E: From<DeskError>>(
        &self,
        id: OrderId,
        step: &OrderStep,
        request: Option<&IdempotentRequest>,
        to_json: impl Fn(&Order, &[OrderLine]) -> String,
        precondition: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<AdvanceOutcome, E> {
        let with_response = |order: &Order, lines: &[OrderLine]| {
            // The saved response outlives an erasure of the account, so it contains no address and no tracking number.
            let json = || to_json(&order.without_personal_data(), lines);
            let response = || StoredResponse { json: json(), version: order.version };
            request.map(|request| IdempotentRequest { response: response(), ..request.clone() })
        };
        for _ in 0..MAX_ATTEMPTS {
            if let Some(request) = request
                && let Some(replayed) = self.table.saved_response(request).await.map_err(DeskError::from)?
            {
                return Ok(AdvanceOutcome::Replayed(replayed));
            }
            let stored = self.table.get_order(id).await.map_err(DeskError::from)?;
            let (before, lines) = stored.ok_or(DeskError::NoOrder(id))?;
            precondition(&before)?;
            if before.status == step.next {
                let parcel = before.shipment.as_ref().map(|shipment| &shipment.parcel);
                if step.parcel != Parcel::default() && parcel.is_some_and(|parcel| *parcel != step.parcel) {
                    return Err(DeskError::OtherParcel(id).into());
                }
                if step.is_unsellable && !before.is_written_off {
                    return Err(DeskError::AlreadyRestored(id).into());
                }
                let saved = match with_response(&before, &lines) {
                    Some(request) => self.table.save_response(&before, &request).await.map_err(DeskError::from)?,
                    None => WriteOutcome::Done,
                };
                match saved {
                    WriteOutcome::Done => return Ok(AdvanceOutcome::Done(Box::new(before), lines)),
                    WriteOutcome::NoAccount | WriteOutcome::Refused(_) => continue,
                }
            }
            let advanced = before.advanced_by(step, self.clock.now()).map_err(DeskError::from)?;
            let after = Order { version: before.version.saturating_add(1), ..advanced };
            let request = with_response(&after, &lines);
            let records = OrderChangeRecords { request: request.as_ref(), ..OrderChangeRecords::default() };
            let change = self.clock.ulid();
            let written = self.table.change_order(&before, &after, &lines, records, change).await;
            if written.map_err(DeskError::from)? == WriteOutcome::Done {
                return Ok(AdvanceOutcome::Done(Box::new(after), lines));
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }

    /// Corrects the address that an order is shipped to, if `precondition` returns `Ok` for the stored order. If the
    /// order waits for an address, also writes the fill task of its customer. Returns the changed order and its lines.
    ///
    /// # Errors
    /// - The order does not exist, or was shipped, returned or cancelled.
    /// - The region, the country or the account does not exist.
    /// - Other requests changed the order at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored order.
    pub async fn correct_address<E: From<DeskError>>(
        &self,
        id: OrderId,
        address: ShippingAddress,
        precondition: impl Fn(&Order) -> Result<(), E>,
    ) -> Result<(Order, Vec<OrderLine>), E> {
        let mut is_checked = false;
        for _ in 0..MAX_ATTEMPTS {
            let stored = self.table.get_order(id).await.map_err(DeskError::from)?;
            let (before, lines) = stored.ok_or(DeskError::NoOrder(id))?;
            precondition(&before)?;
            if !is_checked {
                self.check_address(&address).await?;
                is_checked = true;
            }
            let after = before.with_corrected_address(address.clone()).map_err(DeskError::from)?;
            if after == before {
                return Ok((before, lines));
            }
            let after = Order { version: before.version.saturating_add(1), ..after };
            match self.table.correct_address(&before, &after, self.clock.ulid()).await.map_err(DeskError::from)? {
                WriteOutcome::Done => return Ok((after, lines)),
                WriteOutcome::NoAccount => return Err(DeskError::NoAccount(after.customer).into()),
                WriteOutcome::Refused(_) => {}
            }
        }
        Err(DeskError::WriteConflict { item: format!("the order {id}") }.into())
    }
}
