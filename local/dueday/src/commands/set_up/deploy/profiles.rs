//! The profiles in `samconfig.toml` ("AWS SAM CLI configuration file" in the developer guide of AWS SAM).

use std::collections::BTreeMap;

use super::answers::DeployAnswers;
use super::removed_parameters;

/// The line before the profiles that the command has written. A later `dueday deploy init` replaces everything after
/// this line.
const FIRST_GENERATED_LINE: &str =
    "# The profiles of `dueday deploy init`. Everything below this line was written by the command.";

/// The reason why the profiles cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The command has written profiles before.
    #[error("samconfig.toml has profiles of an earlier `dueday deploy init`; replace them with --replace")]
    Written,
    /// A profile with the same name was written by hand.
    #[error(
        "samconfig.toml has its own section [{0}.deploy.parameters]; remove it, or deploy with `sam deploy --guided`"
    )]
    OwnSection(&'static str),
    /// The profiles after the line `FIRST_GENERATED_LINE` were edited, and can no longer be parsed.
    #[error(
        "the profiles in samconfig.toml cannot be read: each needs its `parameter_overrides` as a list; correct or remove them"
    )]
    Unreadable,
}

/// The parameters that the answers may set. If the latest answers do not set one of them, the parameter of an earlier
/// profile is removed.
const PARAMETERS_SET_BY_ANSWERS: [&str; 12] = [
    "Stage",
    "Merchant",
    "MailFrom",
    "TimeZone",
    "Gateway",
    "StripeSecret",
    "GatewayKeySecret",
    "JwtIssuer",
    "JwtAudience",
    "UserPoolDomain",
    "AlarmEmail",
    "Parts",
];
/// The parameters that select the gateway. If the answers contain no gateway for production, these parameters of an
/// earlier profile are kept.
const GATEWAY_PARAMETERS: [&str; 3] = ["Gateway", "StripeSecret", "GatewayKeySecret"];
/// The parameters that keep their value when `dueday deploy init` replaces a profile, although the new answers also set
/// them.
const PARAMETERS_KEPT_WHEN_REPLACING_PROFILE: [&str; 2] = ["MailUrl", "UserPoolDomain"];

/// A profile: its name in `samconfig.toml`, the stack, and the stage.
const PROFILES: [(&str, &str, &str); 3] =
    [("default", "dueday-dev", "dev"), ("dev", "dueday-dev", "dev"), ("prod", "dueday", "prod")];

/// Checks that the profiles can be written to a file that contains `stored`.
///
/// # Errors
/// In these cases:
/// - The file contains a profile of the same name that was written by hand.
/// - The file contains a profile of this command, and `replace` is false.
/// - A profile of this command cannot be parsed.
pub fn check_profiles_are_replaceable(stored: &str, replace: bool) -> Result<(), ProfileError> {
    let (kept, written) =
        stored.split_once(FIRST_GENERATED_LINE).map_or((stored, None), |(kept, written)| (kept, Some(written)));
    let has_section =
        |name: &str| kept.lines().any(|line| line.trim_start().starts_with(&format!("[{name}.deploy.parameters]")));
    match PROFILES.into_iter().find(|(name, ..)| has_section(name)) {
        Some((name, ..)) => Err(ProfileError::OwnSection(name)),
        None if written.is_some() && !replace => Err(ProfileError::Written),
        None => earlier_parameters(stored).map(drop),
    }
}

