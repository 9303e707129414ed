//! The dependencies that each crate must not have, either directly or through other crates. Dev-dependencies are
//! allowed.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use super::crates::Crates;
use super::root;
use crate::documents::text_files;

/// The forbidden dependencies of a crate.
#[derive(Debug)]
pub enum Forbidden {
    /// Any other crate of the workspace.
    Workspace,
    /// Any other crate of the workspace except these.
    WorkspaceExcept(&'static [&'static str]),
    /// These crates, in the workspace or external. A name such as `aws-*` matches all crates that begin with `aws-`.
    Crates(&'static [&'static str]),
    /// All crates except `allowed`. `description` describes the forbidden crates in `docs/architecture.md`.
    Others { description: &'static str, allowed: &'static [&'static str] },
}

/// A rule: the crates `of` must not depend on `may_not_use`.
#[derive(Debug)]
pub struct Border {
    pub of: &'static [&'static str],
    pub may_not_use: Forbidden,
}

/// Returns the rule that the crates `of` must not depend on the crates `may_not_use`.
const fn border(of: &'static [&'static str], may_not_use: &'static [&'static str]) -> Border {
    Border { of, may_not_use: Forbidden::Crates(may_not_use) }
}

/// The crates that `billing` may depend on directly.
const ALLOWED_IN_BILLING: &[&str] = &[
    "base64",
    "chrono",
    "chrono-tz",
    "email_address",
    "icu_properties",
    "iso_currency",
    "serde",
    "serde_json",
    "serde_with",
    "sha2",
    "strum",
    "thiserror",
    "ulid",
    "url",
    // `billing` uses this crate only to describe the HTTP API.
    "utoipa",
];

/// Crates that do input or output. The pure crates must not depend on these crates, not even through other crates.
const IO_CRATES: &[&str] = &["tokio", "hyper", "reqwest", "axum", "lambda*", "aws-*", "lettre"];

/// The rules of all crates.
pub const BORDERS: &[Border] = &[
    Border {
        of: &["billing"],
        may_not_use: Forbidden::Others {
            description: "async, HTTP, AWS, a clock or randomness",
            allowed: ALLOWED_IN_BILLING,
        },
    },
    border(&["billing"], IO_CRATES),
    Border { of: &["aws-errors", "clock", "logs"], may_not_use: Forbidden::Workspace },
    Border { of: &["dynamo"], may_not_use: Forbidden::WorkspaceExcept(&["aws-errors"]) },
    border(&["config", "gateways", "mail"], &["dynamo", "aws-sdk-*"]),
    border(&["gateways"], &["mail"]),
    border(&["mail"], &["gateways"]),
    border(&["sandbox"], &["dynamo", "aws-sdk-*", "lambda*"]),
    border(&["store"], &["gateways", "mail"]),
    border(&["days", "sweep"], &["gateways", "mail"]),
    border(&["audit", "charging", "gateway-objects", "reconciling"], &["mail", "sweep", "payments"]),
    border(&["erasing"], &["gateways", "mail", "sweep", "payments", "axum", "lambda*"]),
    border(&["payments"], &["mail", "reminders", "publishing", "outbound", "notices", "axum", "lambda*"]),
    border(&["reminders"], &["gateways", "payments", "publishing", "outbound", "notices", "axum", "lambda*"]),
    border(&["outbound"], &["gateways", "mail", "notices", "publishing", "sweep", "payments", "axum"]),
    border(&["publishing"], &["gateways", "mail", "notices", "outbound", "sweep", "payments", "axum"]),
    border(&["notices"], &["gateways", "sweep", "payments", "outbound", "publishing", "axum"]),
    Border { of: &["orders"], may_not_use: Forbidden::WorkspaceExcept(&["billing"]) },
    border(&["orders"], IO_CRATES),
    border(&["orders-table", "orders-desk"], &["store", "gateways", "mail"]),
    border(
        &["rest"],
        &["lambda*", "orders", "gateways", "charging", "gateway-objects", "outbound", "sweep", "payments", "audit"],
    ),
    border(&["api-gateway"], &["gateways", "charging", "gateway-objects", "payments", "outbound"]),
    border(&["orders-api"], &["api", "gateways", "charging", "gateway-objects", "outbound", "payments"]),
    border(&["api"], &["orders-api", "inbound", "payments", "sweep"]),
    border(&["inbound"], &["api", "orders-api", "payments"]),
    border(&["encryption"], &["dynamo", "gateways", "aws-sdk-*"]),
    border(&["secrets", "gateway-secrets", "ses"], &["dynamo"]),
    border(&["sqs"], &["gateways", "payments"]),
    border(&["payments-function"], &["aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge", "lettre", "axum"]),
    border(&["reconcile-function"], &["aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge", "lettre", "payments"]),
    border(
        &["audit-function"],
        &["aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge", "aws-sdk-secretsmanager", "mail", "axum"],
    ),
    border(
        &["erase-function"],
        &["gateways", "mail", "payments", "aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge"],
    ),
    border(&["reminders-function"], &["aws-sdk-sqs", "aws-sdk-eventbridge", "axum"]),
    border(&["events-function"], &["gateways", "aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-secretsmanager"]),
    border(&["deliver-function"], &["gateways", "payments"]),
    border(&["notices-function"], &["gateways", "payments"]),
    border(&["orders-function"], &["payments", "api", "aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-secretsmanager"]),
    border(&["api-function"], &["aws-sdk-sesv2", "aws-sdk-eventbridge", "inbound"]),
    border(&["webhooks-function"], &["aws-sdk-sesv2", "aws-sdk-sqs", "aws-sdk-eventbridge", "api"]),
    border(&["sandbox-function"], &["aws-sdk-secretsmanager", "aws-sdk-sesv2", "aws-sdk-sqs", "payments", "api"]),
    border(
        &["dueday"],
        &[
            "lambda*",
            "aws_lambda_events",
            "aws-sdk-sesv2",
            "aws-sdk-sqs",
            "aws-sdk-eventbridge",
            "aws-sdk-secretsmanager",
            "testkit",
        ],
    ),
    border(
        &["emulator"],
        &[
            "store",
            "encryption",
            "payments",
            "reminders",
            "sweep",
            "mail",
            "orders",
            "publishing",
            "outbound",
            "notices",
        ],
    ),
];

