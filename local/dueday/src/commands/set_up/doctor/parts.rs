//! Names the parts of Dueday that a stack does not have.

use api::DeployedParts;

use super::check_result::DoctorCheck;
use super::stack::Stack;

/// The name of the check in the output.
const CHECK_NAME: &str = "parts";

/// Returns the check result about the parts of the stack; `None` if the stack is not known. A stack with only the core
/// is no fault, so the check result is always good.
pub fn report_parts_of_stack(stack: Option<&Stack>) -> Option<DoctorCheck> {
    let parts = stack?.parts();
    let detail = match parts {
        DeployedParts::Full => "Parts=full".to_owned(),
        DeployedParts::Core => format!("Parts=core. Not deployed: {}", parts.missing_parts().join("; ")),
    };
    Some(DoctorCheck::good(CHECK_NAME, detail))
}
