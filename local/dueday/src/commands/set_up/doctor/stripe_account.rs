//! Checks of the Stripe account: the permissions of the key, and the webhook endpoint.

use gateways::{DEBIT_EVENTS, GatewayError, NEEDED_EVENTS, StripeWebhookEndpoint};

use super::check_result::DoctorCheck;

/// The name of the check of the read permissions of the Stripe key.
const PERMISSIONS_CHECK: &str = "read permissions at Stripe";
/// The name of the check of the webhook endpoint at Stripe.
const ENDPOINT_CHECK: &str = "webhook endpoint at Stripe";
/// The path of the API to which Stripe sends its events.
const WEBHOOK_PATH: &str = "/webhooks/stripe";

/// Checks that the Stripe key has all needed read permissions. `missing` are the permissions that it lacks.
pub fn check_stripe_key_permissions(missing: &Result<Vec<String>, GatewayError>) -> DoctorCheck {
    match missing {
        Ok(missing) if missing.is_empty() => {
            DoctorCheck::good(PERMISSIONS_CHECK, "the key has all of them; write permissions show at the first charge")
        }
        Ok(missing) => {
            let detail = format!("the key lacks {}", missing.join(", "));
            DoctorCheck::wrong(
                PERMISSIONS_CHECK,
                detail,
                "Add them to the key in Stripe's Dashboard; docs/cards.md lists all",
            )
        }
        Err(error) => DoctorCheck::not_checked(PERMISSIONS_CHECK, error.to_string()),
    }
}

