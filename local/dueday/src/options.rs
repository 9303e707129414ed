//! The options of every command: the data folder or the table, JSON output, and a flag for each setting that the
//! functions read from their environment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use billing::Policy;
use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use config::{CommandFlag, ConfigError, Env, EnvVariable, variable_of_setting};
use deployment::{DeploymentConfig, EXAMPLE_MERCHANT, environment_variables};
use encryption::ENCRYPTION_KEYS;
use gateways::{GATEWAY, GATEWAY_KEY, STRIPE_API_BASE, STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET};
use mail::{MAIL_FROM, MAIL_URL, MERCHANT};
use rest::Role;
use store::TABLE;

use crate::terminal::confirmation::ask_question;

/// The environment variable with the path of the data folder.
const DATA_VARIABLE: &str = "DUEDAY_DATA";
/// The environment variable with the role of the person who runs commands.
pub const ROLE_VARIABLE: &str = "DUEDAY_ROLE";
/// The path of the data folder if neither `--data` nor the environment variable is set.
const DEFAULT_DATA_FOLDER: &str = ".dueday";
/// The sender of mails if no sender is configured. It has no name, so mails show the name of the merchant.
const DEFAULT_MAIL_FROM: &str = "billing@example.com";

/// The options of every command.
#[derive(Clone, Debug)]
pub struct Options {
    pub json: bool,
    pub data: PathBuf,
    /// The role of the person who runs the command.
    pub role: Role,
    /// The settings that the caller has set, by variable name. A flag takes precedence over the environment.
    settings: BTreeMap<&'static str, String>,
    /// The names of the variables whose flag is given.
    flags: BTreeSet<&'static str>,
}

impl Options {
    /// Returns the name of the table on AWS; `None` for the local table.
    pub fn table(&self) -> Option<&str> {
        self.setting(&TABLE)
    }

    /// Returns the URL of the gateway, or `stripe`; `None` for the sandbox gateway in this process.
    pub fn gateway(&self) -> Option<&str> {
        self.setting(&GATEWAY).map(|url| url.trim_end_matches('/'))
    }

    /// Returns the sender of mails.
    pub fn mail_from(&self) -> &str {
        self.setting(&MAIL_FROM).unwrap_or(DEFAULT_MAIL_FROM)
    }

    /// Returns the settings that the caller has set, and the defaults of the other settings. The rules for the values
    /// are the same as for the environment variables of the deployed functions.
    ///
    /// # Errors
    /// [`ConfigError`] if an environment variable is invalid. Flags are already checked.
    pub fn config(&self) -> Result<DeploymentConfig, ConfigError> {
        charging::refuse_moved_variables(Env::of_process())?;
        for variable in environment_variables() {
            let checked = self.setting(variable).map_or(Ok(()), |text| DeploymentConfig::check_value(variable, text));
            checked.map_err(|reason| ConfigError::Invalid { name: variable.name, reason })?;
        }
        DeploymentConfig::read(Env(&|name| self.settings.get(name).cloned()))
    }

    /// Asks for the merchant's name if mails reach customers and no name is configured. Does nothing if no person can
    /// answer, because no terminal is connected.
    pub fn ask_for_merchant(&mut self) {
        if self.mails_reach_customers() && self.setting(&MERCHANT).is_none() {
            let answer =
                ask_question("What is the merchant's name in mails and receipts? (--merchant answers this question.)");
            self.settings.extend(answer.map(|name| (MERCHANT.name, name)));
        }
    }

    /// Returns whether mails are sent to customers, and not only written to a folder.
    pub fn mails_reach_customers(&self) -> bool {
        Env::of_process().get(&MAIL_URL).is_some_and(|url| !url.starts_with("outbox:"))
    }

    /// Returns the first option in the command line `matches` that sets a setting of the system, such as `--table`;
    /// `None` if there is no such option. `--json` is not a setting.
    pub fn first_setting_flag(matches: &ArgMatches) -> Option<String> {
        let settings =
            environment_variables().filter_map(|variable| Some((variable.name, flag_of_variable(variable)?.0)));
        let mut all = std::iter::once(("data", "data")).chain(settings);
        let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
        all.find(|(id, _)| is_given(id)).map(|(_, flag)| format!("--{flag}"))
    }

    /// Returns the value of `variable` from the command line or the environment; `None` if it is not set.
    pub fn setting(&self, variable: &EnvVariable) -> Option<&str> {
        self.settings.get(variable.name).map(String::as_str)
    }

    /// Returns whether the value of `variable` comes from its flag.
    pub fn is_flag(&self, variable: &EnvVariable) -> bool {
        self.flags.contains(variable.name)
    }

    /// Returns the flag `--data` that another command needs to use the same data folder; empty for the default folder.
    pub fn data_flag(&self) -> String {
        match self.data.to_str() {
            Some(DEFAULT_DATA_FOLDER) => String::new(),
            Some(data) if data.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c)) => {
                format!(" --data {data}")
            }
            _ => format!(" --data '{}'", self.data.display().to_string().replace('\'', r"'\''")),
        }
    }
}

