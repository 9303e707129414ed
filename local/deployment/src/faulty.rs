//! A wrapper that injects faults into the calls of a gateway or a mailer.

use std::sync::Arc;

use async_trait::async_trait;
use billing::{AmountRules, GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use emulator::{ExternalOperation, Fault, FaultInjector};
use gateways::{
    ChargeRequest, ChargeResponse, DisputeDetails, GatewayDispute, GatewayError, GatewayRefund, ListPage,
    PaymentGateway, RefundRequest, RefundResponse, Refunds, TimeRange,
};
use mail::{Mail, MailError, MailFault, Mailer};

/// The reason in the error of a call that gets no response because of an injected fault.
const NO_RESPONSE_REASON: &str = "no response";

/// A gateway or a mailer whose calls may have injected faults.
#[derive(Debug)]
pub struct FaultyService<T: ?Sized> {
    pub inner: Arc<T>,
    pub injector: Arc<FaultInjector>,
}

impl<T: ?Sized> FaultyService<T> {
    /// Wraps the gateway or mailer `inner`. `injector` decides which calls have a fault.
    pub fn new(inner: Arc<T>, injector: Arc<FaultInjector>) -> Self {
        Self { inner, injector }
    }
}

/// Returns the reason with which the gateway or mailer rejects a call that has this fault. Returns `None` if the call
/// gets no response.
fn rejection_reason(fault: Fault) -> Option<String> {
    match fault {
        Fault::Refused(reason) | Fault::Cancelled(reason) => Some(reason.to_owned()),
        Fault::LostBefore | Fault::LostAfter | Fault::CrashBefore | Fault::CrashAfter => None,
    }
}

#[async_trait]
impl<T: PaymentGateway + ?Sized> PaymentGateway for FaultyService<T> {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.inner.account().await
    }

    async fn create_marker(&self) -> Result<Option<GatewayAccount>, GatewayError> {
        self.inner.create_marker().await
    }

    async fn has_marker(&self, named: &GatewayAccount) -> Result<Option<bool>, GatewayError> {
        self.inner.has_marker(named).await
    }

    async fn amount_rules(&self) -> Result<AmountRules, GatewayError> {
        self.inner.amount_rules().await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeResponse {
        let failed = |fault| match rejection_reason(fault) {
            Some(reason) => ChargeResponse::Unusable { reason },
            None => ChargeResponse::Unknown { reason: NO_RESPONSE_REASON.to_owned() },
        };
        self.injector.call_with_faults(ExternalOperation::Charge, failed, self.inner.charge(request)).await
    }

    async fn payments_of_customer(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let failed = |fault| {
            Err(match rejection_reason(fault) {
                Some(reason) => GatewayError::Unusable { reason },
                None => GatewayError::Unknown { reason: NO_RESPONSE_REASON.to_owned() },
            })
        };
        self.injector
            .call_with_faults(ExternalOperation::PaymentsOf, failed, self.inner.payments_of_customer(customer, since))
            .await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        let failed = |_| Err(GatewayError::Unknown { reason: NO_RESPONSE_REASON.to_owned() });
        self.injector.call_with_faults(ExternalOperation::PaymentsOf, failed, self.inner.payment(id)).await
    }
}

#[async_trait]
impl<T: Refunds + ?Sized> Refunds for FaultyService<T> {
    async fn refund(&self, request: &RefundRequest) -> RefundResponse {
        let failed = |fault| {
            RefundResponse::Unknown(match rejection_reason(fault) {
                Some(reason) => GatewayError::Unusable { reason },
                None => GatewayError::Unknown { reason: NO_RESPONSE_REASON.to_owned() },
            })
        };
        self.injector.call_with_faults(ExternalOperation::Refund, failed, self.inner.refund(request)).await
    }

    async fn refunds_of_payment(&self, payment: &GatewayToken) -> Result<Vec<GatewayRefund>, GatewayError> {
        let failed = |_| Err(GatewayError::Unknown { reason: NO_RESPONSE_REASON.to_owned() });
        self.injector
            .call_with_faults(ExternalOperation::RefundsOf, failed, self.inner.refunds_of_payment(payment))
            .await
    }

    async fn refunds_since(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        self.inner.refunds_since(since).await
    }

    async fn disputes_since(&self, since: DateTime<Utc>) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        self.inner.disputes_since(since).await
    }

    async fn payments_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<Payment>>, GatewayError> {
        let failed = |_| Err(GatewayError::Unknown { reason: NO_RESPONSE_REASON.to_owned() });
        self.injector
            .call_with_faults(ExternalOperation::PaymentsOf, failed, self.inner.payments_in_range(range, after))
            .await
    }

    async fn refunds_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<(GatewayToken, GatewayRefund)>>, GatewayError> {
        let failed = |_| Err(GatewayError::Unknown { reason: NO_RESPONSE_REASON.to_owned() });
        self.injector
            .call_with_faults(ExternalOperation::RefundsOf, failed, self.inner.refunds_in_range(range, after))
            .await
    }

    async fn disputes_in_range(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<Option<ListPage<GatewayDispute>>, GatewayError> {
        self.inner.disputes_in_range(range, after).await
    }

    async fn dispute_details(&self, id: &GatewayToken) -> Result<Option<DisputeDetails>, GatewayError> {
        self.inner.dispute_details(id).await
    }
}

#[async_trait]
impl<T: Mailer + ?Sized> Mailer for FaultyService<T> {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let failed = |fault| {
            let reason = rejection_reason(fault).unwrap_or_else(|| NO_RESPONSE_REASON.to_owned());
            Err(MailError::new(MailFault::ServiceTransient, reason))
        };
        self.injector.call_with_faults(ExternalOperation::SendMail, failed, self.inner.send(mail)).await
    }
}