/// Checks that Stripe sends the needed events to the API at the URL `api`. `endpoints` are the webhook endpoints at
/// Stripe; `None` if the key may not read this list.
pub fn check_stripe_webhook_endpoint(
    endpoints: &Result<Option<Vec<StripeWebhookEndpoint>>, GatewayError>,
    api: &str,
) -> DoctorCheck {
    let endpoints = match endpoints {
        Ok(Some(endpoints)) => endpoints,
        Ok(None) => {
            let reason = "the key lacks the optional permission Webhook Endpoints read (rak_webhook_read); look at \
                          Stripe's Dashboard (Developers, Webhooks)";
            return DoctorCheck::not_checked(ENDPOINT_CHECK, reason);
        }
        Err(error) => return DoctorCheck::not_checked(ENDPOINT_CHECK, error.to_string()),
    };
    let url = format!("{}{WEBHOOK_PATH}", api.trim_end_matches('/'));
    let Some(ours) = endpoints.iter().find(|endpoint| endpoint.url == url) else {
        let other = endpoints.iter().find(|endpoint| endpoint.url.ends_with(WEBHOOK_PATH));
        return match other {
            // This endpoint may belong to the deployment, because a merchant can use another domain name for the API.
            Some(other) => DoctorCheck::not_checked(
                ENDPOINT_CHECK,
                format!("Stripe sends to {}; check that this is your own domain for {api}", other.url),
            ),
            None => DoctorCheck::wrong(
                ENDPOINT_CHECK,
                "there is none",
                format!("Add {url} in Stripe's Dashboard (docs/cards.md)"),
            ),
        };
    };
    if ours.status != "enabled" {
        return DoctorCheck::wrong(ENDPOINT_CHECK, format!("it is {}", ours.status), "Enable it in Stripe's Dashboard");
    }
    let lacks = |events: &[&'static str]| -> Vec<&'static str> {
        let is_sent = |event: &&str| ours.enabled_events.iter().any(|enabled| enabled == *event || enabled == "*");
        events.iter().copied().filter(|event| !is_sent(event)).collect()
    };
    let missing = lacks(&NEEDED_EVENTS);
    if !missing.is_empty() {
        let detail = format!("Stripe does not send {}", missing.join(", "));
        return DoctorCheck::wrong(ENDPOINT_CHECK, detail, "Add these events to the endpoint in Stripe's Dashboard");
    }
    match lacks(&DEBIT_EVENTS).as_slice() {
        [] => DoctorCheck::good(ENDPOINT_CHECK, "it is enabled and gets all events"),
        missing => DoctorCheck::good(
            ENDPOINT_CHECK,
            format!("it is enabled; merchants with bank debits also need {}", missing.join(", ")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example of the URL of the API.
    const API: &str = "https://a1b2c3.execute-api.eu-west-1.amazonaws.com";

    fn sample_stripe_endpoint(url: &str, status: &str, events: &[&str]) -> StripeWebhookEndpoint {
        StripeWebhookEndpoint {
            id: "we_1".parse().unwrap(),
            url: url.to_owned(),
            status: status.to_owned(),
            enabled_events: events.iter().map(|&event| event.to_owned()).collect(),
        }
    }

    /// Returns the name of the result of [`check_stripe_webhook_endpoint`] for `endpoints`.
    fn result_of_endpoint_check(endpoints: Vec<StripeWebhookEndpoint>) -> String {
        let finding = check_stripe_webhook_endpoint(&Ok(Some(endpoints)), API);
        serde_json::to_value(finding).unwrap()["result"].as_str().unwrap().to_owned()
    }

    #[test]
    fn stripe_endpoint_must_have_the_url_of_the_stack_and_be_enabled_for_the_needed_events() {
        let ours = format!("{API}/webhooks/stripe");
        let all: Vec<&str> = NEEDED_EVENTS.into_iter().chain(DEBIT_EVENTS).collect();
        assert_eq!(
            result_of_endpoint_check(vec![
                sample_stripe_endpoint("https://other.example.com", "enabled", &all),
                sample_stripe_endpoint(&ours, "enabled", &all)
            ]),
            "good"
        );
        assert_eq!(result_of_endpoint_check(vec![sample_stripe_endpoint(&ours, "enabled", &["*"])]), "good");
        assert_eq!(result_of_endpoint_check(vec![sample_stripe_endpoint(&ours, "enabled", &NEEDED_EVENTS)]), "good");
        assert_eq!(
            result_of_endpoint_check(vec![sample_stripe_endpoint(&ours, "enabled", &NEEDED_EVENTS[1..])]),
            "wrong"
        );
        assert_eq!(result_of_endpoint_check(vec![sample_stripe_endpoint(&ours, "disabled", &all)]), "wrong");
        assert_eq!(
            result_of_endpoint_check(vec![sample_stripe_endpoint("https://other.example.com", "enabled", &all)]),
            "wrong"
        );
        assert_eq!(
            result_of_endpoint_check(vec![sample_stripe_endpoint(
                "https://pay.example.com/webhooks/stripe",
                "enabled",
                &all
            )]),
            "not_checked"
        );
        assert!(
            !check_stripe_webhook_endpoint(&Ok(None), API).is_good(),
            "a list that cannot be read does not count as good"
        );
    }

    #[test]
    fn missing_permissions_of_the_stripe_key_are_named() {
        assert!(check_stripe_key_permissions(&Ok(Vec::new())).is_good());
        let finding = check_stripe_key_permissions(&Ok(vec!["Charges read (rak_charge_read)".to_owned()]));
        let shown = serde_json::to_string(&finding).unwrap();
        assert!(shown.contains("wrong") && shown.contains("rak_charge_read"), "{shown}");
        let refused = GatewayError::Unusable { reason: "401 Unauthorized".to_owned() };
        assert!(!check_stripe_key_permissions(&Err(refused)).is_good());
    }

    #[test]
    fn document_about_cards_lists_the_needed_stripe_events() {
        let document = include_str!("../../../../../../docs/cards.md");
        let (_, listed) = document.split_once("Select these events:").unwrap();
        let (listed, _) = listed.split_once("Merchants who charge only cards").unwrap();
        let listed: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
        let needed: Vec<&str> = DEBIT_EVENTS.into_iter().chain(NEEDED_EVENTS).collect();
        assert_eq!(listed, needed);
    }
}
