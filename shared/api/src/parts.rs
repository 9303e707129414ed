//! The parts of Dueday that a deployment has.

use std::str::FromStr;

use config::ReadingFunction::Api;
use config::{EnvVariable, variables};
use days::CheckSchedule;
use rest::Problem;

variables! {
    PARTS = EnvVariable::new(&[Api], "DUEDAY_PARTS", "PARTS", "The parts of the deployment: core or full").default("full");
}

/// The parts of Dueday that a deployment has: the parameter `Parts` of `template.yaml`. A system on one machine has all parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeployedParts {
    /// The API, the two daily batches, and the inbound webhooks of Stripe.
    Core,
    /// All parts.
    #[default]
    Full,
}

impl FromStr for DeployedParts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "core" => Ok(Self::Core),
            "full" => Ok(Self::Full),
            _ => Err(format!("must be core or full, not {text:?}")),
        }
    }
}

impl DeployedParts {
    /// Returns what the deployment does not do because parts are missing, as noun phrases; empty if it has all parts.
    pub const fn missing_parts(self) -> &'static [&'static str] {
        match self {
            Self::Full => &[],
            Self::Core => &[
                "mails after payments, declined cards and changes",
                "bounces and complaints of Amazon SES",
                "events, their archive and outbound webhooks",
                "erasures of accounts through the API",
                "the nightly audit and the nightly comparison with the gateway",
                "the check at a fixed hour that the day is done",
                "the order desk",
                "the dashboard",
            ],
        }
    }

    /// Returns where the audits and the comparisons with the gateway are made.
    pub const fn check_schedule(self) -> CheckSchedule {
        match self {
            Self::Full => CheckSchedule::Elsewhere,
            Self::Core => CheckSchedule::NotDeployed,
        }
    }

    /// Checks that the deployment has outbound webhooks.
    ///
    /// # Errors
    /// 409 if it has only the core.
    pub(crate) fn require_outbound_webhooks(self) -> Result<(), Problem> {
        self.require_full("outbound webhooks are not deployed. Deploy the stack with the parameter Parts=full")
    }

    /// Checks that the deployment has the function that erases accounts.
    ///
    /// # Errors
    /// 409 if it has only the core.
    pub(crate) fn require_erasures(self) -> Result<(), Problem> {
        self.require_full(
            "the function that erases accounts is not deployed. Erase the account with the command `dueday account erase`, \
             or deploy the stack with the parameter Parts=full",
        )
    }

    /// Returns the problem 409 with `detail` if the deployment has only the core.
    fn require_full(self, detail: &str) -> Result<(), Problem> {
        match self {
            Self::Full => Ok(()),
            Self::Core => Err(Problem::not_deployed(detail)),
        }
    }
}
