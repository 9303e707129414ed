//! The actions of the customer in the model. They can happen at any moment. Each action reads the stored subscription
//! and writes the result in one step, so no other write can happen between the read and the write.

use billing::{PaymentMethod, Period, Settlement, Subscription, SubscriptionChanges};

use crate::flaw::Flaw;
use crate::subscription_model::{State, SubscriptionModel};

/// An action of the customer that the model explores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CustomerAction {
    Pause,
    Resume,
    Cancel,
    CancelAtPeriodEnd,
    Uncancel,
    NewCard,
    NewPrice,
    NewPaymentDay,
}

impl CustomerAction {
    pub const ALL: [CustomerAction; 8] = [
        CustomerAction::Pause,
        CustomerAction::Resume,
        CustomerAction::Cancel,
        CustomerAction::CancelAtPeriodEnd,
        CustomerAction::Uncancel,
        CustomerAction::NewCard,
        CustomerAction::NewPrice,
        CustomerAction::NewPaymentDay,
    ];
}

/// Applies `action` to the subscription in `state`. Returns `None` if the action is refused or changes nothing.
pub fn apply_customer_action(model: &SubscriptionModel, state: &mut State, action: CustomerAction) -> Option<()> {
    let (before, lead, today) = (state.stored.clone(), model.policy.lead, state.today());
    let changed = |changes: SubscriptionChanges| before.apply_changes(&changes, lead, today).ok().map(Settlement::from);
    let Settlement { subscription: mut after, waived, .. } = match action {
        CustomerAction::Pause => before.pause(today).ok().map(Settlement::from),
        CustomerAction::Resume => before.resume(model.policy.on_resume, lead, today, state.now).ok(),
        CustomerAction::Cancel => Some(before.cancel(today, state.now)),
        CustomerAction::CancelAtPeriodEnd => before.cancel_at_period_end(today).ok().map(Settlement::from),
        CustomerAction::Uncancel => before.uncancel(lead, today).ok().map(Settlement::from),
        CustomerAction::NewCard => {
            changed(SubscriptionChanges { payment_method: Some(other_card(&before)), ..SubscriptionChanges::default() })
        }
        CustomerAction::NewPrice => {
            changed(SubscriptionChanges { amount: Some(before.price.minor() + 100), ..SubscriptionChanges::default() })
        }
        CustomerAction::NewPaymentDay => {
            changed(SubscriptionChanges { payment_day: 15.try_into().ok(), ..SubscriptionChanges::default() })
        }
    }?;
    match (action, model.flaw) {
        (CustomerAction::Cancel, Flaw::CancelRemovesOpenAttemptFromIndex) => after.next_payment_on = None,
        (CustomerAction::NewCard, Flaw::NewCardResetsAttemptNumber) => after.attempt_seq = 0,
        _ => {}
    }
    if after == before {
        return None;
    }
    state.waived.extend(waived.iter().map(|waived| Period::from_day(waived.due_on)));
    match action {
        CustomerAction::Pause | CustomerAction::Cancel => state.is_stopped = true,
        CustomerAction::Resume => state.is_stopped = false,
        _ => {}
    }
    state.write(after);
    state.customer_actions_left -= 1;
    Some(())
}

/// Returns another card of the same customer.
fn other_card(subscription: &Subscription) -> PaymentMethod {
    let customer = subscription.payment_method.customer.clone();
    PaymentMethod { customer, payment_method: "pm_card_mastercard".parse().unwrap() }
}
