//! What may be left out of the protocol. Each rule is there because without it a charge is doubled or lost.

/// A rule that is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    None,
    /// Nobody claims: a worker reads the item, charges, and settles on condition of what it has read.
    NoClaim,
    /// An attempt in doubt is charged again without asking the gateway.
    NoLookUp,
    /// An attempt whose charge was not answered is given up, and tried again under another number.
    NewKeyInDoubt,
    /// A claim is recognised as our own by the run that made it.
    ClaimProvedByRun,
    /// A take-over sets `AttemptAt` anew.
    TakeOverRewritesAttemptAt,
    /// Settlements are written whatever is stored by then.
    SettleUnconditionally,
    /// A settlement goes by the status that the subscription had when it was claimed.
    SettleIgnoresStatus,
    /// A new card begins to count its attempts from 1.
    NumberResetByCard,
    /// A payment that the gateway declined can still succeed.
    DeclineNotCancelled,
    /// Cancelling takes a subscription out of the index with an attempt open.
    CancelledLeavesIndex,
    /// A charge is allowed by its look-up, however long ago its take-over was.
    AllowedByLookUp,
    /// What was to end with the period is claimed all the same.
    ClaimsTheEnding,
    /// What the gateway made nothing of is settled by a worker that does not hold it any more.
    RejectedByAnyone,
}
