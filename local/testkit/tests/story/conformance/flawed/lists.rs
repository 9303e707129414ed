//! Lists and single payments of the flawed gateways.

use std::collections::BTreeSet;

use billing::{GatewayToken, Money, Payment, PaymentStatus};
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use clock::Clock as _;
use gateways::{ChargeRequest, GatewayError, GatewayRefund, ListPage, PaymentGateway as _, Refunds as _, TimeRange};
use sandbox::LedgerPayment;

use super::{Flaw, FlawedGateway};

/// The number of payments or refunds in a full list page of a time range.
const RANGE_PAGE_SIZE: usize = 50;

/// Returns `at`, or the next time that is a multiple of `unit`.
fn round_up(at: DateTime<Utc>, unit: TimeDelta) -> DateTime<Utc> {
    let truncated = at.duration_trunc(unit).unwrap();
    if truncated == at { at } else { truncated + unit }
}

impl FlawedGateway {
    /// Returns the customers whose payments this gateway lists in response to a request for the payments of `customer`.
    fn customers_to_list(&self, customer: &GatewayToken) -> BTreeSet<GatewayToken> {
        let all_customers = || self.payments().into_iter().map(|payment| payment.request.payment_method.customer);
        match self.flaw {
            Flaw::ListsAllCustomers => all_customers().collect(),
            Flaw::MatchesCustomersByPrefix => {
                all_customers().filter(|other| other.as_str().starts_with(customer.as_str())).collect()
            }
            Flaw::MatchesCustomersWithoutCase => {
                all_customers().filter(|other| other.as_str().eq_ignore_ascii_case(customer.as_str())).collect()
            }
            _ => BTreeSet::from([customer.clone()]),
        }
    }

    /// Returns the refunded amount of `payment` in minor units.
    fn refunded_amount(&self, payment: &Payment) -> i64 {
        self.sandbox.refunds_made(&payment.id).iter().map(|refund| refund.amount.minor()).sum()
    }

    /// Returns `payment` as this gateway lists it, or `None` if the gateway does not list it.
    fn change_listed_payment(&self, payment: Payment) -> Option<Payment> {
        let with_amount =
            |minor: i64| Payment { amount: Money::new(minor, payment.amount.currency()), ..payment.clone() };
        let is_declined = matches!(payment.status, PaymentStatus::Declined(_));
        let was_read = self.state().read.contains(&payment.id);
        let age = self.clock.now() - payment.created_at;
        match self.flaw {
            Flaw::ListsDeclinesAsProcessing if is_declined => {
                Some(Payment { status: PaymentStatus::Processing, ..payment })
            }
            Flaw::PaysDeclinesAfterThreeSeconds if is_declined && age >= TimeDelta::seconds(3) => {
                Some(Payment { status: PaymentStatus::Succeeded, ..payment })
            }
            Flaw::PaysDeclinesAfterTwoMinutes if is_declined && age >= TimeDelta::minutes(2) => {
                Some(Payment { status: PaymentStatus::Succeeded, ..payment })
            }
            Flaw::ConfirmsDeclinesWhenRead if is_declined && was_read => {
                Some(Payment { status: PaymentStatus::Succeeded, ..payment })
            }
            Flaw::ChangesCreationTimeWhenRead if was_read => {
                Some(Payment { created_at: payment.created_at + TimeDelta::seconds(1), ..payment })
            }
            Flaw::HidesRefundedPayments if self.refunded_amount(&payment) > 0 => None,
            Flaw::HidesProcessingPayments if payment.status == PaymentStatus::Processing => None,
            Flaw::StoresAmountsInSinglePrecision => Some(with_amount(payment.amount.minor() as f32 as i64)),
            Flaw::ListsWrongAmounts => Some(with_amount(payment.amount.minor() - 1)),
            Flaw::ListsAmountsAfterRefunds => {
                Some(with_amount(payment.amount.minor() - self.refunded_amount(&payment)))
            }
            _ => Some(self.change_metadata_or_time(payment)),
        }
    }

    /// Returns `payment` with the metadata and the time that this gateway stores.
    pub(super) fn change_metadata_or_time(&self, payment: Payment) -> Payment {
        let account = payment.account.as_str();
        match self.flaw {
            Flaw::ReportsLocalTimeAsUtc => Payment { created_at: payment.created_at + TimeDelta::hours(2), ..payment },
            Flaw::StoresDayOfChargeAsDueDate => Payment { due_on: payment.created_at.date_naive(), ..payment },
            Flaw::StoresAccountsInLowerCase => Payment { account: account.to_lowercase().parse().unwrap(), ..payment },
            Flaw::StoresFortyCharactersOfAccounts => {
                let stored: String = account.chars().take(40).collect();
                Payment { account: stored.parse().unwrap(), ..payment }
            }
            _ => payment,
        }
    }

    /// Returns the successful payment that [`Flaw::PaysRejectedRequestsLater`] lists for a rejected request.
    fn payment_of_rejected_request(&self, (request, at): &(ChargeRequest, DateTime<Utc>)) -> Payment {
        let id = format!("pay_late_{}", request.attempt_no).parse().unwrap();
        LedgerPayment { id, request: request.clone(), status: PaymentStatus::Succeeded, created_at: *at }
            .payment(PaymentStatus::Succeeded)
    }

