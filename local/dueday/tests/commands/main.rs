//! The command, as it is typed, and what it must agree with: the template, the models, permissions.

mod architecture;
mod command;
mod deliveries;
mod demo;
mod export;
mod file;
mod gateway;
mod import;
mod import_again;
mod kept_events;
mod kill;
mod look_up;
mod messages;
mod orders;
mod orders_model;
mod permissions;
mod process;
mod refund;
mod stripe;
mod template;
mod template_logs;
mod terminal;
mod why;
mod workbench;
