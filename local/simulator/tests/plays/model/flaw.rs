//! The rules of the payment protocol that a model can break on purpose. If any one of them is broken, a charge is
//! doubled or lost.

/// The rule of the payment protocol that a model breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// No rule is broken.
    None,
    /// There is no claim: a worker reads the item, charges, and settles on the condition that the item has not changed.
    NoClaim,
    /// An attempt in doubt is charged again without a look-up at the gateway.
    NoLookUp,
    /// An attempt without a response to its charge is settled as rejected, and the month is charged again with a new
    /// attempt number, and so with a new idempotency key.
    NewKeyInDoubt,
    /// A claim token identifies the worker's run and not the single call, so a worker mistakes an older claim for its
    /// own new claim.
    ClaimProvedByRun,
    /// A take-over replaces `AttemptAt`, the instant of the claim, from which look-ups start.
    TakeOverRewritesAttemptAt,
    /// A settlement is written without a condition.
    SettleUnconditionally,
    /// A settlement uses the status that the subscription had at the claim.
    SettleIgnoresStatus,
    /// A new card restarts the attempt numbers at 1.
    NewCardResetsAttemptNumber,
    /// A declined payment is not cancelled at the gateway, so it can still succeed.
    DeclineNotCancelled,
    /// Cancelling removes a subscription with an open attempt from the index.
    CancelRemovesOpenAttemptFromIndex,
    /// A look-up renews the permission to charge, regardless of the time since the take-over.
    PermissionRenewedByLookUp,
    /// A subscription is claimed although it ends before the month that is due.
    EndingSubscriptionClaimed,
    /// A worker that no longer holds the claim settles an attempt that the gateway rejected.
    RejectionSettledWithoutClaim,
}
