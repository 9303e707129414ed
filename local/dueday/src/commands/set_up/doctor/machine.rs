//! Checks of the system on this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use billing::GatewayAccount;
use chrono::{DateTime, Utc};
use config::Env;
use gateways::{STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET, SigningSecrets, is_live_stripe_key};
use store::Settings;

use super::check_result::DoctorCheck;
use super::deployment::check_stripe_gateway;
use super::{gateway_account, settings};
#[cfg(unix)]
use crate::Failure;
use crate::commands::serve::ServeArgs;
use crate::context::CommandContext;
use crate::machine::data_folder::RunningServer;
use crate::machine::gateway::SelectedGateway;
use crate::machine::inspection::{find_running_server, read_settings_of_local_table};
use crate::machine::listen::local_api_url;
#[cfg(unix)]
use crate::machine::private_folder;
#[cfg(unix)]
use crate::terminal::output::format_count;

/// The name of the check of the file modes in the data folder.
const FOLDER_CHECK: &str = "data folder";
/// The name of the check whether the local table can be read.
const TABLE_CHECK: &str = "table";
/// The name of the check of the machine's clock.
const CLOCK_CHECK: &str = "clock";
/// The name of the output line with the billing time zone.
const ZONE_CHECK: &str = "time zone";
/// The name of the check of the gateway.
const GATEWAY_CHECK: &str = "gateway";
/// The name of the check whether the server accepts events from Stripe.
const LISTENER_CHECK: &str = "Stripe's events";

/// Checks the system on this machine. `serve` contains the ports that the servers of this system will use.
pub async fn check_local_machine(context: &CommandContext, serve: &ServeArgs) -> Vec<DoctorCheck> {
    let folder = &context.options.data;
    // The modes are checked first, because the other checks open the database, which may create files in the folder.
    let mut findings = vec![check_file_permissions(context)];
    let running = match find_running_server(folder) {
        Ok(running) => running,
        Err(error) => {
            findings.push(DoctorCheck::not_checked(TABLE_CHECK, error.to_string()));
            return findings;
        }
    };
    let stored = match read_settings_of_local_table(context, running.as_ref()).await {
        Ok(Some(settings)) => {
            findings.extend(settings::check_stored_settings(&Ok(Some(settings.clone()))));
            Some(settings)
        }
        Ok(None) => {
            findings.push(DoctorCheck::good(TABLE_CHECK, "there is none yet; the first start creates it"));
            None
        }
        Err(failure) => {
            findings.push(DoctorCheck::wrong(
                TABLE_CHECK,
                failure.message(),
                "Restore a backup, or choose another folder",
            ));
            None
        }
    };
    findings.extend(check_ports(serve, running.as_ref()));
    findings.push(check_clock(context.clock.now(), stored.as_ref()));
    let configured = &context.config.table.configured_policy;
    let policy = match stored.as_ref().and_then(|settings| settings.policy.as_ref()) {
        Some(policy) => policy.read().ok(),
        // A new table gets the policy of the variables.
        None => Some(configured.policy.clone()),
    };
    if let Some(policy) = policy {
        findings.extend(settings::check_policy_variables(configured, &policy));
        let today = policy.date_at(context.clock.now());
        findings.push(DoctorCheck::good(ZONE_CHECK, format!("{}, where today is {today}", policy.zone)));
    }
    findings.extend(
        check_local_gateway(context, serve, running.as_ref(), stored.and_then(|stored| stored.gateway).as_ref()).await,
    );
    findings
}