    /// Lists the payments of `customer` since `since`, changed by the flaw of this gateway.
    pub(super) async fn list_with_flaw(
        &self,
        customer: &GatewayToken,
        since: DateTime<Utc>,
    ) -> Result<Vec<Payment>, GatewayError> {
        let since = match self.flaw {
            Flaw::ListsOnlyTheLastTenMinutes => since.max(self.clock.now() - TimeDelta::minutes(10)),
            Flaw::RoundsSinceUpToSeconds => round_up(since, TimeDelta::seconds(1)),
            Flaw::RoundsSinceUpToDays => round_up(since, TimeDelta::days(1)),
            Flaw::ReadsSinceAsLocalTime => since + TimeDelta::hours(2),
            _ => since,
        };
        let mut listed = Vec::new();
        for customer in self.customers_to_list(customer) {
            listed.extend(self.sandbox.payments_of_customer(&customer, since).await?);
        }
        let mut listed: Vec<Payment> =
            listed.into_iter().filter_map(|payment| self.change_listed_payment(payment)).collect();
        match self.flaw {
            Flaw::ListsOnlyTheFirstPage => listed.truncate(100),
            Flaw::ListsAPaymentOnTwoPages => listed.extend(listed.get(99).cloned()),
            _ => {}
        }
        if self.flaw != Flaw::PaysRejectedRequestsLater {
            return Ok(listed);
        }
        let three_seconds_ago = self.clock.now() - TimeDelta::seconds(3);
        let state = self.state();
        let late = state
            .rejected
            .iter()
            .filter(|(request, at)| *at <= three_seconds_ago && request.payment_method.customer == *customer);
        listed.extend(late.map(|rejected| self.payment_of_rejected_request(rejected)));
        Ok(listed)
    }

    /// Returns the payment `id`, changed by the flaw of this gateway.
    pub(super) async fn read_with_flaw(&self, id: &GatewayToken) -> Result<Option<Payment>, GatewayError> {
        if self.flaw == Flaw::ReturnsWrongPaymentById {
            return Ok(self.payments().first().map(|payment| payment.payment(PaymentStatus::Succeeded)));
        }
        let read = self.sandbox.payment(id).await?.and_then(|payment| self.change_listed_payment(payment));
        self.state().read.insert(id.clone());
        Ok(read)
    }

    /// Returns the time range that this gateway uses instead of `range`.
    fn range_with_flaw(&self, range: &TimeRange) -> TimeRange {
        let millisecond = TimeDelta::milliseconds(1);
        match self.flaw {
            Flaw::ExcludesStartOfRange => TimeRange { from: range.from + millisecond, ..*range },
            Flaw::IncludesEndOfRange => TimeRange { to: range.to + millisecond, ..*range },
            _ => *range,
        }
    }

    /// Returns the list page of `all` after the position `after`, which is the number of earlier items.
    fn list_page<T>(&self, all: Vec<T>, after: Option<&str>) -> ListPage<T> {
        let (count, start) = (all.len(), after.map_or(0, |after| after.parse().unwrap()));
        let end = start + RANGE_PAGE_SIZE;
        let next = match self.flaw {
            Flaw::RefersToTheLastRangePageForever if end >= count => Some(start),
            Flaw::AddsEmptyRangePagesForever => Some(end),
            _ if end >= count => None,
            Flaw::SkipsAPaymentBetweenRangePages => Some(end + 1),
            Flaw::RepeatsAPaymentOnTheNextRangePage => Some(end - 1),
            _ => Some(end),
        };
        let items = all.into_iter().skip(start).take(RANGE_PAGE_SIZE).collect();
        ListPage { items, unreadable: Vec::new(), next: next.map(|next| next.to_string()) }
    }

    /// Returns a list page of the payments in `range`, changed by the flaw of this gateway.
    pub(super) async fn payments_in_range_with_flaw(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<ListPage<Payment>, GatewayError> {
        let (range, mut all, mut position) = (self.range_with_flaw(range), Vec::new(), None::<String>);
        while let Some(page) = self.sandbox.payments_in_range(&range, position.as_deref()).await? {
            all.extend(page.items.into_iter().filter_map(|payment| self.change_listed_payment(payment)));
            position = page.next;
            if position.is_none() {
                break;
            }
        }
        if self.flaw == Flaw::OmitsDeclinesFromRange {
            all.retain(|payment| !matches!(payment.status, PaymentStatus::Declined(_)));
        }
        Ok(self.list_page(all, after))
    }

    /// Returns a list page of the refunds in `range`, changed by the flaw of this gateway.
    pub(super) async fn refunds_in_range_with_flaw(
        &self,
        range: &TimeRange,
        after: Option<&str>,
    ) -> Result<ListPage<(GatewayToken, GatewayRefund)>, GatewayError> {
        let all_time = TimeRange { from: DateTime::<Utc>::MIN_UTC, to: DateTime::<Utc>::MAX_UTC };
        let range = if self.flaw == Flaw::IgnoresRangeOfRefunds { &all_time } else { range };
        let page = self.sandbox.refunds_in_range(range, None).await?;
        let listed = page.map_or_else(Vec::new, |page| page.items).into_iter();
        let mut all: Vec<_> = listed.map(|(payment, refund)| (payment, self.with_requested_id(refund))).collect();
        if self.flaw == Flaw::OmitsRefundsFromRange {
            all.clear();
        }
        Ok(self.list_page(all, after))
    }
}
