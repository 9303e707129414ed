//! The environment variables that determine which tokens belong to operators, which tokens belong to accounts, and
//! what accounts may do.

use config::ReadBy::{Api, OrdersApi};
use config::Variable;
use config::variables;

variables! {
    OPERATOR_SCOPE = Variable::new(&[Api, OrdersApi], "DUEDAY_OPERATOR_SCOPE", "SCOPE",
        "The scope of an operator's token")
        .default("dueday/operator");
    ACCOUNT_SCOPE = Variable::new(&[Api, OrdersApi], "DUEDAY_ACCOUNT_SCOPE", "SCOPE",
        "The scope of an account's token")
        .default("dueday/account");
    CONFIDENTIAL_SCOPE = Variable::new(&[Api, OrdersApi], "DUEDAY_CONFIDENTIAL_SCOPE", "SCOPE",
        "The scope that an operator's token also needs to read the salaries and hiring dates of employees")
        .default("dueday/confidential");
    ACCOUNT_CLAIM = Variable::new(&[Api, OrdersApi], "DUEDAY_ACCOUNT_CLAIM", "CLAIM",
        "The claim that contains the account, in an account's token").default("sub");
    ACCOUNT_ACTIONS = Variable::new(&[Api, OrdersApi], "DUEDAY_ACCOUNT_ACTIONS", "ACTIONS",
        "The changes that accounts may make themselves, such as cancel,payment-method; the word `none` allows no change")
        .default("pause,resume,cancel,uncancel,retry,payment-day,payment-method,address");
}