/// Returns the role of the person who runs commands, from the value of the environment variable: admin if it is not set.
///
/// # Errors
/// The allowed values, if `text` is not the name of a role.
fn parse_role(text: Option<&str>) -> Result<Role, String> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(Role::Admin) };
    text.parse()
}

/// Returns the help about the settings that have no option: secrets, which other users of the machine could read from a
/// command line.
pub fn help_of_environment() -> String {
    let line = |variable: &EnvVariable| format!("  {}\n          {}\n", variable.name, variable.help);
    let variables =
        [&MAIL_URL, &GATEWAY_KEY, &STRIPE_SECRET_KEY, &STRIPE_WEBHOOK_SECRET, &STRIPE_API_BASE, &ENCRYPTION_KEYS];
    let role = "The role of the person who runs commands: read, support or admin (default: admin)";
    format!(
        "Environment variables without an option:\n{}  {ROLE_VARIABLE}\n          {role}\n",
        variables.map(line).concat()
    )
}

/// Returns the flag of `variable`, and whether only `--help-all` lists it. Returns `None` if the variable has no flag.
fn flag_of_variable(variable: &EnvVariable) -> Option<(&'static str, bool)> {
    variable.flag.map(|flag| match flag {
        CommandFlag::Common(flag) => (flag, false),
        CommandFlag::Rare(flag) => (flag, true),
    })
}

/// Returns the name of the environment variable that is read if the flag of `variable` is absent. Returns `None` for
/// the table: commands use the local table by default, and only the flag `--table` selects another table.
fn environment_variable_name(variable: &EnvVariable) -> Option<&'static str> {
    Some(variable.name).filter(|name| *name != TABLE.name)
}

/// Returns the help of the flag of `variable`, with the allowed range, the default value and the environment variable.
fn flag_help_text(variable: &EnvVariable) -> String {
    let range = variable.range.filter(|(_, largest)| *largest < u32::MAX);
    let range = range.map(|(least, largest)| format!("{least} to {largest}"));
    let default = match variable.name {
        name if name == TABLE.name => None,
        name if name == MAIL_FROM.name => Some(DEFAULT_MAIL_FROM),
        name if name == MERCHANT.name => Some(EXAMPLE_MERCHANT),
        name if name == GATEWAY.name => Some("the sandbox gateway in this process"),
        _ => variable.default,
    };
    let is_policy = Policy::setting_names().any(|setting| variable_of_setting(setting).name == variable.name);
    let case = if is_policy { "new table" } else { "default" };
    let default = default.map(|default| format!("{case}: {default}"));
    let environment = environment_variable_name(variable).map(|name| format!("env: {name}"));
    let notes = [range, default, environment].into_iter().flatten().map(|note| format!(" [{note}]"));
    variable.help.to_owned() + &notes.collect::<String>()
}

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        let options = [
            Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print JSON"),
            Arg::new("data")
                .long("data")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help(format!("The data folder [default: {DEFAULT_DATA_FOLDER}] [env: {DATA_VARIABLE}]")),
        ];
        let help = [
            Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help"),
            Arg::new("help-all").long("help-all").action(ArgAction::HelpLong).help("Print help with all settings"),
        ];
        let settings = environment_variables().filter_map(|variable| {
            let (flag, is_rare) = flag_of_variable(variable)?;
            let check = move |text: &str| DeploymentConfig::check_value(variable, text).map(|()| text.to_owned());
            let value = ValueParser::new(check);
            let arg = Arg::new(variable.name).long(flag).value_name(variable.value).value_parser(value);
            let arg = arg.help(flag_help_text(variable));
            Some(if is_rare { arg.help_heading("Settings").hide_short_help(true) } else { arg })
        });
        let all = options.into_iter().chain(settings).chain(help);
        // Without this heading, an option would get the heading of the options that are defined before it.
        let with_heading = |arg: Arg| if arg.get_help_heading().is_some() { arg } else { arg.help_heading(None) };
        command.disable_help_flag(true).args(all.map(|arg| with_heading(arg.global(true))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let from_environment = |name| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        let settings = environment_variables().filter_map(|variable| {
            let _ = variable.flag?;
            let by_flag = matches.get_one::<String>(variable.name).cloned();
            Some((variable.name, by_flag.or_else(|| environment_variable_name(variable).and_then(from_environment))?))
        });
        let is_given = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
        let flags = environment_variables().filter(|variable| variable.flag.is_some() && is_given(variable.name));
        let data = matches.get_one::<PathBuf>("data").cloned();
        let data = data.or_else(|| std::env::var_os(DATA_VARIABLE).filter(|data| !data.is_empty()).map(PathBuf::from));
        let role = parse_role(std::env::var(ROLE_VARIABLE).ok().as_deref())
            .map_err(|reason| clap::Error::raw(ErrorKind::InvalidValue, format!("{ROLE_VARIABLE} {reason}\n")))?;
        Ok(Self {
            role,
            json: matches.get_flag("json"),
            data: data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA_FOLDER)),
            settings: settings.collect(),
            flags: flags.map(|variable| variable.name).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