/// Returns the content of the file `stored` with the profiles for `answers`. Parameters of earlier profiles that the
/// answers do not determine are kept. A profile for production is written only if the answers contain a gateway, or if
/// there was a profile for production.
///
/// # Errors
/// [`ProfileError::Unreadable`] if an earlier profile cannot be read.
pub fn replace_profiles(stored: &str, answers: &DeployAnswers) -> Result<String, ProfileError> {
    let kept = stored.split_once(FIRST_GENERATED_LINE).map_or(stored, |(kept, _)| kept);
    let kept = if kept.trim().is_empty() { "version = 0.1" } else { kept.trim_end() };
    let earlier = earlier_parameters(stored)?;
    let is_written =
        |stage: &str, earlier: &[String]| stage != "prod" || answers.has_production_gateway() || !earlier.is_empty();
    let profiles = PROFILES.into_iter().zip(&earlier).filter(|((.., stage), earlier)| is_written(stage, earlier));
    let profiles: String = profiles
        .map(|((name, stack, stage), earlier)| {
            format_profile(name, stack, &profile_parameters(stage, answers, earlier))
        })
        .collect();
    Ok(format!("{kept}\n\n{FIRST_GENERATED_LINE}\n{profiles}"))
}

/// Returns whether `text`, the content of `samconfig.toml`, has a profile for production.
pub fn has_production_profile(text: &str) -> bool {
    text.contains("\n[prod.deploy.parameters]\n")
}

/// A profile of `samconfig.toml` that can be deployed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeployProfile {
    /// The name of the stack.
    pub stack: String,
    /// The values of the template's parameters, by their names.
    pub parameters: BTreeMap<String, String>,
}

/// Returns the profile `name` of `text`, the content of `samconfig.toml`. Returns `None` if the file has no such profile,
/// or if the profile does not have the form that `dueday deploy init` writes.
pub fn read_profile(text: &str, name: &str) -> Option<DeployProfile> {
    let file: toml::Table = text.parse().ok()?;
    let stack = file.get(name)?.get("deploy")?.get("parameters")?.get("stack_name")?.as_str()?.to_owned();
    let overrides = read_parameter_overrides(&file, name)?;
    let parameters = overrides.iter().filter_map(|parameter| parameter.split_once('='));
    let parameters = parameters.map(|(name, value)| (name.to_owned(), unquote_parameter(value))).collect();
    Some(DeployProfile { stack, parameters })
}

/// Returns the parameters of each of the [`PROFILES`] that an earlier `dueday deploy init` has written to `stored`, the
/// content of `samconfig.toml`.
///
/// # Errors
/// [`ProfileError::Unreadable`] if a profile cannot be read.
pub fn earlier_parameters(stored: &str) -> Result<Vec<Vec<String>>, ProfileError> {
    let written = stored.split_once(FIRST_GENERATED_LINE).map_or("", |(_, written)| written);
    let written: toml::Table = written.parse().map_err(|_| ProfileError::Unreadable)?;
    PROFILES
        .into_iter()
        .map(|(name, ..)| read_parameter_overrides(&written, name).ok_or(ProfileError::Unreadable))
        .collect()
}

/// Returns the parameters of the profile `name`, each as `NAME="VALUE"`; no parameters if the profile does not exist.
/// Returns `None` if the profile does not contain the parameters as a list of texts.
fn read_parameter_overrides(written: &toml::Table, name: &str) -> Option<Vec<String>> {
    let Some(profile) = written.get(name) else { return Some(Vec::new()) };
    let all = profile.get("deploy")?.get("parameters")?.get("parameter_overrides")?.as_array()?.iter();
    all.map(|parameter| parameter.as_str().map(str::to_owned)).collect()
}

