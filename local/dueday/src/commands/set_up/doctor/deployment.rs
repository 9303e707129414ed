//! Checks of a deployment on AWS.

use std::sync::Arc;

use api::DeployedParts;
use aws_sdk_dynamodb::Client;
use billing::GatewayAccount;
use charging::GATEWAY_TIMEOUT;
use clock::SystemClock;
use config::{ConfigError, Env};
use gateways::{
    FullGateway, GATEWAY_KEY_SECRET_NAME, GatewayError, GatewayUrl, SANDBOX_URL, Stripe, http_gateway_with,
    is_live_stripe_key, stripe_with,
};

use super::aws_cli::AwsCli;
use super::check_result::DoctorCheck;
use super::dynamodb_table::{ORDERS_TABLE, PAYMENTS_TABLE};
use super::gateway_account::{self, ACCOUNT_CHECK, MODE_CHECK, RESPONDS_CHECK};
use super::secrets::{self, GatewayKey};
use super::stack::{self, Stack};
use super::stream_reader::{READER_OF_ORDERS, READER_OF_PAYMENTS};
use super::{alarms, dynamodb_table, mails, parts, settings, stream_reader, stripe_account, token_claim};
use crate::Failure;
use crate::context::CommandContext;
use crate::machine::gateway::SelectedGateway;
use crate::machine::open_table::load_sdk_config_with_credentials;

/// Checks the deployment of the table `name`. `stack` is the name of the stack; if it is `None`, the stack with this
/// table is searched.
///
/// # Errors
/// If the AWS region or the AWS credentials are missing.
pub async fn check_deployment(
    context: &CommandContext,
    name: &str,
    stack: Option<&str>,
) -> Result<Vec<DoctorCheck>, Failure> {
    let sdk = load_sdk_config_with_credentials().await?;
    let region = sdk.region().map(ToString::to_string).unwrap_or_default();
    let (aws, table) = (AwsCli { region }, context.config.table.connect(&sdk));
    let (stack, mut findings) = stack::find_stack(&aws, stack, name).await;
    let stack = stack.as_ref();
    findings.extend(parts::report_parts_of_stack(stack));
    let is_core = stack.is_some_and(|stack| stack.parts() == DeployedParts::Core);
    let table_and_reader = async {
        let is_prod = stack.is_none_or(Stack::is_prod);
        let (mut findings, stream) =
            dynamodb_table::check_dynamodb_table(table.client(), &PAYMENTS_TABLE, name, is_prod).await;
        if !is_core {
            findings.push(stream_reader::check_stream_reader(&aws, stack, READER_OF_PAYMENTS, stream.as_deref()).await);
        }
        findings.extend(check_orders_table(table.client(), &aws, stack).await);
        findings
    };
    let (of_table, stored, (keys, of_secrets), of_alarms, of_claim) = futures::join!(
        table_and_reader,
        table.get_settings(),
        secrets::check_stack_secrets(&aws, stack),
        alarms::check_alarm_topic(&aws, stack),
        token_claim::check_token_claim(&aws, stack),
    );
    findings.extend(of_table);
    findings.extend(settings::check_stored_settings(&stored));
    let policy = stored.as_ref().ok().and_then(Option::as_ref).and_then(|settings| settings.policy.as_ref());
    findings.push(settings::check_time_zone(stack, policy));
    findings.extend(of_secrets);
    let account = stored.ok().flatten().and_then(|settings| settings.gateway);
    findings.extend(check_stack_gateway(stack, keys.gateway, account.as_ref()).await);
    findings.extend(mails::check_mails_of_stack(&aws, stack, keys.mail_login).await);
    findings.extend([of_alarms, of_claim]);
    Ok(findings)
}

/// Checks the table of the order desk and its stream. Returns nothing if the stack has no order desk.
async fn check_orders_table(client: &Client, aws: &AwsCli, stack: Option<&Stack>) -> Vec<DoctorCheck> {
    let Some(stack) = stack else {
        let reason = "the stack is not known, and therefore not whether it has an order desk";
        return vec![DoctorCheck::not_checked(ORDERS_TABLE.table, reason)];
    };
    if stack.parameter("Orders") != "on" {
        return Vec::new();
    }
    let Some(name) = stack.outputs.get("OrdersTableName") else {
        let advice = "Deploy the template again, with Orders=on";
        return vec![DoctorCheck::wrong(ORDERS_TABLE.table, "the stack has no output OrdersTableName", advice)];
    };
    let (mut findings, stream) =
        dynamodb_table::check_dynamodb_table(client, &ORDERS_TABLE, name, stack.is_prod()).await;
    findings.push(stream_reader::check_stream_reader(aws, Some(stack), READER_OF_ORDERS, stream.as_deref()).await);
    findings
}

