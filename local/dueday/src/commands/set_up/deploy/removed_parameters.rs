//! The parameters that earlier versions of `template.yaml` had. AWS SAM ignores them, so a profile that still contains them
//! would mislead its readers.

use std::collections::BTreeSet;

/// Each parameter, and what replaces it.
const REMOVED: [(&str, &str); 29] = [
    ("ReminderLeadDays", "use `dueday settings set reminder-lead-days`"),
    ("RetryGaps", "use `dueday settings set retry-gaps`"),
    ("AfterLastRetry", "use `dueday settings set after-last-retry`"),
    ("CatchUp", "use `dueday settings set catch-up`"),
    ("Resume", "use `dueday settings set resume`"),
    ("AfterWonDispute", "use `dueday settings set after-won-dispute`"),
    ("ReceiptDays", "use `dueday settings set receipt-days`"),
    ("ActionDays", "use `dueday settings set action-days`"),
    ("Shards", "use `dueday shards set`"),
    ("OrderBuckets", "use `dueday orders shards set`"),
    ("OperatorScope", "use ScopePrefix"),
    ("ConfidentialScope", "use ScopePrefix"),
    ("AccountScope", "use ScopePrefix"),
    ("MerchantAddress", "use MailSettings with address"),
    ("MerchantTaxId", "use MailSettings with tax-id"),
    ("MerchantLogo", "use MailSettings with logo"),
    ("SupportEmail", "use MailSettings with support-email"),
    ("ReplyTo", "use MailSettings with reply-to"),
    ("AccountUrl", "use MailSettings with account-url"),
    ("MailsOff", "use MailSettings with mails-off"),
    ("MailsSentElsewhere", "use MailSettings with mails-sent-elsewhere"),
    ("UserPool", "UserPoolDomain alone creates the user pool"),
    ("ExistingTable", "ExistingTableStream alone names the table"),
    ("ExistingOrdersTable", "ExistingOrdersTableStream alone names the table"),
    ("Concurrency", "use ShardsAtOnce"),
    ("Architecture", "the functions run on arm64, unless you deploy the release for x86_64"),
    ("DoneByHour", "the day is checked at 20:00"),
    ("ExpiredReceiptEvents", "no event is published for an expired receipt"),
    ("EventsColdAfterDays", "events move to cheaper storage after 90 days"),
];

/// Returns whether an earlier version of the template had the parameter `name`, and this version has not.
pub fn is_removed_parameter(name: &str) -> bool {
    REMOVED.iter().any(|(removed, _)| *removed == name)
}

/// Returns a line for each removed parameter among the `parameters` of the profiles, each as `NAME="VALUE"`: its value, which a
/// person may still need, and what replaces it.
pub fn describe_removed_parameters(parameters: impl IntoIterator<Item = String>) -> String {
    let line = |parameter: String| {
        let (name, _) = parameter.split_once('=')?;
        let (_, advice) = REMOVED.iter().find(|(removed, _)| *removed == name)?;
        Some(format!("The template no longer has {parameter}: {advice}.\n"))
    };
    let lines: BTreeSet<String> = parameters.into_iter().filter_map(line).collect();
    lines.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_parameters_are_no_parameters_of_the_template() {
        let template = include_str!("../../../../../../template.yaml");
        let (_, parameters) = template.split_once("\nParameters:\n").unwrap();
        let (parameters, _) = parameters.split_once("\nConditions:\n").unwrap();
        for (name, _) in REMOVED {
            assert!(!parameters.contains(&format!("\n  {name}:\n")), "{name}");
        }
        assert!(parameters.contains("\n  MailSettings:\n") && parameters.contains("\n  ScopePrefix:\n"));
    }

    #[test]
    fn only_parameters_in_the_profiles_are_described() {
        let parameters = ["UserPool=\"on\"", "RetryGaps=\"1,2\"", "UserPoolDomain=\"acme\"", "UserPool=\"on\""];
        let expected = "The template no longer has RetryGaps=\"1,2\": use `dueday settings set retry-gaps`.\n\
                        The template no longer has UserPool=\"on\": UserPoolDomain alone creates the user pool.\n";
        assert_eq!(describe_removed_parameters(parameters.map(str::to_owned)), expected);
    }
}
