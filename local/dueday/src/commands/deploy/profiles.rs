//! The profiles in `samconfig.toml` ("AWS SAM CLI configuration file" in the developer guide of AWS SAM).

use super::answers::Answers;

/// The line before the profiles. Everything after it is replaced when the profiles are written again.
const MARK: &str = "# The profiles of `dueday deploy init`. Everything below this line was written by the command.";

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
}

/// A profile: its name in `samconfig.toml`, the stack, and the stage.
const PROFILES: [(&str, &str, &str); 3] =
    [("default", "dueday-dev", "dev"), ("dev", "dueday-dev", "dev"), ("prod", "dueday", "prod")];

/// Checks that the profiles can be written to a file that contains `stored`.
///
/// # Errors
/// If the file has profiles already. Those that the command has written are no error if `replace` is true.
pub fn check_replaceable(stored: &str, replace: bool) -> Result<(), ProfileError> {
    let (kept, written) = stored.split_once(MARK).map_or((stored, None), |(kept, written)| (kept, Some(written)));
    let has_section =
        |name: &str| kept.lines().any(|line| line.trim_start().starts_with(&format!("[{name}.deploy.parameters]")));
    match PROFILES.into_iter().find(|(name, ..)| has_section(name)) {
        Some((name, ..)) => Err(ProfileError::OwnSection(name)),
        None if written.is_some() && !replace => Err(ProfileError::Written),
        None => Ok(()),
    }
}

/// Returns the content of a file that contained `stored`, with the profiles for `answers`.
pub fn with_profiles(stored: &str, answers: &Answers) -> String {
    let kept = stored.split_once(MARK).map_or(stored, |(kept, _)| kept).trim_end();
    let kept = if kept.is_empty() { "version = 0.1" } else { kept };
    let profiles = PROFILES.map(|(name, stack, stage)| profile(name, stack, stage, answers));
    format!("{kept}\n\n{MARK}\n{}", profiles.concat())
}

fn profile(name: &str, stack: &str, stage: &str, answers: &Answers) -> String {
    let all = std::iter::once(("Stage", stage.to_owned())).chain(answers.parameters(stage));
    let overrides: String = all
        .map(|(parameter, value)| format!("    {},\n", toml_text(&format!("{parameter}={}", quoted(&value)))))
        .collect();
    format!(
        "\n[{name}.deploy.parameters]\nstack_name = \"{stack}\"\ncapabilities = \"CAPABILITY_IAM\"\n\
         confirm_changeset = false\nresolve_s3 = true\nparameter_overrides = [\n{overrides}]\n"
    )
}

/// Returns `value` in the quotes that SAM expects around the value of a parameter.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('"', "\\\""))
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

    fn answers() -> Answers {
        let texts = [
            "Café \"Zürich\" & Co",
            "Shop <billing@example.com>",
            "https://pay.example.com arn:aws:secretsmanager:eu-west-1:123456789012:secret:gateway",
            "Europe/Vienna",
            "https://issuer.example.com/ dueday",
            "ops@example.com",
        ];
        Answers::new(texts.map(str::to_owned).into())
    }

    #[test]
    fn profiles_follow_the_settings_of_the_file_and_are_replaced_only_on_request() {
        let stored = "version = 0.1\n\n[default.build.parameters]\nbeta_features = true\n";
        assert_eq!(check_replaceable(stored, false), Ok(()));
        let written = with_profiles(stored, &answers());
        assert!(written.starts_with(stored), "{written}");
        assert_eq!(check_replaceable(&written, false), Err(ProfileError::Written));
        assert_eq!(check_replaceable(&written, true), Ok(()));
        assert_eq!(with_profiles(&written, &answers()), written, "the profiles are replaced, not repeated");
        assert!(with_profiles("", &answers()).starts_with("version = 0.1\n"));
    }

    #[test]
    fn only_the_profile_prod_charges_real_money() {
        let (sandbox, own) = ("Gateway=\\\"sandbox\\\"", "Gateway=\\\"https://pay.example.com\\\"");
        for (name, stack, stage) in PROFILES {
            let written = profile(name, stack, stage, &answers());
            let is_prod = stage == "prod";
            assert_eq!((written.contains(own), written.contains("GatewayKeySecret")), (is_prod, is_prod), "{written}");
            assert_eq!(written.contains(sandbox), !is_prod, "{written}");
        }
    }

    #[test]
    fn profile_that_a_person_has_written_is_not_touched() {
        let stored = "[prod.deploy.parameters]\nstack_name = \"billing\"\n";
        assert_eq!(check_replaceable(stored, true), Err(ProfileError::OwnSection("prod")));
    }
}
