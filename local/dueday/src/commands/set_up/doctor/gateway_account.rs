//! Checks that the gateway responds, and that its account and mode are those of the deployment.

use billing::GatewayAccount;
use gateways::{FullGateway, GatewayError};

use super::check_result::DoctorCheck;

/// The name of the check whether the gateway responds.
pub(super) const RESPONDS_CHECK: &str = "gateway";
/// The name of the check of the account at the gateway.
pub(super) const ACCOUNT_CHECK: &str = "gateway account";
/// The name of the check whether the gateway is in live mode or in test mode.
pub(super) const MODE_CHECK: &str = "gateway mode";

/// The identity of the account at the gateway.
#[derive(Clone, Debug)]
pub enum GatewayIdentity {
    /// The key can read the account.
    Account(GatewayAccount),
    /// The key may not read the account. `has_marker` states whether the account has the marker customer that the
    /// settings of the table contain; `None` if the settings contain no marker customer.
    Hidden { has_marker: Option<bool> },
}

/// Returns the identity of the account at `gateway`. `hides_account` states whether the key may not read the account,
/// and `stored` is the gateway account in the settings of the table.
///
/// # Errors
/// [`GatewayError`] if the gateway has no usable response.
pub async fn identify_gateway_account(
    gateway: &dyn FullGateway,
    hides_account: bool,
    stored: Option<&GatewayAccount>,
) -> Result<GatewayIdentity, GatewayError> {
    let has_marker = match stored {
        Some(stored) => gateway.has_marker(stored).await?,
        None => None,
    };
    if hides_account || has_marker.is_some() {
        return Ok(GatewayIdentity::Hidden { has_marker });
    }
    gateway.account().await.map(GatewayIdentity::Account)
}

/// Checks the account at the gateway. `stored` is the gateway account in the settings of the table. `is_live` states
/// whether the key moves real money; `None` if the key does not show this. `is_prod` states whether customers are
/// charged.
pub fn check_gateway_account(
    identity: &Result<GatewayIdentity, GatewayError>,
    stored: Option<&GatewayAccount>,
    is_live: Option<bool>,
    is_prod: bool,
) -> Vec<DoctorCheck> {
    let identity = match identity {
        Ok(identity) => identity,
        Err(error) => {
            let reachable = match error {
                GatewayError::Unusable { .. } => {
                    DoctorCheck::wrong(RESPONDS_CHECK, error.to_string(), "Store a key that the gateway accepts")
                }
                GatewayError::Unknown { .. } | GatewayError::Unreadable { .. } => DoctorCheck::wrong(
                    RESPONDS_CHECK,
                    error.to_string(),
                    "Check the URL of the gateway, and whether it runs",
                ),
                GatewayError::Throttled { .. } => DoctorCheck::not_checked(RESPONDS_CHECK, error.to_string()),
            };
            let not_checked = |check| DoctorCheck::not_checked(check, "the gateway does not respond as it should");
            let mode = is_live.map_or_else(|| not_checked(MODE_CHECK), |is_live| check_key_mode(is_live, is_prod));
            return vec![reachable, not_checked(ACCOUNT_CHECK), mode];
        }
    };
    let is_live = match identity {
        GatewayIdentity::Account(account) => Some(account.live),
        GatewayIdentity::Hidden { .. } => is_live,
    };
    let mode = match is_live {
        Some(is_live) => check_key_mode(is_live, is_prod),
        None => DoctorCheck::not_checked(MODE_CHECK, "the key does not show its mode"),
    };
    vec![DoctorCheck::good(RESPONDS_CHECK, "it responds"), check_gateway_account_id(identity, stored), mode]
}

/// Checks that the account at the gateway is the account that the settings of the table contain.
fn check_gateway_account_id(identity: &GatewayIdentity, stored: Option<&GatewayAccount>) -> DoctorCheck {
    let advice = "Use a key of the account in which this table's payments were made, or run `dueday move-gateway`";
    match (identity, stored) {
        (GatewayIdentity::Account(account), None) => {
            DoctorCheck::good(ACCOUNT_CHECK, format!("{account}; the first payment run stores it in the table"))
        }
        (GatewayIdentity::Account(account), Some(stored)) if account == stored => {
            DoctorCheck::good(ACCOUNT_CHECK, account.to_string())
        }
        (GatewayIdentity::Account(account), Some(stored)) => {
            let detail = format!("the payments of this table were made at {stored}, but the key belongs to {account}");
            DoctorCheck::wrong(ACCOUNT_CHECK, detail, advice)
        }
        (GatewayIdentity::Hidden { has_marker: Some(true) }, _) => {
            DoctorCheck::good(ACCOUNT_CHECK, "the key belongs to the account with the stored marker customer")
        }
        (GatewayIdentity::Hidden { has_marker: Some(false) }, _) => DoctorCheck::wrong(
            ACCOUNT_CHECK,
            "the key does not belong to the account with the stored marker customer",
            advice,
        ),
        (GatewayIdentity::Hidden { has_marker: None }, None) => {
            DoctorCheck::good(ACCOUNT_CHECK, "the key may not read it, so the first run creates a marker customer")
        }
        (GatewayIdentity::Hidden { has_marker: None }, Some(stored)) => {
            let detail = format!("the table stores {stored}, which the key may not read, so runs refuse to start");
            DoctorCheck::wrong(
                ACCOUNT_CHECK,
                detail,
                "Run `dueday move-gateway` with this key: it creates a marker customer",
            )
        }
    }
}

