//! The rules of the payment protocol that the model can break on purpose. The tests show that each rule is needed: if
//! one rule is broken, a state of the model violates an invariant.

/// The rule of the payment protocol that the model breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// No rule is broken.
    None,
    /// A worker charges without a claim: it reads the item, charges the customer, and writes the outcome on condition
    /// that the item has not changed since.
    NoClaim,
    /// A worker charges an attempt in doubt again, without a look-up of its payment at the gateway.
    NoLookUp,
    /// If a worker gets no response to a charge, the worker settles the attempt as rejected. The month is then charged
    /// again with a new attempt number, and so with a new idempotency key.
    NewKeyInDoubt,
    /// The claim token is the same for all claims of a worker, so a worker can mistake its older claim for its new
    /// claim.
    ClaimProvedByRun,
    /// A take-over replaces `AttemptAt`, the time of the claim. A look-up starts one day before this time, so it can
    /// miss an older payment of the attempt.
    TakeOverRewritesAttemptAt,
    /// A worker writes the settlement of an attempt without a condition.
    SettleUnconditionally,
    /// A settlement ignores the current status of the subscription, and counts it as active.
    SettleIgnoresStatus,
    /// A new card restarts the attempt numbers at 1.
    NewCardResetsAttemptNumber,
    /// A declined payment is not cancelled at the gateway, so it can still succeed.
    DeclineNotCancelled,
    /// A cancellation removes the subscription from the index even if it has an open attempt.
    CancelRemovesOpenAttemptFromIndex,
    /// After a look-up, a worker may charge for another five minutes, regardless of the time since the take-over.
    PermissionRenewedByLookUp,
    /// A worker claims a subscription although the subscription ends before the month that is due.
    EndingSubscriptionClaimed,
    /// A worker that no longer holds the claim settles an attempt that the gateway rejected.
    RejectionSettledWithoutClaim,
}
