//! Tests of `dueday deploy init`: the answers become parameters of the template, and wrong answers are refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_yaml_ng::Value;

use crate::terminal::{dueday, output};

/// Valid answers: the options and their values.
const ANSWERS: [(&str, &str); 6] = [
    ("--name", "Café \"Zürich\" & Co"),
    ("--sender", "Shop <billing@example.com>"),
    ("--charge-with", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe"),
    ("--zone", "Europe/Vienna"),
    ("--tokens", "https://issuer.example.com/ dueday"),
    ("--alarms", "ops@example.com"),
];

/// Returns the command `dueday deploy init` in `folder`, with `answers`.
fn init(folder: &Path, answers: &[(&str, &str)]) -> Command {
    let mut command = dueday(folder);
    command.args(["deploy", "init", "--folder"]).arg(folder);
    for (option, value) in answers {
        command.args([option, value]);
    }
    command
}

/// Creates a folder with the files of the project that the command needs.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    for file in ["template.yaml", "samconfig.toml"] {
        std::fs::copy(format!("{root}{file}"), folder.path().join(file)).unwrap();
    }
    folder
}

fn written(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("samconfig.toml")).unwrap()
}

#[test]
fn answers_give_every_parameter_without_a_default_and_no_unknown_parameter() {
    let folder = project();
    let before = written(folder.path());
    let (code, text, stderr) = output(&mut init(folder.path(), &ANSWERS));
    assert!(code == 0 && text.contains("sam deploy --config-env prod"), "{text}{stderr}");
    let written = written(folder.path());
    assert!(written.starts_with(before.trim_end()), "what was in the file stays");
    let template: Value = serde_yaml_ng::from_str(include_str!("../../../../template.yaml")).unwrap();
    let parameters = template["Parameters"].as_mapping().unwrap();
    let (_, prod) = written.split_once("[prod.deploy.parameters]").unwrap();
    let given: BTreeSet<&str> = prod
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split_once('='))
        .map(|(parameter, _)| parameter)
        .collect();
    for (name, parameter) in parameters {
        let name = name.as_str().unwrap();
        assert!(given.contains(name) || !parameter["Default"].is_null(), "sam deploy would ask for {name}");
    }
    assert!(given.iter().all(|name| parameters.contains_key(*name)), "{given:?}");
    insta::assert_snapshot!(prod.trim_start());
}

#[test]
fn wrong_answer_is_refused_with_what_is_allowed_and_nothing_is_written() {
    let folder = project();
    let before = written(folder.path());
    let refusals = [
        ("--name", " ", "must be the name that customers know"),
        ("--sender", "billing", "must be an address, or a name and an address in <>"),
        ("--sender", "Café <billing@example.com>", "in ASCII"),
        (
            "--charge-with",
            "sk_live_123",
            "must be the ARN of a secret in AWS Secrets Manager, or an https URL and such",
        ),
        ("--charge-with", "https://pay.example.com", "with a space between them"),
        ("--charge-with", "http://pay.example.com arn:aws:secretsmanager:eu-west-1:1:secret:a", "an https URL and"),
        ("--zone", "Vienna", "must be an IANA time zone"),
        ("--tokens", "https://issuer.example.com/", "and an audience"),
        ("--alarms", "ops", "must be an e-mail address"),
    ];
    for (option, wrong, reason) in refusals {
        let answers = ANSWERS.map(|(name, right)| if name == option { (name, wrong) } else { (name, right) });
        let (code, _, stderr) = output(&mut init(folder.path(), &answers));
        assert!(code == 2 && stderr.contains(option) && stderr.contains(reason), "{option} {wrong}: {stderr}");
    }
    let (code, _, stderr) = output(&mut init(folder.path(), &ANSWERS[..5]));
    assert!(code == 2 && stderr.contains("--alarms"), "without a terminal, every answer is an option: {stderr}");
    assert_eq!(written(folder.path()), before);
}

#[test]
fn profiles_are_replaced_only_with_replace() {
    let folder = project();
    assert_eq!(output(&mut init(folder.path(), &ANSWERS)).0, 0);
    let first = written(folder.path());
    let other = ANSWERS.map(|(name, value)| if name == "--zone" { (name, "Asia/Tokyo") } else { (name, value) });
    let (code, _, stderr) = output(&mut init(folder.path(), &other));
    assert!(code == 2 && stderr.contains("--replace") && written(folder.path()) == first, "{stderr}");
    assert_eq!(output(init(folder.path(), &other).arg("--replace")).0, 0);
    assert_eq!(written(folder.path()), first.replace("Europe/Vienna", "Asia/Tokyo"));
}
