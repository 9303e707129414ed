//! Names the parts of Dueday that a stack does not have.

use api::Parts;

use super::finding::DoctorCheck;
use super::stack::Stack;

/// The name of the check in the output.
const CHECK_NAME: &str = "parts";

/// Returns the finding about the parts of the stack; `None` if the stack is not known. A stack with only the core is no
/// fault, so the finding is always good.
pub fn check(stack: Option<&Stack>) -> Option<DoctorCheck> {
    let parts = stack?.parts();
    let detail = match parts {
        Parts::Full => "Parts=full".to_owned(),
        Parts::Core => format!("Parts=core. Not deployed: {}", parts.missing_parts().join("; ")),
    };
    Some(DoctorCheck::good(CHECK_NAME, detail))
}
