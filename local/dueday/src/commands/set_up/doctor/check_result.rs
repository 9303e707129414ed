//! The results of the checks, and how they are printed.

use serde::Serialize;

use crate::terminal::output::{green_text, red_text};

/// The result of one check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DoctorCheck {
    /// The name of the check.
    pub check: &'static str,
    #[serde(flatten)]
    pub result: CheckResult,
}

/// The result of a check: whether the checked part of the deployment is correct.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum CheckResult {
    /// The checked part is correct.
    Good { detail: String },
    /// The checked part is wrong. `advice` states how to correct it.
    Wrong { detail: String, advice: String },
    /// The check could not be made, for this reason. This result does not count as good.
    NotChecked { reason: String },
}

impl DoctorCheck {
    /// Creates the result of a check that found a correct part.
    pub fn good(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, result: CheckResult::Good { detail: detail.into() } }
    }

    /// Creates the result of a check that found a wrong part.
    pub fn wrong(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, result: CheckResult::Wrong { detail: detail.into(), advice: advice.into() } }
    }

    /// Creates the result of a check that could not be made.
    pub fn not_checked(check: &'static str, reason: impl Into<String>) -> Self {
        Self { check, result: CheckResult::NotChecked { reason: reason.into() } }
    }

    /// Returns whether the check was made and its result is good.
    pub fn is_good(&self) -> bool {
        matches!(self.result, CheckResult::Good { .. })
    }

    /// Returns what the check found, or why it could not be made.
    pub fn detail(&self) -> &str {
        match &self.result {
            CheckResult::Good { detail } | CheckResult::Wrong { detail, .. } => detail,
            CheckResult::NotChecked { reason } => reason,
        }
    }

    /// Formats this check result as one line.
    fn format_as_line(&self) -> String {
        let check = self.check;
        match &self.result {
            CheckResult::Good { detail } => format!("{}         {check}: {detail}\n", green_text("good")),
            CheckResult::Wrong { detail, advice } => {
                format!("{}        {check}: {detail}. {advice}\n", red_text("wrong"))
            }
            CheckResult::NotChecked { reason } => format!("not checked  {check}: {reason}\n"),
        }
    }
}

/// Returns one line for each check, and the number of checks by result.
pub fn format_check_results(checks: &[DoctorCheck]) -> String {
    let count = |is_counted: fn(&CheckResult) -> bool| checks.iter().filter(|check| is_counted(&check.result)).count();
    let good = count(|result| matches!(result, CheckResult::Good { .. }));
    let wrong = count(|result| matches!(result, CheckResult::Wrong { .. }));
    let lines: String = checks.iter().map(DoctorCheck::format_as_line).collect();
    format!("{lines}\n{good} good, {wrong} wrong, {} not checked.\n", checks.len() - good - wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_findings_has_one_line_for_each_check_and_the_count_of_each_result() {
        let findings = [
            DoctorCheck::good("table", "it exists"),
            DoctorCheck::wrong("TTL", "it is off", "Switch it on"),
            DoctorCheck::not_checked("stream", "the permission is missing"),
        ];
        let expected = "good         table: it exists\n\
                        wrong        TTL: it is off. Switch it on\n\
                        not checked  stream: the permission is missing\n\n\
                        1 good, 1 wrong, 1 not checked.\n";
        assert_eq!(console::strip_ansi_codes(&format_check_results(&findings)), expected);
        let json = serde_json::to_value(&findings[1]).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"check": "TTL", "result": "wrong", "detail": "it is off", "advice": "Switch it on"})
        );
    }
}
