//! What a customer does, at any moment. Each act is computed from the stored item and written on condition of it.

use billing::{Changes, PaymentMethod, Period, Settlement, Subscription};

use crate::model::flaw::Flaw;
use crate::model::life::{Life, State};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Pause,
    Resume,
    Cancel,
    CancelAtPeriodEnd,
    Uncancel,
    NewCard,
    NewPrice,
    NewDay,
}

impl Act {
    pub const ALL: [Act; 8] = [
        Act::Pause,
        Act::Resume,
        Act::Cancel,
        Act::CancelAtPeriodEnd,
        Act::Uncancel,
        Act::NewCard,
        Act::NewPrice,
        Act::NewDay,
    ];
}

/// Carries out `act`; `None` if it is refused or changes nothing.
pub fn act(life: &Life, state: &mut State, act: Act) -> Option<()> {
    let (before, lead, today) = (state.stored.clone(), life.policy.lead, state.today());
    let changed = |changes: Changes| before.change(&changes, lead, today).ok().map(Settlement::from);
    let Settlement { subscription: mut after, waived, .. } = match act {
        Act::Pause => before.pause(today).ok().map(Settlement::from),
        Act::Resume => before.resume(life.policy.on_resume, lead, today, state.now).ok(),
        Act::Cancel => Some(before.cancel(today, state.now)),
        Act::CancelAtPeriodEnd => before.cancel_at_period_end(today).ok().map(Settlement::from),
        Act::Uncancel => before.uncancel(lead, today).ok().map(Settlement::from),
        Act::NewCard => changed(Changes { payment_method: Some(other_card(&before)), ..Changes::default() }),
        Act::NewPrice => changed(Changes { amount: Some(before.price.minor() + 100), ..Changes::default() }),
        Act::NewDay => changed(Changes { payment_day: 15.try_into().ok(), ..Changes::default() }),
    }?;
    match (act, life.flaw) {
        (Act::Cancel, Flaw::CancelledLeavesIndex) => after.next_payment_on = None,
        (Act::NewCard, Flaw::NumberResetByCard) => after.attempt_seq = 0,
        _ => {}
    }
    if after == before {
        return None;
    }
    state.waived.extend(waived.iter().map(|waived| Period::of(waived.due_on)));
    match act {
        Act::Pause | Act::Cancel => state.is_stopped = true,
        Act::Resume => state.is_stopped = false,
        _ => {}
    }
    state.write(after);
    state.acts_left -= 1;
    Some(())
}

fn other_card(subscription: &Subscription) -> PaymentMethod {
    let customer = subscription.payment_method.customer.clone();
    PaymentMethod { customer, payment_method: "pm_card_mastercard".parse().unwrap() }
}
