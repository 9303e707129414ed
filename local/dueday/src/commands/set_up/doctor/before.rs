//! Checks of an AWS account before the first deployment.

use std::path::PathBuf;

use super::aws_cli::{AwsCli, Response, text_field};
use super::check_result::DoctorCheck;
use super::stack::Stack;
use super::{mails, rights};
use crate::Failure;
use crate::commands::set_up::deploy::profiles::{DeployProfile, read_profile};
use crate::machine::open_table::load_sdk_config_with_credentials;

/// The name of the check of the user or role.
const CALLER_CHECK: &str = "user or role";
/// The name of the check of Lambda's quota.
const CONCURRENCY_CHECK: &str = "concurrency of Lambda";
/// The concurrency that Lambda does not allow to reserve.
const UNRESERVED_CONCURRENCY: i64 = 100;

/// Checks the AWS account in which the profile `name` of `samconfig.toml` in the current folder will be deployed.
///
/// # Errors
/// If there is no such profile, or the AWS region or the AWS credentials are missing.
pub async fn check_before_deployment(name: &str) -> Result<Vec<DoctorCheck>, Failure> {
    let path = PathBuf::from("samconfig.toml");
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|error| Failure::File { path: path.clone(), reason: error.to_string() })?;
    let Some(profile) = read_profile(&text, name) else {
        let reason = format!(
            "samconfig.toml in this folder has no profile {name} in the form of dueday deploy init; run this command, or name \
             another profile: --before dev"
        );
        return Err(Failure::Refused(reason));
    };
    let sdk = load_sdk_config_with_credentials().await?;
    let aws = AwsCli { region: sdk.region().map(ToString::to_string).unwrap_or_default() };
    let DeployProfile { stack: name, parameters } = profile;
    let stack = Stack { name, parameters, ..Stack::default() };
    let caller = aws.run(&["sts", "get-caller-identity"]).await;
    let (of_mails, settings, of_rights) = futures::join!(
        mails::check_mails_before_deployment(&aws, &stack),
        aws.run(&["lambda", "get-account-settings"]),
        rights::check_deployment_rights(&aws, &caller, &stack.name),
    );
    let mut findings = vec![report_aws_caller(&caller)];
    findings.extend(of_mails);
    findings.extend([check_lambda_concurrency(settings, &stack), of_rights]);
    Ok(findings)
}

/// Reports the user or role whose credentials are used.
fn report_aws_caller(caller: &Response) -> DoctorCheck {
    match caller {
        Ok(caller) => DoctorCheck::good(CALLER_CHECK, text_field(caller, "Arn")),
        Err(error) => DoctorCheck::not_checked(CALLER_CHECK, error.to_string()),
    }
}

/// Checks that the quota of Lambda is sufficient for the reserved concurrency and, in production, for a flood of
/// requests.
fn check_lambda_concurrency(response: Response, stack: &Stack) -> DoctorCheck {
    let settings = match response {
        Ok(settings) => settings,
        Err(error) => return DoctorCheck::not_checked(CONCURRENCY_CHECK, error.to_string()),
    };
    let limit = &settings["AccountLimit"];
    let (Some(quota), Some(unreserved)) =
        (limit["ConcurrentExecutions"].as_i64(), limit["UnreservedConcurrentExecutions"].as_i64())
    else {
        return DoctorCheck::not_checked(CONCURRENCY_CHECK, "AWS returned no quota");
    };
    // The functions for payments and for reminders reserve it each.
    let reserved = 2 * stack.parameter("ReservedConcurrency").parse::<i64>().unwrap_or(0);
    let increase = "Request a higher quota \"Concurrent executions\" in Service Quotas (L-B99A9384)";
    if reserved > 0 && unreserved - reserved < UNRESERVED_CONCURRENCY {
        let detail =
            format!("ReservedConcurrency needs {}, but {unreserved} are free", reserved + UNRESERVED_CONCURRENCY);
        return DoctorCheck::wrong(CONCURRENCY_CHECK, detail, format!("{increase}, or lower ReservedConcurrency"));
    }
    if stack.is_prod() && quota < UNRESERVED_CONCURRENCY {
        let detail = format!("the quota is {quota}, so that many requests can delay the daily runs");
        return DoctorCheck::wrong(CONCURRENCY_CHECK, detail, increase);
    }
    DoctorCheck::good(CONCURRENCY_CHECK, format!("the quota is {quota}, and {unreserved} are not reserved"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quota_of_lambda_must_leave_the_concurrency_that_cannot_be_reserved() {
        let is_good = |quota: i64, reserved: &str, stage: &str| {
            let parameters = [("ReservedConcurrency", reserved), ("Stage", stage)];
            let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let limit = json!({"ConcurrentExecutions": quota, "UnreservedConcurrentExecutions": quota});
            let stack = Stack { parameters, ..Stack::default() };
            check_lambda_concurrency(Ok(json!({"AccountLimit": limit})), &stack).is_good()
        };
        assert!(is_good(1000, "", "prod") && is_good(120, "10", "prod"));
        assert!(!is_good(119, "10", "prod") && !is_good(10, "1", "dev"));
        assert!(is_good(10, "0", "dev") && !is_good(10, "0", "prod"));
    }
}
