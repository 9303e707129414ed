//! The role that each command needs. It has the same meaning as the role of an operator's token.

use clap::error::ErrorKind;
use clap::{ArgMatches, Command};
use rest::Role;

use crate::options::ROLE_VARIABLE;

/// The commands that change nothing in the table.
const READING_COMMANDS: [&str; 31] = [
    "due",
    "forecast",
    "accounts",
    "subscriptions",
    "duplicates",
    "receipts",
    "receipt show",
    "account export",
    "why",
    "findings",
    "runs",
    "report",
    "log",
    "events",
    "listen",
    "webhooks",
    "webhooks show",
    "webhooks deliveries",
    "orders list",
    "orders show",
    "orders pick-list",
    "orders stock",
    "orders movements",
    "orders ranking",
    "status",
    "settings get",
    "doctor",
    "export",
    "completions",
    "simulate",
    "audit list",
];

/// The commands that change what concerns one customer, an order or the stock.
const SUPPORTING_COMMANDS: [&str; 28] = [
    "refund",
    "receipt resend",
    "account change",
    "account card-link",
    "subscription change",
    "subscription pause",
    "subscription resume",
    "subscription cancel",
    "subscription uncancel",
    "subscription retry",
    "subscription correct-price",
    "subscription waive",
    "subscription paid-elsewhere",
    "webhooks redeliver",
    "orders pick",
    "orders ship",
    "orders deliver",
    "orders return",
    "orders cancel",
    "orders lines",
    "orders split",
    "orders replace",
    "orders address",
    "orders hand-over",
    "orders receive",
    "orders count",
    "orders write-off",
    "orders transfer",
];

/// Returns the role that the command `name` needs, such as `orders list`. A command that is in no list needs the role
/// admin, so a new command is never allowed by mistake.
fn needed_role(name: &str) -> Role {
    if READING_COMMANDS.contains(&name) {
        Role::Read
    } else if SUPPORTING_COMMANDS.contains(&name) {
        Role::Support
    } else {
        Role::Admin
    }
}

/// Returns the names of the command and its subcommands in `matches`, such as `orders list`.
fn command_name(matches: &ArgMatches) -> String {
    let mut names = Vec::new();
    let mut matches = matches;
    while let Some((name, of_subcommand)) = matches.subcommand() {
        names.push(name);
        matches = of_subcommand;
    }
    names.join(" ")
}

/// Checks that a person with `role` may run the command in `matches`.
///
/// # Errors
/// An error that names both roles.
pub fn check_role_for_command(dueday: &mut Command, matches: &ArgMatches, role: Role) -> Result<(), clap::Error> {
    let name = command_name(matches);
    let needed = needed_role(&name);
    if role >= needed {
        return Ok(());
    }
    let command = if name.is_empty() { "dueday".to_owned() } else { format!("dueday {name}") };
    let reason = format!("`{command}` needs the role {needed}, and {ROLE_VARIABLE} is {role}");
    Err(dueday.error(ErrorKind::ArgumentConflict, reason))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Arguments;

    /// Returns whether there is the command `name`, such as `orders list`.
    fn command_exists(name: &str) -> bool {
        let mut dueday = Arguments::command();
        dueday.build();
        name.split(' ').try_fold(&dueday, |command, word| command.find_subcommand(word)).is_some()
    }

    #[test]
    fn listed_commands_exist_and_are_listed_once() {
        let listed = [&READING_COMMANDS[..], &SUPPORTING_COMMANDS].concat();
        for name in &listed {
            assert!(command_exists(name), "there is no command {name}");
            assert_eq!(listed.iter().filter(|one| *one == name).count(), 1, "{name}");
        }
    }

    #[test]
    fn commands_that_charge_or_change_the_system_need_the_role_admin() {
        for name in
            ["", "run", "import", "resolve", "settings set", "charging", "webhooks create", "account erase", "audit"]
        {
            assert_eq!(needed_role(name), Role::Admin, "{name}");
        }
    }
}
