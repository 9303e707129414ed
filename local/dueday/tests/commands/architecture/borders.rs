//! What each crate may not depend on, with all that its dependencies depend on in turn. Dependencies of tests do not count.

use std::collections::BTreeSet;
use std::fmt;

use super::crates::Crates;
use super::root;

/// What a crate may not depend on.
#[derive(Debug)]
pub enum Forbidden {
    /// Any other crate of the workspace.
    Workspace,
    /// These crates: of the workspace or of others. A `*` at the end stands for any end of the name.
    Crates(&'static [&'static str]),
    /// What is not in this list, for the reason that is named.
    Others { why: &'static str, allowed: &'static [&'static str] },
}

/// A rule for several crates.
#[derive(Debug)]
pub struct Border {
    pub of: &'static [&'static str],
    pub may_not_use: Forbidden,
}

const fn border(of: &'static [&'static str], may_not_use: &'static [&'static str]) -> Border {
    Border { of, may_not_use: Forbidden::Crates(may_not_use) }
}

/// Every crate that `billing` may depend on itself.
const ALLOWED_IN_BILLING: &[&str] = &[
    "base64",
    "chrono",
    "email_address",
    "icu_properties",
    "iso_currency",
    "serde",
    "serde_json",
    "sha2",
    "strum",
    "thiserror",
    "ulid",
    "url",
    // For the description of the HTTP API alone.
    "utoipa",
];

/// What performs input or output.
const OUTSIDE: &[&str] = &["tokio", "hyper", "reqwest", "axum", "lambda*", "aws-*", "lettre"];

pub const BORDERS: &[Border] = &[
    Border {
        of: &["billing"],
        may_not_use: Forbidden::Others { why: "async, HTTP, AWS, a clock or randomness", allowed: ALLOWED_IN_BILLING },
    },
    border(&["billing"], OUTSIDE),
    Border { of: &["clock", "dynamo", "logs"], may_not_use: Forbidden::Workspace },
    border(&["config", "gateways", "mail"], &["dynamo", "aws-sdk-*"]),
    border(&["gateways"], &["mail"]),
    border(&["mail"], &["gateways"]),
    border(&["store"], &["gateways", "mail"]),
    border(&["days", "sweep"], &["gateways", "mail"]),
    border(&["audit", "settling"], &["mail", "sweep", "payments"]),
    border(&["payments"], &["mail", "reminders", "delivery", "axum", "lambda*"]),
    border(&["reminders"], &["gateways", "payments", "delivery", "axum", "lambda*"]),
    border(&["delivery"], &["gateways", "sweep", "payments", "axum"]),
    border(&["orders"], &["store", "gateways", "mail"]),
    border(&["rest"], &["sweep", "payments", "audit"]),
    border(&["orders-api"], &["api", "payments"]),
    border(&["api"], &["orders-api", "inbound"]),
    border(&["inbound"], &["api", "orders-api", "payments"]),
    border(&["secrets", "ses"], &["dynamo"]),
    border(&["sqs"], &["gateways", "payments"]),
    border(&["payments-function"], &["aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge", "lettre", "axum"]),
    border(&["reminders-function"], &["aws-sdk-secretsmanager", "aws-sdk-sqs", "aws-sdk-eventbridge", "axum"]),
    border(&["events-function"], &["gateways", "aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-secretsmanager"]),
    border(&["deliver-function", "notices-function"], &["gateways", "payments", "aws-sdk-secretsmanager"]),
    border(&["orders-function"], &["payments", "api", "aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-secretsmanager"]),
    border(&["api-function"], &["aws-sdk-sesv2", "aws-sdk-eventbridge", "inbound"]),
    border(&["webhooks-function"], &["aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge", "api"]),
    border(&["dueday"], &["aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge", "aws-sdk-secretsmanager"]),
];

impl Forbidden {
    /// The forbidden crates that `name` depends on, itself or by others. By a list of allowed ones it is judged only by its own.
    fn found(&self, crates: &Crates, name: &str) -> Vec<String> {
        let is_named = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        match self {
            Self::Workspace => crates.reached(name).into_iter().filter(|name| crates.is_ours(name)).collect(),
            Self::Crates(patterns) => {
                let reached = crates.reached(name).into_iter();
                reached.filter(|name| patterns.iter().any(|pattern| is_named(pattern, name))).collect()
            }
            Self::Others { allowed, .. } => {
                let direct = crates.direct(name).iter();
                direct.filter(|name| !allowed.contains(&name.as_str())).cloned().collect()
            }
        }
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str("any other crate of the workspace"),
            Self::Crates(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                f.write_str(&names.join(", "))
            }
            Self::Others { why, .. } => f.write_str(why),
        }
    }
}

#[test]
fn architecture_borders_hold() {
    let crates = Crates::read();
    let mut found = BTreeSet::new();
    for border in BORDERS {
        if let Forbidden::Crates(names) = &border.may_not_use {
            let is_known = |name: &&str| name.contains('*') || crates.is_ours(name) || crates.is_in_the_lock(name);
            let unknown: Vec<_> = names.iter().filter(|name| !is_known(name)).collect();
            assert!(unknown.is_empty(), "a border names crates that do not exist: {unknown:?}");
        }
        for name in border.of {
            assert!(crates.is_ours(name), "{name} is no crate of the workspace");
            found.extend(border.may_not_use.found(&crates, name).into_iter().map(|used| ((*name).to_owned(), used)));
        }
    }
    assert!(found.is_empty(), "crates that use what they may not: {found:?}");
}

#[test]
fn architecture_keeps_functions_and_local_crates_out_of_the_crates_below() {
    let crates = Crates::read();
    let not_shared = [crates.of_folder("functions"), crates.of_folder("local")].concat();
    for name in [crates.of_folder("shared"), crates.of_folder("functions")].concat() {
        let reached = crates.reached(name);
        let wrong: Vec<_> = not_shared.iter().filter(|name| reached.contains(**name)).collect();
        assert!(wrong.is_empty(), "{name} depends on {wrong:?}");
    }
}

#[test]
fn architecture_of_logs_names_every_crate_that_functions_are_made_of() {
    let crates = Crates::read();
    let source = std::fs::read_to_string(root().join("shared/logs/src/lib.rs")).unwrap();
    let (_, list) = source.split_once("const OURS:").unwrap();
    let (_, list) = list.split_once("= [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    let listed: BTreeSet<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let functions = crates.of_folder("functions");
    let mut wanted: BTreeSet<String> = functions.iter().flat_map(|name| crates.targets(name)).cloned().collect();
    for name in functions.iter().flat_map(|name| crates.reached(name)).filter(|name| crates.is_ours(name)) {
        wanted.extend(crates.targets(&name).iter().cloned());
    }
    // It sets the levels, and logs nothing itself.
    wanted.remove("logs");
    assert_eq!(listed, wanted, "OURS of shared/logs/src/lib.rs");
}
