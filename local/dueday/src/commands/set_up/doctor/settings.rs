//! Checks of the settings item of the table, with its policy, and of the time zone of the stack.

use billing::{PaymentLimit, Policy, PolicySetting, StoredPolicy};
use config::{ConfiguredPolicy, PolicyDifference};
use store::{Settings, TableError};
use strum::IntoEnumIterator as _;

use super::aws_cli::AwsError;
use super::check_result::DoctorCheck;
use super::stack::Stack;

/// The name of the check whether the table has settings.
const SETTINGS_CHECK: &str = "settings of the table";
/// The name of the check whether charging is on.
const CHARGING_CHECK: &str = "charging";
/// The name of the check of the policy of the table.
const POLICY_CHECK: &str = "policy";
/// The name of the output line with the limits of the payment batch.
const LIMITS_CHECK: &str = "limits of the payment batch";

/// The name of the check of the time zone.
const TIME_ZONE_CHECK: &str = "time zone";

/// Checks the settings item. `read` is the result of the request for this item.
pub fn check_stored_settings(read: &Result<Option<Settings>, TableError>) -> Vec<DoctorCheck> {
    let settings = match read {
        Ok(Some(settings)) => settings,
        Ok(None) => {
            let advice =
                "The deployed functions create it when they first start: send GET /health to the output ApiUrl";
            return vec![DoctorCheck::wrong(SETTINGS_CHECK, "the table has no settings item", advice)];
        }
        Err(TableError::Request { source, .. }) => {
            let reason = match &source.code {
                Some(code) => AwsError::from_code(code, "dynamodb:GetItem", source.innermost_text()).to_string(),
                None => source.short_text(),
            };
            return vec![DoctorCheck::not_checked(SETTINGS_CHECK, reason)];
        }
        Err(error) => {
            let advice = "Deploy the version that wrote the table, or repair the item";
            return vec![DoctorCheck::wrong(SETTINGS_CHECK, error.to_string(), advice)];
        }
    };
    let charging = match settings.charging {
        true => DoctorCheck::good(CHARGING_CHECK, "it is on"),
        false => DoctorCheck::wrong(
            CHARGING_CHECK,
            "it is off, so runs charge nothing",
            "If that is not intended, run `dueday charging on` for this table",
        ),
    };
    let limits = PaymentLimit::iter().map(|limit| format!("{limit} {}", settings.payment_limits.value_text(limit)));
    let limits = DoctorCheck::good(LIMITS_CHECK, limits.collect::<Vec<_>>().join(", "));
    let mut findings = vec![DoctorCheck::good(SETTINGS_CHECK, format!("{} shards", settings.shards)), charging, limits];
    findings.push(check_stored_policy(settings.policy.as_ref()));
    findings
}

/// Checks that the policy of the table, `stored`, exists and can be read, and shows it.
fn check_stored_policy(stored: Option<&StoredPolicy>) -> DoctorCheck {
    let Some(stored) = stored else {
        let advice = "Run `dueday settings adopt` for this table, with a flag for each value that is not a default";
        return DoctorCheck::wrong(POLICY_CHECK, "the table has none, because an earlier version wrote it", advice);
    };
    match stored.read() {
        Ok(policy) => {
            let settings = Policy::setting_names().map(|setting| format!("{setting} {}", policy.value_text(setting)));
            DoctorCheck::good(POLICY_CHECK, settings.collect::<Vec<_>>().join(", "))
        }
        Err(error) => {
            let advice =
                format!("Run `dueday settings set {} VALUE` for this table: until then, no run begins", error.setting);
            DoctorCheck::wrong(POLICY_CHECK, error.to_string(), advice)
        }
    }
}

/// Returns a check result for each variable of this process that differs from the policy of the table, `stored`.
pub fn check_policy_variables(configured: &ConfiguredPolicy, stored: &Policy) -> Vec<DoctorCheck> {
    let finding = |difference: PolicyDifference| {
        let PolicyDifference { setting, given, stored } = &difference;
        let advice = format!("Correct it to {stored}, or run `dueday settings set {setting} {given}` for this table");
        DoctorCheck::wrong(POLICY_CHECK, difference.to_string(), advice)
    };
    configured.differences_from(stored).into_iter().map(finding).collect()
}