/// Returns the parameters of a profile, each as `NAME="VALUE"`: the parameters that the answers determine, followed by
/// the other parameters of the `earlier` profile. The user pool keeps its domain, because programs request their tokens
/// from this domain.
fn profile_parameters(stage: &str, answers: &DeployAnswers, earlier: &[String]) -> Vec<String> {
    let name_of = |parameter: &str| parameter.split('=').next().unwrap_or_default().to_owned();
    let is_open = |name: &str| !answers.has_production_gateway() && GATEWAY_PARAMETERS.contains(&name);
    let answered = std::iter::once(("Stage", stage.to_owned())).chain(answers.parameters(stage));
    let mut all: Vec<String> = answered.map(|(name, value)| format!("{name}={}", quote_parameter(&value))).collect();
    for parameter in earlier {
        let name = name_of(parameter);
        match all.iter_mut().find(|new| name_of(new) == name) {
            Some(new) if PARAMETERS_KEPT_WHEN_REPLACING_PROFILE.contains(&name.as_str()) => new.clone_from(parameter),
            None if removed_parameters::is_removed_parameter(&name) => {}
            None if !PARAMETERS_SET_BY_ANSWERS.contains(&name.as_str()) || is_open(&name) => {
                all.push(parameter.clone())
            }
            _ => {}
        }
    }
    all
}

/// Formats the profile `name` as a section of `samconfig.toml`.
fn format_profile(name: &str, stack: &str, stage_parameters: &[String]) -> String {
    let overrides: String =
        stage_parameters.iter().map(|parameter| format!("    {},\n", toml_text(parameter))).collect();
    format!(
        "\n[{name}.deploy.parameters]\nstack_name = \"{stack}\"\ncapabilities = \"CAPABILITY_IAM\"\n\
         confirm_changeset = false\nresolve_s3 = true\nparameter_overrides = [\n{overrides}]\n"
    )
}

/// Returns `value` in the quotes that SAM expects around the value of a parameter.
fn quote_parameter(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\\\""))
}

/// Returns the value that [`quote_parameter`] has quoted.
fn unquote_parameter(quoted: &str) -> String {
    let value = quoted.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(quoted);
    value.replace("\\\"", "\"")
}

