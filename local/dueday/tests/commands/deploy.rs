//! Tests of `dueday deploy init`: the answers become parameters of the template, and wrong answers are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_yaml_ng::Value;

use crate::terminal::{dueday, output};

/// Valid answers to the questions of the command, each as an option and its value.
const ANSWERS: [(&str, &str); 7] = [
    ("--name", "Café \"Zürich\" & Co"),
    ("--sender", "Shop <billing@example.com>"),
    ("--charge-with", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-a1b2c3"),
    ("--zone", "Europe/Vienna"),
    ("--tokens", "https://issuer.example.com/ dueday"),
    ("--alarms", "ops@example.com"),
    ("--parts", "core"),
];

/// Returns the command `dueday deploy init` for the project in `folder`, with `answers`.
fn init(folder: &Path, answers: &[(&str, &str)]) -> Command {
    let mut command = dueday(folder);
    command.args(["deploy", "init", "--folder"]).arg(folder);
    for (option, value) in answers {
        command.args([option, value]);
    }
    command
}

/// Creates a folder with the files of the project that the command needs.
fn create_project_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    for file in ["template.yaml", "samconfig.toml"] {
        std::fs::copy(format!("{root}{file}"), folder.path().join(file)).unwrap();
    }
    folder
}

/// Returns the text of `samconfig.toml`, to which the command writes the parameters.
fn read_written_file(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("samconfig.toml")).unwrap()
}

#[test]
fn answers_give_every_parameter_without_a_default_and_no_unknown_parameter() {
    let folder = create_project_folder();
    let before = read_written_file(folder.path());
    let (code, text, stderr) = output(&mut init(folder.path(), &ANSWERS));
    assert!(code == 0 && text.contains("sam deploy --config-env prod"), "{text}{stderr}");
    assert!(text.contains("dueday settings set retry-gaps"), "a new table has the default policy: {text}");
    let written = read_written_file(folder.path());
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

/// Returns the parameters of the profile `name` in `written`, the text of `samconfig.toml`.
fn parameters_of(written: &str, name: &str) -> BTreeMap<String, String> {
    let (_, rest) = written.split_once(&format!("[{name}.deploy.parameters]")).unwrap();
    let profile = rest.split("\n[").next().unwrap();
    let lines = profile.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.into(), value.replace("\\\"", "")))
        .collect()
}

#[test]
fn without_a_token_issuer_each_profile_creates_a_user_pool_with_its_own_domain() {
    let folder = create_project_folder();
    let answers = ANSWERS.map(|(name, value)| if name == "--tokens" { (name, "none") } else { (name, value) });
    let (code, _, stderr) = output(&mut init(folder.path(), &answers));
    assert_eq!(code, 0, "{stderr}");
    let template: Value = serde_yaml_ng::from_str(include_str!("../../../../template.yaml")).unwrap();
    let allowed = template["Parameters"]["UserPoolDomain"]["AllowedPattern"].as_str().unwrap();
    let allowed = regex::Regex::new(allowed).unwrap();
    let [dev, prod] = ["dev", "prod"].map(|profile| parameters_of(&read_written_file(folder.path()), profile));
    for (profile, parameters) in [("dev", &dev), ("prod", &prod)] {
        assert!(!parameters.contains_key("JwtIssuer") && !parameters.contains_key("JwtAudience"), "{parameters:?}");
        let domain = &parameters["UserPoolDomain"];
        assert!(allowed.is_match(domain) && domain.starts_with(&format!("dueday-{profile}-")), "{domain}");
    }
    assert_ne!(dev["UserPoolDomain"], prod["UserPoolDomain"], "a domain belongs to one user pool");
    let first = read_written_file(folder.path());
    assert_eq!(output(init(folder.path(), &answers).arg("--replace")).0, 0);
    assert_eq!(read_written_file(folder.path()), first, "the same answers have the same domains");
    let other = answers.map(|(name, value)| if name == "--name" { (name, "Another") } else { (name, value) });
    assert_eq!(output(init(folder.path(), &other).arg("--replace")).0, 0);
    let again = parameters_of(&read_written_file(folder.path()), "prod");
    assert_eq!(again["UserPoolDomain"], prod["UserPoolDomain"], "programs get their tokens at this domain");
    let other_folder = create_project_folder();
    assert_eq!(output(&mut init(other_folder.path(), &other)).0, 0);
    let elsewhere = parameters_of(&read_written_file(other_folder.path()), "prod");
    assert_ne!(elsewhere["UserPoolDomain"], prod["UserPoolDomain"], "another deployment has another domain");
}

#[test]
fn several_audiences_are_written_as_one_parameter() {
    let folder = create_project_folder();
    let tokens = "https://issuer.example.com/ one,two";
    let answers = ANSWERS.map(|(name, value)| if name == "--tokens" { (name, tokens) } else { (name, value) });
    assert_eq!(output(&mut init(folder.path(), &answers)).0, 0);
    assert_eq!(parameters_of(&read_written_file(folder.path()), "prod")["JwtAudience"], "one,two");
}

