//! Tests that run `dueday` as a process, and tests of the files that must match the code: the template, its
//! permissions, the models for NoSQL Workbench and the documents.

mod action_log;
mod architecture;
mod callers;
mod command;
mod costs;
mod daily_checks;
mod deliveries;
mod demo;
mod demo_folder;
mod deploy;
#[cfg(unix)]
mod doctor;
mod documents;
mod encrypted_secrets;
mod export;
mod file;
#[cfg(unix)]
mod file_modes;
mod gateway;
mod import;
mod import_again;
mod import_export;
mod import_full_disk;
mod kept_events;
mod kill;
mod look_up;
mod mails;
mod messages;
#[cfg(target_os = "linux")]
mod narrow_terminal;
mod order_events;
mod orders;
mod orders_address;
mod orders_audit;
mod orders_corrections;
mod orders_examples;
mod orders_model;
mod orders_replace;
mod orders_stock;
mod orders_working_day;
mod outputs;
mod permissions;
mod prices;
mod process;
mod reconcile;
mod refund;
mod run_interrupted;
mod server;
mod settings;
mod shop;
mod stripe;
mod subscription_names;
mod support_jobs;
mod template;
mod template_alarms;
mod template_cors;
mod template_logs;
mod template_metrics;
mod template_sandbox;
mod template_secrets;
mod template_tokens;
mod terminal;
mod why;
mod workbench;
