//! The entries that the routes write to the action log.

use billing::{ActionKind, NewAction};
use rest::{RequestActor, RequestTime};

/// Creates the action of a request: `actor` makes a change of the kind `kind` at the time `now`, without a reason.
pub fn new_action(kind: ActionKind, RequestActor(actor): RequestActor, now: RequestTime) -> NewAction {
    NewAction { at: now.at, actor, kind, reason: None }
}