/// Checks the gateway of the stack with its `key`. `stored` is the gateway account in the settings of the table.
async fn check_stack_gateway(
    stack: Option<&Stack>,
    key: Option<GatewayKey>,
    stored: Option<&GatewayAccount>,
) -> Vec<DoctorCheck> {
    let not_checked = |reason: &str| {
        [RESPONDS_CHECK, ACCOUNT_CHECK, MODE_CHECK].map(|check| DoctorCheck::not_checked(check, reason)).into()
    };
    let Some(stack) = stack else { return not_checked("the stack is not known") };
    let (name, api) = (stack.parameter("Gateway"), stack.outputs.get("ApiUrl").map_or("", String::as_str));
    if name == "sandbox" {
        return check_sandbox_gateway(stack, stored).await;
    }
    let invalid =
        |error: ConfigError| vec![DoctorCheck::wrong(RESPONDS_CHECK, error.to_string(), "Deploy with a valid value")];
    match key {
        None => not_checked("its key is not known"),
        Some(GatewayKey::Stripe(key)) => {
            let is_live = is_live_stripe_key(&key);
            match stripe_with(Env::of_process(), key.into(), GATEWAY_TIMEOUT) {
                Err(error) => invalid(error),
                Ok(stripe) => {
                    let has_webhooks = !stack.parameter("StripeWebhookSecret").is_empty();
                    let api = Some(api).filter(|api| has_webhooks && !api.is_empty());
                    check_stripe_gateway(&stripe, stored, is_live, stack.is_prod(), api).await
                }
            }
        }
        Some(GatewayKey::Own(_)) if !stack.parameter("VpcSubnets").is_empty() => {
            not_checked("it may be in a private network; the functions reach it through VpcSubnets")
        }
        Some(GatewayKey::Own(keys)) => {
            let url = match name.parse::<GatewayUrl>() {
                Ok(url) => url,
                Err(error) => {
                    return vec![DoctorCheck::wrong(
                        RESPONDS_CHECK,
                        format!("Gateway must be {error}"),
                        "Deploy with a valid value",
                    )];
                }
            };
            let keys = Some(keys.into());
            let clock = Arc::new(SystemClock);
            match http_gateway_with(&url, &GATEWAY_KEY_SECRET_NAME, keys, GATEWAY_TIMEOUT, clock) {
                Err(error) => invalid(error),
                Ok(gateway) => {
                    let identity = gateway_account::identify_gateway_account(&gateway, false, stored).await;
                    gateway_account::check_gateway_account(&identity, stored, None, stack.is_prod())
                }
            }
        }
    }
}

/// Checks the sandbox gateway of the stack. This gateway needs no key: the requests are signed with the credentials of
/// the AWS CLI. The template refuses a sandbox gateway with `Stage=prod`.
async fn check_sandbox_gateway(stack: &Stack, stored: Option<&GatewayAccount>) -> Vec<DoctorCheck> {
    let url = stack.outputs.get("SandboxUrl").cloned();
    match SelectedGateway::sandbox_of_stack(Env(&|name| url.clone().filter(|_| name == SANDBOX_URL.name))).await {
        Err(failure) => vec![DoctorCheck::not_checked(RESPONDS_CHECK, failure.message())],
        Ok(gateway) => {
            let client = gateway.client(Arc::new(SystemClock));
            let identity = gateway_account::identify_gateway_account(client.as_ref(), false, stored).await;
            gateway_account::check_gateway_account(&identity, stored, Some(false), false)
        }
    }
}

/// Checks the account at Stripe, the permissions of the key, and the webhook endpoint for the API at the URL `api`.
pub(super) async fn check_stripe_gateway(
    stripe: &Stripe,
    stored: Option<&GatewayAccount>,
    is_live: bool,
    is_prod: bool,
    api: Option<&str>,
) -> Vec<DoctorCheck> {
    let identity = match stripe.is_account_unreadable().await {
        Ok(hides_account) => {
            gateway_account::identify_gateway_account(stripe as &dyn FullGateway, hides_account, stored).await
        }
        Err(error) => Err::<_, GatewayError>(error),
    };
    let mut findings = gateway_account::check_gateway_account(&identity, stored, Some(is_live), is_prod);
    findings.push(stripe_account::check_stripe_key_permissions(&stripe.missing_read_permissions().await));
    if let Some(api) = api {
        findings.push(stripe_account::check_stripe_webhook_endpoint(&stripe.webhook_endpoints().await, api));
    }
    findings
}