/// Returns `text` as a basic string of TOML.
fn toml_text(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|character| match character {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            control if control.is_control() => format!("\\u{:04X}", u32::from(control)),
            other => other.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_answers() -> DeployAnswers {
        let texts = [
            "Café \"Zürich\" & Co",
            "Shop <billing@example.com>",
            "https://pay.example.com arn:aws:secretsmanager:eu-west-1:123456789012:secret:gateway-a1b2c3",
            "Europe/Vienna",
            "https://issuer.example.com/ dueday",
            "ops@example.com",
            "full",
        ];
        DeployAnswers::new(texts.map(str::to_owned).into())
    }

    #[test]
    fn profiles_follow_the_settings_of_the_file_and_are_replaced_only_on_request() {
        let stored = "version = 0.1\n\n[default.build.parameters]\nbeta_features = true\n";
        assert_eq!(check_profiles_are_replaceable(stored, false), Ok(()));
        let written = replace_profiles(stored, &sample_answers()).unwrap();
        assert!(written.starts_with(stored), "{written}");
        assert_eq!(check_profiles_are_replaceable(&written, false), Err(ProfileError::Written));
        assert_eq!(check_profiles_are_replaceable(&written, true), Ok(()));
        assert_eq!(
            replace_profiles(&written, &sample_answers()).unwrap(),
            written,
            "the profiles are replaced, not repeated"
        );
        assert!(replace_profiles("", &sample_answers()).unwrap().starts_with("version = 0.1\n"));
    }

    #[test]
    fn replaced_profiles_keep_the_domain_of_the_user_pool_and_the_parameters_that_a_person_has_added() {
        let texts = ["Shop", "shop@example.com", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:key-a1b2c3"];
        let with_alarms = |address: &str| {
            DeployAnswers::new(
                texts.into_iter().chain(["Europe/Vienna", "none", address, "full"]).map(str::to_owned).collect(),
            )
        };
        let written = replace_profiles("", &with_alarms("ops@example.com")).unwrap();
        let changed = written.replace(
            "MailUrl=\\\"ses:\\\"\",",
            "MailUrl=\\\"smtps://mail.example.com:465\\\"\",\n    'LogDays=\"90\"', # a comment\n    'RetryGaps=\"1,2\"',",
        );
        let again = replace_profiles(&changed, &with_alarms("new@example.com")).unwrap();
        let values = |text: &str, name: &str| -> Vec<String> {
            let start = format!("    \"{name}=");
            text.lines().filter(|line| line.starts_with(&start)).map(str::to_owned).collect()
        };
        assert_eq!(values(&again, "UserPoolDomain"), values(&written, "UserPoolDomain"));
        assert_eq!(values(&again, "LogDays"), vec!["    \"LogDays=\\\"90\\\"\","; 3]);
        assert!(values(&again, "RetryGaps").is_empty(), "the template no longer has this parameter");
        assert_eq!(values(&again, "MailUrl"), vec!["    \"MailUrl=\\\"smtps://mail.example.com:465\\\"\","; 3]);
        assert_eq!(values(&again, "AlarmEmail"), vec!["    \"AlarmEmail=\\\"new@example.com\\\"\","; 3]);
        let with_issuer = replace_profiles(&again, &sample_answers()).unwrap();
        assert!(!with_issuer.contains("UserPool") && with_issuer.contains("LogDays"), "{with_issuer}");
        let unreadable = again.replace("parameter_overrides = [", "parameter_overrides = \"A=b\"\nrest = [");
        assert_eq!(
            check_profiles_are_replaceable(&unreadable, true),
            Err(ProfileError::Unreadable),
            "before the first question"
        );
        assert_eq!(replace_profiles(&unreadable, &sample_answers()), Err(ProfileError::Unreadable));
    }

    #[test]
    fn written_profile_is_read_with_the_answers() {
        let written = replace_profiles("", &sample_answers()).unwrap();
        let profile = read_profile(&written, "prod").unwrap();
        assert_eq!((profile.stack.as_str(), profile.parameters["Stage"].as_str()), ("dueday", "prod"));
        assert_eq!(profile.parameters["Merchant"], "Café \"Zürich\" & Co");
        assert_eq!(read_profile(&written, "dev").unwrap().stack, "dueday-dev");
        assert_eq!(read_profile(&written, "other"), None);
    }

    #[test]
    fn only_the_profile_prod_charges_real_money() {
        let (sandbox, own) = ("Gateway=\\\"sandbox\\\"", "Gateway=\\\"https://pay.example.com\\\"");
        for (name, stack, stage) in PROFILES {
            let written = format_profile(name, stack, &profile_parameters(stage, &sample_answers(), &[]));
            let is_prod = stage == "prod";
            assert_eq!((written.contains(own), written.contains("GatewayKeySecret")), (is_prod, is_prod), "{written}");
            assert_eq!(written.contains(sandbox), !is_prod, "{written}");
        }
    }

    #[test]
    fn production_has_no_profile_without_a_gateway_and_an_earlier_one_keeps_its_gateway() {
        let later = ["Shop", "shop@example.com", "later", "Europe/Vienna", "none", "ops@example.com", "core"];
        let later = DeployAnswers::new(later.map(str::to_owned).into());
        let first = replace_profiles("", &later).unwrap();
        assert!(first.contains("[dev.deploy.parameters]") && !first.contains("[prod."), "{first}");
        let with_gateway = replace_profiles(&first, &sample_answers()).unwrap();
        let again = replace_profiles(&with_gateway, &later).unwrap();
        let (_, prod) = again.split_once("[prod.").unwrap();
        for kept in ["Gateway=\\\"https://pay.example.com\\\"", "GatewayKeySecret=", "Merchant=\\\"Shop\\\""] {
            assert!(prod.contains(kept), "{kept}: {prod}");
        }
        assert!(!prod.contains("sandbox"), "{prod}");
    }

    #[test]
    fn profile_that_a_person_has_written_is_not_touched() {
        let stored = "[prod.deploy.parameters]\nstack_name = \"billing\"\n";
        assert_eq!(check_profiles_are_replaceable(stored, true), Err(ProfileError::OwnSection("prod")));
    }
}