/// Checks the parameter `TimeZone` of the stack with the rule that the functions use, and compares it with `stored`, the
/// policy of the table. The schedules start in the time zone of the parameter.
pub fn check_time_zone(stack: Option<&Stack>, stored: Option<&StoredPolicy>) -> DoctorCheck {
    let setting = PolicySetting::TimeZone;
    let Some(stack) = stack else { return DoctorCheck::not_checked(TIME_ZONE_CHECK, "the stack is not known") };
    let mut given = Policy::default();
    let value = stack.parameter("TimeZone");
    if !value.is_empty()
        && let Err(error) = given.set_setting(setting, value)
    {
        let advice = "Deploy again with a valid value of the parameter TimeZone";
        return DoctorCheck::wrong(TIME_ZONE_CHECK, format!("TimeZone {}", error.reason), advice);
    }
    let given = given.value_text(setting);
    match stored.map(|stored| stored.value_text(setting)) {
        Some(stored) if Policy::default().set_setting(setting, &stored).is_err() => DoctorCheck::wrong(
            TIME_ZONE_CHECK,
            format!("the table has {stored}, which cannot be read, and TimeZone={given}"),
            format!("Run `dueday settings set {setting} {given}` for this table"),
        ),
        Some(stored) if stored != given => DoctorCheck::wrong(
            TIME_ZONE_CHECK,
            format!("the table has {stored}, which is used, but TimeZone={given}"),
            format!(
                "Deploy again with TimeZone={stored}, or run `dueday settings set {setting} {given}` for this table"
            ),
        ),
        _ => DoctorCheck::good(TIME_ZONE_CHECK, format!("TimeZone={given}")),
    }
}

#[cfg(test)]
mod tests {
    use aws_errors::AwsRequestError;
    use clock::{Clock as _, SystemClock};

    use super::*;

    fn settings_with_charging(charging: bool) -> Settings {
        let policy = Some(StoredPolicy::from(&Policy::default()));
        Settings { charging, policy, ..Settings::new(4, SystemClock.ulid()) }
    }

    #[test]
    fn settings_of_the_table_must_exist_and_charging_must_be_on() {
        assert!(check_stored_settings(&Ok(Some(settings_with_charging(true)))).iter().all(DoctorCheck::is_good));
        let off = check_stored_settings(&Ok(Some(settings_with_charging(false))));
        assert_eq!(
            off.iter().map(|finding| (finding.check, finding.is_good())).collect::<Vec<_>>(),
            [(SETTINGS_CHECK, true), (CHARGING_CHECK, false), (LIMITS_CHECK, true), (POLICY_CHECK, true)]
        );
        assert!(!check_stored_settings(&Ok(None))[0].is_good());
        let other = check_stored_settings(&Err(TableError::OtherFormat { found: "2".to_owned(), read: 1 }));
        assert!(!other[0].is_good(), "{other:?}");
        let denied = TableError::Request {
            operation: "GetItem",
            transient: false,
            source: AwsRequestError::of_code("AccessDeniedException", None),
        };
        let expected = DoctorCheck::not_checked(SETTINGS_CHECK, "the permission dynamodb:GetItem is missing");
        assert_eq!(check_stored_settings(&Err(denied)), [expected]);
    }

    #[test]
    fn time_zone_of_the_stack_is_checked_by_the_rule_of_the_functions_and_compared_with_the_table() {
        let with =
            |zone: &str| Stack { parameters: [("TimeZone".to_owned(), zone.to_owned())].into(), ..Stack::default() };
        let is_good = |zone: &str| check_time_zone(Some(&with(zone)), None).is_good();
        assert!(is_good("Europe/Vienna") && is_good("") && !is_good("Vienna"));
        assert!(!check_time_zone(None, None).is_good());
        let stack = with("Europe/Vienna");
        let mut stored = Policy::default();
        assert!(!check_time_zone(Some(&stack), Some(&StoredPolicy::from(&stored))).is_good());
        stored.set_setting(PolicySetting::TimeZone, "Europe/Vienna").unwrap();
        assert!(check_time_zone(Some(&stack), Some(&StoredPolicy::from(&stored))).is_good());
    }
}
