//! Checks of the settings item of the table, and of the parameters that decide when customers are charged.

use billing::{PaymentLimit, Policy, PolicySetting, StoredPolicy};
use config::{ConfiguredPolicy, PolicyDifference};
use store::{Settings, TableError};
use strum::IntoEnumIterator as _;

use super::aws_cli::AwsError;
use super::finding::Finding;
use super::stack::Stack;

/// The name of the check whether the table has settings.
const SETTINGS_CHECK: &str = "settings of the table";
/// The name of the check whether charging is on.
const CHARGING_CHECK: &str = "charging";
/// The name of the check of the policy of the table.
const POLICY_CHECK: &str = "policy";
/// The name of the output line with the limits of the payment batch.
const LIMITS_CHECK: &str = "limits of the payment batch";

/// Returns the name of the check of `setting`, and the parameter of the stack that contains its initial value.
fn parameter_of(setting: PolicySetting) -> (&'static str, &'static str) {
    match setting {
        PolicySetting::TimeZone => ("time zone", "TimeZone"),
        PolicySetting::ReminderLeadDays => ("reminder lead", "ReminderLeadDays"),
        PolicySetting::RetryGaps => ("retry gaps", "RetryGaps"),
        PolicySetting::AfterLastRetry => ("status after the last retry", "AfterLastRetry"),
        PolicySetting::CatchUp => ("payments after an outage", "CatchUp"),
        PolicySetting::Resume => ("payments after a pause", "Resume"),
        PolicySetting::AfterWonDispute => ("payments after a won dispute", "AfterWonDispute"),
        PolicySetting::ReceiptDays => ("days of receipts", "ReceiptDays"),
        PolicySetting::ActionDays => ("days of the action log", "ActionDays"),
    }
}

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
    let mut findings = vec![Finding::good(SETTINGS_CHECK, format!("{} shards", settings.shards)), charging, limits];
    findings.extend(check_policy(settings.policy.as_ref()));
    findings
}

/// Checks that the policy of the table, `stored`, exists and can be read. Returns `None` if so.
fn check_policy(stored: Option<&StoredPolicy>) -> Option<Finding> {
    let Some(stored) = stored else {
        let advice = "Start a run or the API of this version, or run `dueday settings adopt` for this table";
        return Some(Finding::wrong(POLICY_CHECK, "the table has none, because an earlier version wrote it", advice));
    };
    let error = stored.read().err()?;
    let advice = format!("Run `dueday settings set {} VALUE` for this table: until then, no run begins", error.setting);
    Some(Finding::wrong(POLICY_CHECK, error.to_string(), advice))
}

/// Returns a finding for each variable of this process that differs from the policy of the table, `stored`.
pub fn check_variables(configured: &ConfiguredPolicy, stored: &Policy) -> Vec<Finding> {
    let finding = |difference: PolicyDifference| {
        let PolicyDifference { setting, given, stored } = &difference;
        let advice = format!("Correct it to {stored}, or run `dueday settings set {setting} {given}` for this table");
        Finding::wrong(POLICY_CHECK, difference.to_string(), advice)
    };
    configured.differences(stored).into_iter().map(finding).collect()
}

/// Checks the parameters of the stack with the rules that the functions use for their environment variables, and
/// compares them with `stored`, the policy of the table. The schedules start in the time zone of the parameter.
pub fn check_parameters(stack: Option<&Stack>, stored: Option<&StoredPolicy>) -> Vec<Finding> {
    let check = |setting: PolicySetting| {
        let (check, parameter) = parameter_of(setting);
        let Some(stack) = stack else { return Finding::not_checked(check, "the stack is not known") };
        let mut given = Policy::default();
        let value = stack.parameter(parameter);
        if !value.is_empty()
            && let Err(error) = given.set(setting, value)
        {
            let advice = format!("Deploy again with a valid value of the parameter {parameter}");
            return Finding::wrong(check, format!("{parameter} {}", error.reason), advice);
        }
        let given = given.text_of(setting);
        match stored.map(|stored| stored.text_of(setting)) {
            Some(stored) if Policy::default().set(setting, &stored).is_err() => Finding::wrong(
                check,
                format!("the table has {stored}, which cannot be read, and {parameter}={given}"),
                format!("Run `dueday settings set {setting} {given}` for this table"),
            ),
            Some(stored) if stored != given => Finding::wrong(
                check,
                format!("the table has {stored}, which is used, but {parameter}={given}"),
                format!(
                    "Deploy again with {parameter}={stored}, or run `dueday settings set {setting} {given}` for this table"
                ),
            ),
            _ => Finding::good(check, format!("{parameter}={given}")),
        }
    };
    Policy::settings().map(check).collect()
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
            let is_good =
                |value: &str| check_parameters(Some(&with(parameter, value)), None).iter().all(Finding::is_good);
            assert!(is_good(right) && is_good("") && !is_good(wrong), "{parameter}");
        }
        assert!(check_parameters(None, None).iter().all(|finding| !finding.is_good()));
    }

    #[test]
    fn stack_parameter_that_differs_from_the_policy_of_the_table_is_reported() {
        let stack =
            Stack { parameters: [("TimeZone".to_owned(), "Europe/Vienna".to_owned())].into(), ..Stack::default() };
        let mut stored = Policy::default();
        let wrong = |stored: &Policy| -> Vec<&'static str> {
            let findings = check_parameters(Some(&stack), Some(&StoredPolicy::from(stored)));
            findings.iter().filter(|finding| !finding.is_good()).map(|finding| finding.check).collect()
        };
        assert_eq!(wrong(&stored), ["time zone"]);
        stored.set(PolicySetting::TimeZone, "Europe/Vienna").unwrap();
        assert_eq!(wrong(&stored), [""; 0]);
        stored.set(PolicySetting::ReceiptDays, "400").unwrap();
        assert_eq!(wrong(&stored), ["days of receipts"], "a blank parameter means its default");
    }
}
