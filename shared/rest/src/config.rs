//! The environment variables that determine which tokens belong to operators and their roles, which tokens belong to
//! accounts, and what accounts may do.

use config::EnvVariable;
use config::ReadingFunction::{Api, OrdersApi};
use config::variables;

variables! {
    SCOPE_PREFIX = EnvVariable::new(&[Api, OrdersApi], "DUEDAY_SCOPE_PREFIX", "PREFIX",
        "The common start of the scopes of tokens, before read, support, admin or account; the word `none` for no common start")
        .default("dueday/");
    ACCOUNT_CLAIM = EnvVariable::new(&[Api, OrdersApi], "DUEDAY_ACCOUNT_CLAIM", "CLAIM",
        "The claim that contains the account, in an account's token").default("sub");
    ACCOUNT_ACTIONS = EnvVariable::new(&[Api, OrdersApi], "DUEDAY_ACCOUNT_ACTIONS", "ACTIONS",
        "The changes that accounts may make themselves, such as cancel,payment-method; the word `none` allows no change")
        .default("pause,resume,cancel,uncancel,retry,payment-day,payment-method,address");
}