/// Checks that the data folder and its files belong to the user, and that other users have no rights on them.
#[cfg(unix)]
fn check_file_permissions(context: &CommandContext) -> DoctorCheck {
    let folder = &context.options.data;
    if let Err(failure @ Failure::ForeignOwner { .. }) = private_folder::check_folder_owners(folder) {
        return DoctorCheck::wrong(
            FOLDER_CHECK,
            failure.message(),
            "Only you and root may own files in the data folder",
        );
    }
    match private_folder::list_files_accessible_to_others(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => DoctorCheck::good(
            FOLDER_CHECK,
            format!("{} does not exist yet; the first start creates it", folder.display()),
        ),
        Err(error) => DoctorCheck::not_checked(FOLDER_CHECK, format!("{}: {error}", folder.display())),
        Ok(open) => match open.first() {
            None => {
                DoctorCheck::good(FOLDER_CHECK, format!("only its owner can read {} and its files", folder.display()))
            }
            Some(first) => {
                let detail = format!(
                    "other users have rights on {}, such as {}",
                    format_count(open.len() as u64, "file"),
                    first.display()
                );
                DoctorCheck::wrong(FOLDER_CHECK, detail, format!("Run `chmod -R go= {}`", folder.display()))
            }
        },
    }
}

#[cfg(not(unix))]
fn check_file_permissions(_: &CommandContext) -> DoctorCheck {
    DoctorCheck::not_checked(FOLDER_CHECK, "this system has no file modes")
}

/// Checks that each port is free, or used by the server of this data folder.
fn check_ports(serve: &ServeArgs, running: Option<&RunningServer>) -> Vec<DoctorCheck> {
    if let Some(running) = running {
        let detail = format!("process {} serves this folder, with the API at {}", running.pid, running.api);
        return vec![DoctorCheck::good("ports", detail)];
    }
    let check =
        |(check, flag, address, port): (&'static str, &str, IpAddr, u16)| match TcpListener::bind((address, port)) {
            Ok(_) => DoctorCheck::good(check, format!("{port} is free")),
            Err(error) => {
                let reason =
                    if error.kind() == io::ErrorKind::AddrInUse { "is in use".to_owned() } else { error.to_string() };
                DoctorCheck::wrong(check, format!("{port}: {reason}"), format!("Choose another port with {flag}"))
            }
        };
    [
        ("port of the API", "--api-port", IpAddr::V4(Ipv4Addr::LOCALHOST), serve.api_port),
        ("port of DynamoDB", "--dynamodb-port", serve.listen, serve.dynamodb_port),
        ("port of the gateway", "--gateway-port", serve.listen, serve.gateway_port),
    ]
    .into_iter()
    .map(check)
    .collect()
}

/// Checks that the clock is not behind the latest run.
fn check_clock(now: DateTime<Utc>, stored: Option<&Settings>) -> DoctorCheck {
    let shown = now.format("%F %H:%M");
    match stored.and_then(|stored| stored.latest_run_at) {
        None => {
            DoctorCheck::good(CLOCK_CHECK, format!("it shows {shown} UTC; there is no earlier run to compare with"))
        }
        Some(latest) if latest <= now => DoctorCheck::good(
            CLOCK_CHECK,
            format!("it shows {shown} UTC, after the latest run at {}", latest.format("%F %H:%M")),
        ),
        Some(latest) => {
            let detail = format!("it shows {shown} UTC, before the latest run at {}", latest.format("%F %H:%M"));
            DoctorCheck::wrong(CLOCK_CHECK, detail, "Correct it, or run `dueday confirm-clock`")
        }
    }
}