/// Checks that the key is a live key in production, and a test key otherwise.
fn check_key_mode(is_live: bool, is_prod: bool) -> DoctorCheck {
    match (is_live, is_prod) {
        (true, true) => DoctorCheck::good(MODE_CHECK, "live"),
        (false, false) => DoctorCheck::good(MODE_CHECK, "test"),
        (false, true) => DoctorCheck::wrong(
            MODE_CHECK,
            "a test key in Stage=prod, so customers pay nothing",
            "Store a live key, in a new stack",
        ),
        (true, false) => DoctorCheck::wrong(
            MODE_CHECK,
            "a live key in Stage=dev, so tests charge real money",
            "Store a test key, or deploy with Stage=prod",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_gateway_account(id: &str, live: bool) -> GatewayAccount {
        GatewayAccount { kind: "stripe".to_owned(), account: id.to_owned(), live }
    }

    /// Returns for each of the three check results whether it is good.
    fn which_checks_are_good(
        identity: GatewayIdentity,
        stored: Option<&GatewayAccount>,
        is_live: Option<bool>,
        is_prod: bool,
    ) -> Vec<bool> {
        check_gateway_account(&Ok(identity), stored, is_live, is_prod).iter().map(DoctorCheck::is_good).collect()
    }

    #[test]
    fn gateway_account_of_the_key_must_equal_the_stored_gateway_account() {
        let (ours, other) = (sample_gateway_account("acct_1", true), sample_gateway_account("acct_2", true));
        let read = || GatewayIdentity::Account(ours.clone());
        assert_eq!(which_checks_are_good(read(), None, None, true), [true, true, true]);
        assert_eq!(which_checks_are_good(read(), Some(&ours), None, true), [true, true, true]);
        assert_eq!(which_checks_are_good(read(), Some(&other), None, true), [true, false, true]);
        let hidden = |has_marker| GatewayIdentity::Hidden { has_marker };
        assert_eq!(which_checks_are_good(hidden(None), None, Some(true), true), [true, true, true]);
        assert_eq!(which_checks_are_good(hidden(Some(true)), Some(&ours), Some(true), true), [true, true, true]);
        assert_eq!(which_checks_are_good(hidden(Some(false)), Some(&ours), Some(true), true), [true, false, true]);
        assert_eq!(which_checks_are_good(hidden(None), Some(&ours), Some(true), true), [true, false, true]);
    }

    #[test]
    fn mode_of_the_gateway_key_must_match_the_stage() {
        for (live, is_prod, is_good) in
            [(true, true, true), (false, false, true), (false, true, false), (true, false, false)]
        {
            assert_eq!(
                which_checks_are_good(
                    GatewayIdentity::Account(sample_gateway_account("acct_1", live)),
                    None,
                    None,
                    is_prod
                ),
                [true, true, is_good]
            );
            let hidden = GatewayIdentity::Hidden { has_marker: None };
            assert_eq!(which_checks_are_good(hidden, None, Some(live), is_prod), [true, true, is_good]);
        }
        let unknown = check_gateway_account(&Ok(GatewayIdentity::Hidden { has_marker: None }), None, None, true);
        assert!(!unknown[2].is_good(), "an unknown mode does not count as good");
    }

    #[test]
    fn gateway_that_does_not_respond_is_a_wrong_finding() {
        for error in [
            GatewayError::Unusable { reason: "401 Unauthorized".to_owned() },
            GatewayError::Unknown { reason: "no response in time".to_owned() },
            GatewayError::Throttled { retry_after: None },
        ] {
            let findings = check_gateway_account(&Err(error), None, Some(true), true);
            assert_eq!(
                findings.iter().map(DoctorCheck::is_good).collect::<Vec<_>>(),
                [false, false, true],
                "{findings:?}"
            );
        }
    }
}
