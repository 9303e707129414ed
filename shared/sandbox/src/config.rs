//! The environment variable of the function `sandbox`.

use config::EnvVariable;
use config::ReadingFunction;
use config::variables;

variables! {
    SANDBOX_TABLE = EnvVariable::new(&[ReadingFunction::Sandbox], "DUEDAY_SANDBOX_TABLE", "NAME",
        "The table in which the function of the sandbox gateway stores its payments").default("dueday-sandbox");
}
