//! What every command takes: the data folder or the table, JSON, and the settings that the functions read from their
//! environment, each as a flag.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use config::{ConfigError, Env, Flag, Variable};
use emulator::{Config, variables};
use gateways::GATEWAY;
use mail::MAIL_FROM;
use store::TABLE;

/// The variable that names the data folder.
const DATA: &str = "DUEDAY_DATA";
const DEFAULT_DATA: &str = ".dueday";
/// Mails of one machine stay in its outbox.
const DEFAULT_MAIL_FROM: &str = "Dueday <billing@example.com>";

/// What every command takes.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub json: bool,
    /// The data folder.
    pub data: PathBuf,
    /// The settings that are given, by the name of their variable: by a flag, else by the environment.
    given: BTreeMap<&'static str, String>,
}

impl Options {
    /// The table on AWS to work on, if it is not the local one.
    pub fn table(&self) -> Option<&str> {
        self.given(&TABLE)
    }

    /// The gateway to charge through, if it is not the one inside.
    pub fn gateway(&self) -> Option<&str> {
        self.given(&GATEWAY).map(|url| url.trim_end_matches('/'))
    }

    /// The sender of mails.
    pub fn mail_from(&self) -> &str {
        self.given(&MAIL_FROM).unwrap_or(DEFAULT_MAIL_FROM)
    }

    /// The settings as the functions read them: from the same variables, by the same rules.
    ///
    /// # Errors
    /// [`ConfigError`]: a variable of the environment is wrong. Flags have been checked.
    pub fn config(&self) -> Result<Config, ConfigError> {
        for variable in variables() {
            let checked = self.given(variable).map_or(Ok(()), |text| Config::check(variable, text));
            checked.map_err(|reason| ConfigError::Invalid { name: variable.name, reason })?;
        }
        Config::read(Env(&|name| self.given.get(name).cloned()))
    }

    /// What `variable` is set to.
    pub fn given(&self, variable: &Variable) -> Option<&str> {
        self.given.get(variable.name).map(String::as_str)
    }

    /// The flags that another command needs to find the same data.
    pub fn flags(&self) -> String {
        match self.data.to_str() {
            Some(DEFAULT_DATA) => String::new(),
            Some(data) if data.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c)) => {
                format!(" --data {data}")
            }
            _ => format!(" --data '{}'", self.data.display().to_string().replace('\'', r"'\''")),
        }
    }
}

/// The command's flag for `variable`, and whether only `--help` shows it.
fn flag(variable: &Variable) -> Option<(&'static str, bool)> {
    variable.flag.map(|flag| match flag {
        Flag::Common(flag) => (flag, false),
        Flag::Rare(flag) => (flag, true),
    })
}

/// The environment variable that is read if the flag is absent. The local table has no name to choose.
fn environment(variable: &Variable) -> Option<&'static str> {
    Some(variable.name).filter(|name| *name != TABLE.name)
}

fn help(variable: &Variable) -> String {
    let range = variable.range.filter(|(_, largest)| *largest < u32::MAX);
    let range = range.map(|(least, largest)| format!("{least} to {largest}"));
    let default = match variable.name {
        name if name == TABLE.name => None,
        name if name == MAIL_FROM.name => Some(DEFAULT_MAIL_FROM),
        name if name == GATEWAY.name => Some("the sandbox gateway in this process"),
        _ => variable.default,
    };
    let default = default.map(|default| format!("default: {default}"));
    let environment = environment(variable).map(|name| format!("env: {name}"));
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
                .help(format!("The data folder [default: {DEFAULT_DATA}] [env: {DATA}]")),
        ];
        let settings = variables().filter_map(|variable| {
            let (flag, is_rare) = flag(variable)?;
            let check = move |text: &str| Config::check(variable, text).map(|()| text.to_owned());
            let value = ValueParser::new(check);
            let arg = Arg::new(variable.name).long(flag).value_name(variable.value).value_parser(value);
            Some(arg.help(help(variable)).hide_short_help(is_rare))
        });
        let all = options.into_iter().chain(settings);
        command.args(all.map(|arg| arg.global(true).help_heading("Settings")))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let from_environment = |name| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        let given = variables().filter_map(|variable| {
            let (_, _) = flag(variable)?;
            let by_flag = matches.get_one::<String>(variable.name).cloned();
            Some((variable.name, by_flag.or_else(|| environment(variable).and_then(from_environment))?))
        });
        let data = matches.get_one::<PathBuf>("data").cloned();
        let data = data.or_else(|| std::env::var_os(DATA).filter(|data| !data.is_empty()).map(PathBuf::from));
        Ok(Self {
            json: matches.get_flag("json"),
            data: data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA)),
            given: given.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
