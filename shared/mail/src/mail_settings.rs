//! The variable `DUEDAY_MAIL_SETTINGS`, which contains several settings of mails and receipts. The Lambda functions get the
//! settings in this variable, because a template of CloudFormation may have few parameters only.

use std::collections::BTreeMap;

use config::{ConfigError, Env, EnvVariable};

use super::variables::{
    ACCOUNT_URL, MAIL_SETTINGS, MAILS_OFF, MAILS_SENT_ELSEWHERE, MERCHANT_ADDRESS, MERCHANT_LOGO, MERCHANT_TAX_ID,
    REPLY_TO, SUPPORT_EMAIL,
};

/// The name of each setting, and the variable that contains the same setting alone.
const NAMES: [(&str, &EnvVariable); 8] = [
    ("address", &MERCHANT_ADDRESS),
    ("tax-id", &MERCHANT_TAX_ID),
    ("logo", &MERCHANT_LOGO),
    ("support-email", &SUPPORT_EMAIL),
    ("reply-to", &REPLY_TO),
    ("account-url", &ACCOUNT_URL),
    ("mails-off", &MAILS_OFF),
    ("mails-sent-elsewhere", &MAILS_SENT_ELSEWHERE),
];

/// The settings in the variable [`MAIL_SETTINGS`]. A setting in a variable of its own is used instead.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MailSettings {
    /// The text of each setting, by the name of the variable that contains the same setting alone.
    texts: BTreeMap<&'static str, String>,
}

impl MailSettings {
    /// Reads the settings from `env`.
    ///
    /// # Errors
    /// [`ConfigError`] if the variable contains an unknown name, a name twice, or a part without `=`.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(env.read_optional(&MAIL_SETTINGS, Self::parse)?.unwrap_or_default())
    }

    /// Parses settings that are separated by semicolons.
    fn parse(text: &str) -> Result<Self, String> {
        let mut texts = BTreeMap::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (name.trim(), value.trim());
            let known = NAMES.iter().find(|(known, _)| *known == name);
            let Some((_, variable)) = known.filter(|_| !value.is_empty()) else {
                let names = NAMES.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "must be NAME=VALUE, separated by semicolons, not {part:?}; the names are {names}"
                ));
            };
            if texts.insert(variable.name, value.to_owned()).is_some() {
                return Err(format!("must contain {name} once"));
            }
        }
        Ok(Self { texts })
    }

    /// Returns the text of the setting whose own variable is `variable`.
    pub fn get(&self, variable: &str) -> Option<String> {
        self.texts.get(variable).cloned()
    }

    /// Returns `error` about the variable of a setting as an error about [`MAIL_SETTINGS`], if the setting is from there, and
    /// not from its own variable in `env`.
    pub fn name_source_of_error(&self, error: ConfigError, env: Env<'_>) -> ConfigError {
        let is_own_blank = |name: &str| (env.0)(name).is_none_or(|value| value.trim().is_empty());
        match error {
            ConfigError::Invalid { name, reason } if self.texts.contains_key(name) && is_own_blank(name) => {
                let setting =
                    NAMES.iter().find(|(_, variable)| variable.name == name).map_or(name, |(setting, _)| setting);
                ConfigError::Invalid { name: MAIL_SETTINGS.name, reason: format!("is wrong: {setting} {reason}") }
            }
            error => error,
        }
    }
}
