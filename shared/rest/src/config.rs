//! Whose tokens are whose, as the environment says.

use config::ReadBy::{Api, OrdersApi};
use config::Variable;
use config::variables;

variables! {
    OPERATOR_SCOPE = Variable::new(&[Api, OrdersApi], "DUEDAY_OPERATOR_SCOPE", "SCOPE", "A token with this scope is an operator's")
        .default("dueday/operator");
    CONFIDENTIAL_SCOPE = Variable::new(&[Api, OrdersApi], "DUEDAY_CONFIDENTIAL_SCOPE", "SCOPE",
        "An operator's token that has this scope, too, may read what employees earn and when they were hired")
        .default("dueday/confidential");
    ACCOUNT_CLAIM = Variable::new(&[Api, OrdersApi], "DUEDAY_ACCOUNT_CLAIM", "CLAIM",
        "Any other token is of the account that this claim names").default("sub");
}