/// Checks the gateway that the options select, or that the running server uses. `stored` is the gateway account in the
/// settings of the table.
async fn check_local_gateway(
    context: &CommandContext,
    serve: &ServeArgs,
    running: Option<&RunningServer>,
    stored: Option<&GatewayAccount>,
) -> Vec<DoctorCheck> {
    let api = running.map_or_else(|| local_api_url(serve.api_port), |running| running.api.clone());
    let named = context.options.gateway().or(running.map(|running| running.gateway.as_str()));
    let Some(name) = named else {
        return vec![DoctorCheck::good(GATEWAY_CHECK, "the sandbox gateway in this process: no money moves")];
    };
    let gateway = match SelectedGateway::from_name(name).await {
        Ok(gateway) => gateway,
        Err(failure) => {
            return vec![DoctorCheck::wrong(
                GATEWAY_CHECK,
                failure.message(),
                "Set the variable, or choose another gateway",
            )];
        }
    };
    match &gateway {
        SelectedGateway::Stripe(stripe) => {
            let is_live = Env::of_process().get(&STRIPE_SECRET_KEY).is_some_and(|key| is_live_stripe_key(&key));
            // A local system has no parameter `Stage`, which states whether a stack is the production system. So a live
            // key is taken as a sign of production.
            let is_prod = is_live;
            let mut findings = check_stripe_gateway(stripe, stored, is_live, is_prod, None).await;
            findings.push(check_stripe_event_listener(Env::of_process().get(&STRIPE_WEBHOOK_SECRET), &api));
            findings
        }
        _ => {
            let client = gateway.client(context.clock.clone());
            let identity = gateway_account::identify_gateway_account(client.as_ref(), false, stored).await;
            let is_live = match &identity {
                Ok(gateway_account::GatewayIdentity::Account(account)) => account.live,
                _ => false,
            };
            gateway_account::check_gateway_account(&identity, stored, Some(is_live), is_live)
        }
    }
}

/// Checks that the server accepts Stripe's events. Stripe cannot reach this machine, so the Stripe CLI must forward the
/// events to `api`, the URL of the API.
fn check_stripe_event_listener(secret: Option<String>, api: &str) -> DoctorCheck {
    let forward =
        format!("Run `stripe listen --forward-to {api}/webhooks/stripe`, and set {}", STRIPE_WEBHOOK_SECRET.name);
    match secret.map(|secret| SigningSecrets::parse(&secret)) {
        Some(Ok(_)) => DoctorCheck::good(LISTENER_CHECK, "the signing secret is set"),
        Some(Err(error)) => {
            DoctorCheck::wrong(LISTENER_CHECK, format!("{} {error}", STRIPE_WEBHOOK_SECRET.name), forward)
        }
        None => DoctorCheck::wrong(
            LISTENER_CHECK,
            "no signing secret is set, so disputes and returned refunds stay unnoticed",
            forward,
        ),
    }
}

#[cfg(test)]
mod tests {
    use clock::{Clock as _, SystemClock};

    use super::*;

    fn settings_with_latest_run(latest_run_at: Option<&str>) -> Settings {
        let latest_run_at = latest_run_at.map(|at| at.parse().unwrap());
        Settings { latest_run_at, ..Settings::new(1, SystemClock.ulid()) }
    }

    #[test]
    fn clock_of_the_machine_must_not_be_behind_the_latest_run() {
        let now = "2027-01-31T06:00:00Z".parse().unwrap();
        assert!(check_clock(now, None).is_good());
        assert!(check_clock(now, Some(&settings_with_latest_run(None))).is_good());
        assert!(check_clock(now, Some(&settings_with_latest_run(Some("2027-01-31T06:00:00Z")))).is_good());
        assert!(!check_clock(now, Some(&settings_with_latest_run(Some("2027-01-31T06:01:00Z")))).is_good());
    }

    #[test]
    fn signing_secret_of_stripe_must_be_set_and_valid() {
        let check =
            |secret: Option<&str>| check_stripe_event_listener(secret.map(str::to_owned), "http://127.0.0.1:17878");
        assert!(check(Some("whsec_0123456789abcdef")).is_good());
        let missing = check(None);
        assert!(!missing.is_good());
        let text = serde_json::to_string(&missing).unwrap();
        assert!(text.contains("--forward-to http://127.0.0.1:17878/webhooks/stripe`"), "{text}");
        let invalid = check(Some("sk_live_0123456789abcdef"));
        assert!(!invalid.is_good() && !serde_json::to_string(&invalid).unwrap().contains("0123456789"));
    }
}
