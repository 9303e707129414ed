//! A subscription: its creation, its terms, its reminders and what happens next.

pub(crate) mod clock_ahead;
pub(crate) mod forecast;
pub(crate) mod new_subscription;
pub(crate) mod outlook;
pub(crate) mod refusal;
pub(crate) mod rejection;
pub(crate) mod reminder;
pub(crate) mod subscription;
pub(crate) mod subscription_changes;
pub(crate) mod terms;
