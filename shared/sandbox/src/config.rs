//! The environment variable of the function `sandbox`.

use config::ReadBy;
use config::Variable;
use config::variables;

variables! {
    SANDBOX_TABLE = Variable::new(&[ReadBy::Sandbox], "DUEDAY_SANDBOX_TABLE", "NAME",
        "The table in which the function of the sandbox gateway stores its payments").default("dueday-sandbox");
}
