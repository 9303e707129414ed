//! Checks of the settings item of the table, and of the parameters that decide when customers are charged.

use billing::PaymentLimit;
use config::{REMINDER_LEAD_DAYS, RETRY_GAPS, TIME_ZONE, Variable};
use deployment::Config;
use store::{Settings, TableError};
use strum::IntoEnumIterator as _;

use super::aws_cli::AwsError;
use super::finding::Finding;
use super::stack::Stack;

/// The name of the check whether the table has settings.
const SETTINGS_CHECK: &str = "settings of the table";
/// The name of the check whether charging is on.
const CHARGING_CHECK: &str = "charging";
/// The name of the output line with the limits of the payment batch.
const LIMITS_CHECK: &str = "limits of the payment batch";

/// The parameters of the stack that are checked: the name of the check, the name of the parameter, and the environment
/// variable of the functions that the parameter sets.
const CHECKED_STACK_PARAMETERS: [(&str, &str, &Variable); 3] = [
    ("time zone", "TimeZone", &TIME_ZONE),
    ("retry gaps", "RetryGaps", &RETRY_GAPS),
    ("reminder lead", "ReminderLeadDays", &REMINDER_LEAD_DAYS),
];

/// Checks the settings item. `read` is the result of the request for this item.
pub fn check(read: &Result<Option<Settings>, TableError>) -> Vec<Finding> {
    let settings = match read {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            let advice =
                "The deployed functions create it when they first start: send GET /health to the output ApiUrl";
            return vec![Finding::wrong(SETTINGS_CHECK, "the table has no settings item", advice)];
        }
        Err(TableError::Request { source, .. }) => {
            let reason = match &source.code {
                Some(code) => AwsError::from_code(code, "dynamodb:GetItem", source.innermost_text()).to_string(),
                None => source.short_text(),
            };
            return vec![Finding::not_checked(SETTINGS_CHECK, reason)];
        }
        Err(error) => {
            let advice = "Deploy the version that wrote the table, or repair the item";
            return vec![Finding::wrong(SETTINGS_CHECK, error.to_string(), advice)];
        }
    };
    let charging = match settings.charging {
        true => Finding::good(CHARGING_CHECK, "it is on"),
        false => Finding::wrong(
            CHARGING_CHECK,
            "it is off, so runs charge nothing",
            "If that is not intended, run `dueday charging on` for this table",
        ),
    };
    let limits = PaymentLimit::iter().map(|limit| format!("{limit} {}", settings.payment_limits.text_of(limit)));
    let limits = Finding::good(LIMITS_CHECK, limits.collect::<Vec<_>>().join(", "));
    vec![Finding::good(SETTINGS_CHECK, format!("{} shards", settings.shards)), charging, limits]
}

/// Checks the parameters of the stack with the rules that the functions use for their environment variables.
pub fn check_parameters(stack: Option<&Stack>) -> Vec<Finding> {
    let check = |(check, parameter, variable): (&'static str, &str, &Variable)| {
        let Some(stack) = stack else { return Finding::not_checked(check, "the stack is not known") };
        match stack.parameter(parameter) {
            "" => Finding::good(check, format!("{parameter} is blank: {}", variable.default.unwrap_or("no limit"))),
            value => match Config::check(variable, value) {
                Ok(()) => Finding::good(check, format!("{parameter}={value}")),
                Err(reason) => Finding::wrong(
                    check,
                    format!("{parameter} {reason}"),
                    format!("Deploy again with a valid value of the parameter {parameter}"),
                ),
            },
        }
    };
    CHECKED_STACK_PARAMETERS.into_iter().map(check).collect()
}

#[cfg(test)]
mod tests {
    use aws_errors::AwsRequestError;
    use clock::{Clock as _, SystemClock};

    use super::*;

    fn settings(charging: bool) -> Settings {
        Settings { charging, ..Settings::new(4, SystemClock.ulid()) }
    }

    #[test]
    fn settings_of_the_table_must_exist_and_charging_must_be_on() {
        assert!(check(&Ok(Some(settings(true)))).iter().all(Finding::is_good));
        let off = check(&Ok(Some(settings(false))));
        assert_eq!(
            off.iter().map(|finding| (finding.check, finding.is_good())).collect::<Vec<_>>(),
            [(SETTINGS_CHECK, true), (CHARGING_CHECK, false), (LIMITS_CHECK, true)]
        );
        assert!(!check(&Ok(None))[0].is_good());
        let other = check(&Err(TableError::OtherFormat { found: "2".to_owned(), read: 1 }));
        assert!(!other[0].is_good(), "{other:?}");
        let denied = TableError::Request {
            operation: "GetItem",
            transient: false,
            source: AwsRequestError::of_code("AccessDeniedException", None),
        };
        let expected = Finding::not_checked(SETTINGS_CHECK, "the permission dynamodb:GetItem is missing");
        assert_eq!(check(&Err(denied)), [expected]);
    }

    #[test]
    fn stack_parameters_are_checked_by_the_rules_of_the_functions() {
        let with = |parameter: &str, value: &str| Stack {
            parameters: [(parameter.to_owned(), value.to_owned())].into(),
            ..Stack::default()
        };
        for (parameter, right, wrong) in [
            ("TimeZone", "Europe/Vienna", "Vienna"),
            ("RetryGaps", "1,2,2,2", "10,20"),
            ("ReminderLeadDays", "7", "28"),
        ] {
            let is_good = |value: &str| check_parameters(Some(&with(parameter, value))).iter().all(Finding::is_good);
            assert!(is_good(right) && is_good("") && !is_good(wrong), "{parameter}");
        }
        assert!(check_parameters(None).iter().all(|finding| !finding.is_good()));
    }
}