#[test]
fn wrong_answer_is_refused_with_the_allowed_values_and_no_file_is_written() {
    let folder = create_project_folder();
    let before = read_written_file(folder.path());
    let refusals = [
        ("--name", " ", "must be the name that customers know"),
        ("--sender", "billing", "must be an address, or a name without @ and an address in <>"),
        ("--sender", "Café <billing@example.com>", "in ASCII"),
        ("--sender", "Shop <billing@shop>", "a domain such as example.com"),
        ("--sender", "\"Shop @ Home\" <billing@example.com>", "a name without @"),
        (
            "--charge-with",
            "sk_live_123",
            "must be later, or the complete ARN of a secret in AWS Secrets Manager, such as",
        ),
        ("--charge-with", "arn:x:secretsmanager:", "or the complete ARN"),
        ("--charge-with", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe", "or the complete ARN"),
        ("--charge-with", "https://pay.example.com", "with a space between them"),
        ("--charge-with", "http://pay.example.com arn:aws:secretsmanager:eu-west-1:1:secret:a", "an https URL and"),
        ("--zone", "Vienna", "must be an IANA time zone"),
        ("--tokens", "https://issuer.example.com/", "must be none, or the https URL of an issuer and its audiences"),
        ("--tokens", "http://issuer.example.com/ dueday", "the https URL of an issuer"),
        ("--tokens", "https:// dueday", "the https URL of an issuer"),
        ("--tokens", "https://issuer.example.com/ dueday, other", "commas between several audiences"),
        ("--tokens", "None", "must be none"),
        ("--alarms", "ops", "must be an e-mail address"),
        ("--parts", "all", "must be core or full, not \"all\""),
    ];
    for (option, wrong, reason) in refusals {
        let answers = ANSWERS.map(|(name, right)| if name == option { (name, wrong) } else { (name, right) });
        let (code, _, stderr) = output(&mut init(folder.path(), &answers));
        assert!(code == 2 && stderr.contains(option) && stderr.contains(reason), "{option} {wrong}: {stderr}");
    }
    let (code, _, stderr) = output(&mut init(folder.path(), &ANSWERS[..5]));
    assert!(code == 2 && stderr.contains("--alarms"), "without a terminal, every answer is an option: {stderr}");
    assert_eq!(read_written_file(folder.path()), before);
}

#[test]
fn profiles_are_replaced_only_with_the_flag_replace() {
    let folder = create_project_folder();
    assert_eq!(output(&mut init(folder.path(), &ANSWERS)).0, 0);
    let first = read_written_file(folder.path());
    let other = ANSWERS.map(|(name, value)| if name == "--zone" { (name, "Asia/Tokyo") } else { (name, value) });
    let (code, _, stderr) = output(&mut init(folder.path(), &other));
    assert!(code == 2 && stderr.contains("--replace") && read_written_file(folder.path()) == first, "{stderr}");
    assert_eq!(output(init(folder.path(), &other).arg("--replace")).0, 0);
    assert_eq!(read_written_file(folder.path()), first.replace("Europe/Vienna", "Asia/Tokyo"));
}

#[test]
fn parameters_that_the_template_no_longer_has_leave_the_profiles_with_an_explanation() {
    let folder = create_project_folder();
    assert_eq!(output(&mut init(folder.path(), &ANSWERS)).0, 0);
    let path = folder.path().join("samconfig.toml");
    let with_old = read_written_file(folder.path())
        .replace("parameter_overrides = [\n", "parameter_overrides = [\n    'RetryGaps=\"1,2\"',\n");
    std::fs::write(&path, with_old).unwrap();
    let (code, text, stderr) = output(init(folder.path(), &ANSWERS).arg("--replace"));
    assert!(
        code == 0 && text.contains("no longer has RetryGaps=\"1,2\": use `dueday settings set retry-gaps`"),
        "{text}{stderr}"
    );
    assert!(!read_written_file(folder.path()).contains("RetryGaps"));
}

#[test]
fn options_that_have_no_effect_are_refused_before_anything_is_written() {
    let folder = create_project_folder();
    let before = read_written_file(folder.path());
    for option in [("--table", "dueday"), ("--data", "elsewhere"), ("--time-zone", "Europe/Vienna")] {
        let (code, _, error) = output(&mut init(folder.path(), &[&ANSWERS[..], &[option]].concat()));
        let reason = format!("dueday deploy init does not use the option {}", option.0);
        assert!(code == 2 && error.contains(&reason), "{code} {error}");
        assert!(error.contains("Usage: dueday deploy init"), "{error}");
        // An option before the name of the command has the same meaning.
        let mut command = dueday(folder.path());
        command.args([option.0, option.1, "deploy", "init", "--folder"]).arg(folder.path());
        assert_eq!(output(&mut command).0, 2, "{option:?}");
    }
    assert_eq!(read_written_file(folder.path()), before);
    let (code, text, error) = output(init(folder.path(), &ANSWERS).arg("--json"));
    assert!(code == 0 && text.starts_with('{'), "{text}{error}");
}
