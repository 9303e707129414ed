//! A gateway or a mailer that faults are injected into.

use std::sync::Arc;

use async_trait::async_trait;
use billing::{GatewayAccount, GatewayToken, Payment};
use chrono::{DateTime, Utc};
use gateways::{
    ChargeAnswer, ChargeRequest, DisputeMade, GatewayError, PaymentGateway, RefundAnswer, RefundMade, RefundRequest,
    Refunds,
};
use mail::{Mail, MailError, Mailer};

use emulator::{Fault, Injector, Operation};

const NO_ANSWER: &str = "no answer";

/// A gateway or a mailer behind an injector.
#[derive(Debug)]
pub struct Faulty<T: ?Sized> {
    pub inner: Arc<T>,
    pub injector: Arc<Injector>,
}

impl<T: ?Sized> Faulty<T> {
    /// `inner` behind `injector`.
    pub fn new(inner: Arc<T>, injector: Arc<Injector>) -> Self {
        Self { inner, injector }
    }
}

/// The gateway's word for its refusal; `None` if it gave no answer.
fn refusal(fault: Fault) -> Option<String> {
    match fault {
        Fault::Refused(reason) | Fault::Cancelled(reason) => Some(reason.to_owned()),
        Fault::LostBefore | Fault::LostAfter | Fault::CrashBefore | Fault::CrashAfter => None,
    }
}

#[async_trait]
impl<T: PaymentGateway + ?Sized> PaymentGateway for Faulty<T> {
    async fn account(&self) -> Result<GatewayAccount, GatewayError> {
        self.inner.account().await
    }

    async fn create_marker(&self) -> Result<Option<GatewayAccount>, GatewayError> {
        self.inner.create_marker().await
    }

    async fn has_marker(&self, named: &GatewayAccount) -> Result<Option<bool>, GatewayError> {
        self.inner.has_marker(named).await
    }

    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let failed = |fault| match refusal(fault) {
            Some(reason) => ChargeAnswer::Unusable { reason },
            None => ChargeAnswer::Unknown { reason: NO_ANSWER.to_owned() },
        };
        self.injector.call(Operation::Charge, failed, self.inner.charge(request)).await
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, GatewayError> {
        let failed = |fault| {
            Err(match refusal(fault) {
                Some(reason) => GatewayError::Unusable { reason },
                None => GatewayError::Unknown { reason: NO_ANSWER.to_owned() },
            })
        };
        self.injector.call(Operation::PaymentsOf, failed, self.inner.payments_of(customer, since)).await
    }

    async fn payment(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        let failed = |_| Err(GatewayError::Unknown { reason: NO_ANSWER.to_owned() });
        self.injector.call(Operation::PaymentsOf, failed, self.inner.payment(id)).await
    }
}

#[async_trait]
impl<T: Refunds + ?Sized> Refunds for Faulty<T> {
    async fn refund(&self, request: &RefundRequest) -> RefundAnswer {
        let failed = |fault| {
            RefundAnswer::NotKnown(match refusal(fault) {
                Some(reason) => GatewayError::Unusable { reason },
                None => GatewayError::Unknown { reason: NO_ANSWER.to_owned() },
            })
        };
        self.injector.call(Operation::Refund, failed, self.inner.refund(request)).await
    }

    async fn refunds_of(&self, payment: &GatewayToken) -> Result<Vec<RefundMade>, GatewayError> {
        let failed = |_| Err(GatewayError::Unknown { reason: NO_ANSWER.to_owned() });
        self.injector.call(Operation::RefundsOf, failed, self.inner.refunds_of(payment)).await
    }

    async fn refunds_since(
        &self,
        since: DateTime<Utc>,
    ) -> Result<Option<Vec<(GatewayToken, RefundMade)>>, GatewayError> {
        self.inner.refunds_since(since).await
    }

    async fn disputes_since(&self, since: DateTime<Utc>) -> Result<Option<Vec<DisputeMade>>, GatewayError> {
        self.inner.disputes_since(since).await
    }
}

#[async_trait]
impl<T: Mailer + ?Sized> Mailer for Faulty<T> {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let failed = |fault| {
            let reason = refusal(fault).unwrap_or_else(|| NO_ANSWER.to_owned());
            Err(MailError { reason, is_transient: true })
        };
        self.injector.call(Operation::SendMail, failed, self.inner.send(mail)).await
    }
}
