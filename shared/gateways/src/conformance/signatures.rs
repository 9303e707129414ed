//! The checks that a gateway refuses requests whose signature is missing or not valid.

use reqwest::StatusCode;

use super::PromiseVerdict;
use super::running_check::{CheckResult, broken_promise, ensure_promise};
use crate::HttpGateway;
use crate::http_gateway::Forgery;

/// Each promise about signatures, with the forged requests that the gateway must refuse.
pub(super) const FORGERIES_TO_REFUSE: [(&str, &[Forgery]); 3] = [
    ("a request without a valid signature is refused", &[Forgery::Unsigned, Forgery::WrongKey]),
    ("a request with a signature that is older than five minutes is refused", &[Forgery::Old]),
    (
        "a signature is valid only for its method, path, query and body",
        &[Forgery::OtherMethod, Forgery::OtherPath, Forgery::OtherBody],
    ),
];

/// Checks that the gateway responds with 401 to each of `forgeries`.
pub(super) async fn check_refusal_of_forgeries(client: &HttpGateway, forgeries: &[Forgery]) -> CheckResult {
    for forgery in forgeries {
        let statuses = client.send_forged(*forgery).await.map_err(|error| broken_promise(error.to_string()))?;
        let Some(statuses) = statuses else {
            return Err(PromiseVerdict::NotChecked("no key is set: set DUEDAY_GATEWAY_KEY".to_owned()));
        };
        for status in statuses {
            ensure_promise(status == StatusCode::UNAUTHORIZED, || {
                format!("a request {forgery} got the status {status} instead of 401")
            })?;
        }
    }
    Ok(())
}