impl Forbidden {
    /// Returns the forbidden crates that `name` depends on, directly or through other crates. A list of allowed crates
    /// applies only to direct dependencies.
    fn violations(&self, crates: &Crates, name: &str) -> Vec<String> {
        let is_named = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        match self {
            Self::Workspace => Self::WorkspaceExcept(&[]).violations(crates, name),
            Self::WorkspaceExcept(allowed) => {
                let reached = crates.all_dependencies(name).into_iter();
                reached.filter(|name| crates.is_workspace_crate(name) && !allowed.contains(&name.as_str())).collect()
            }
            Self::Crates(patterns) => {
                let reached = crates.all_dependencies(name).into_iter();
                reached.filter(|name| patterns.iter().any(|pattern| is_named(pattern, name))).collect()
            }
            Self::Others { allowed, .. } => {
                let direct = crates.direct_dependencies(name).iter();
                direct.filter(|name| !allowed.contains(&name.as_str())).cloned().collect()
            }
        }
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str("any other crate of the workspace"),
            Self::WorkspaceExcept(names) => {
                write!(f, "any other crate of the workspace except {}", quoted_names(names))
            }
            Self::Crates(names) => f.write_str(&quoted_names(names)),
            Self::Others { description, .. } => f.write_str(description),
        }
    }
}

/// Returns `names` as text, such as "`dynamo`, `mail`".
fn quoted_names(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[test]
fn architecture_crates_have_no_forbidden_dependencies() {
    let crates = Crates::of_project();
    let mut found = BTreeSet::new();
    for border in BORDERS {
        if let Forbidden::Crates(names) = &border.may_not_use {
            let is_known = |name: &&str| {
                name.contains('*') || crates.is_workspace_crate(name) || crates.is_workspace_crate_or_dependency(name)
            };
            let unknown: Vec<_> = names.iter().filter(|name| !is_known(name)).collect();
            assert!(unknown.is_empty(), "a rule in BORDERS names crates that do not exist: {unknown:?}");
        }
        for name in border.of {
            assert!(crates.is_workspace_crate(name), "{name} is not a crate of the workspace");
            found
                .extend(border.may_not_use.violations(crates, name).into_iter().map(|used| ((*name).to_owned(), used)));
        }
    }
    assert!(found.is_empty(), "crates with forbidden dependencies: {found:?}");
}

#[test]
fn architecture_has_no_shared_crate_or_function_that_depends_on_functions_or_local_crates() {
    let crates = Crates::of_project();
    let not_shared = [crates.of_folder("functions"), crates.of_folder("local")].concat();
    for name in [crates.of_folder("shared"), crates.of_folder("functions")].concat() {
        let reached = crates.all_dependencies(name);
        let forbidden: Vec<_> = not_shared.iter().filter(|name| reached.contains(**name)).collect();
        assert!(forbidden.is_empty(), "{name} depends on {forbidden:?}");
    }
}

#[test]
fn architecture_log_filter_names_every_crate_of_the_functions_and_of_the_command() {
    let crates = Crates::of_project();
    let source = std::fs::read_to_string(root().join("shared/logs/src/lib.rs")).unwrap();
    let (_, list) = source.split_once("const WORKSPACE_CRATES:").unwrap();
    let (_, list) = list.split_once("= [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    let listed: BTreeSet<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let programs = [crates.of_folder("functions"), vec!["dueday"]].concat();
    let mut expected: BTreeSet<String> = programs.iter().flat_map(|name| crates.targets(name)).cloned().collect();
    let used: BTreeSet<String> = programs.iter().flat_map(|name| crates.all_dependencies(name)).collect();
    for name in used.iter().filter(|name| crates.is_workspace_crate(name)) {
        expected.extend(crates.targets(name).iter().cloned());
    }
    // The crate `logs` only sets the log levels; it writes no log lines itself.
    expected.remove("logs");
    assert_eq!(
        listed, expected,
        "left: WORKSPACE_CRATES of shared/logs/src/lib.rs; right: the crates of the functions and of the command"
    );
    // The filter compares the beginning of names. A library whose name begins with the name of a workspace crate would
    // log at the levels `debug` and `trace`, too.
    let is_enabled = |library: &&String| {
        let name = library.replace('-', "_");
        !crates.is_workspace_crate(library) && listed.iter().any(|listed| name.starts_with(listed.as_str()))
    };
    let enabled: Vec<_> = used.iter().filter(is_enabled).collect();
    assert!(enabled.is_empty(), "the log filter treats these libraries like crates of the workspace: {enabled:?}");
}

#[test]
fn architecture_has_no_test_where_cargo_test_looks_for_none() {
    // A manifest with `test = false` saves the build of a test program that contains no tests.
    let crates = Crates::of_project();
    let main_files: Vec<_> = crates.main_files_without_tests().collect();
    assert!(main_files.len() > 30, "{main_files:?}");
    for (path, text) in text_files().filter(|(path, _)| path.ends_with(".rs")) {
        let path = root().join(path);
        let is_part_of = |main: &Path| {
            let folder = main.parent().unwrap();
            // A program beside a library consists of one file only.
            let is_alone = !main.ends_with("lib.rs") && (folder.ends_with("bin") || folder.join("lib.rs").exists());
            if is_alone { path == main } else { path.starts_with(folder) }
        };
        if main_files.iter().any(|main| is_part_of(main)) {
            for test in ["#[test]", "::test]", "::test(", "cfg(test)]", "proptest!"] {
                assert!(!text.contains(test), "{}: `{test}`, but its manifest has `test = false`", path.display());
            }
        }
    }
}

#[test]
fn architecture_has_no_example_where_cargo_test_looks_for_none() {
    // A manifest with `doctest = false` saves a run of rustdoc that finds no examples.
    let crates = Crates::of_project();
    let folders: Vec<_> = crates.libraries_without_examples().map(|path| path.parent().unwrap()).collect();
    assert!(folders.len() > 30, "{folders:?}");
    for (path, text) in text_files().filter(|(path, _)| path.ends_with(".rs")) {
        let path = root().join(path);
        if folders.iter().any(|folder| path.starts_with(folder)) {
            let is_documentation = |line: &&str| line.starts_with("///") || line.starts_with("//!");
            let mut lines = text.lines().map(str::trim_start).filter(is_documentation);
            assert!(
                !lines.any(|line| line.contains("```")),
                "{}: an example, but its manifest has `doctest = false`",
                path.display()
            );
        }
    }
}
