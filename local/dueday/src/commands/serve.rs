//! `dueday`: the whole system on one machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use api::{Api, Caller};
use axum::Extension;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use shared::clock::{Clock, SystemClock};
use shared::payments::ChargeDue;
use shared::reminders::RemindDue;
use shared::sweep::{BatchRequest, Report, Sweep, SweepError};
use shared::table::Counts;
use utoipa_swagger_ui::SwaggerUi;

use crate::Failure;
use crate::arguments::{Serve, Settings};
use crate::commands::gateway::{self, Gateway};
use crate::commands::run;
use crate::machine::data::{Held, Machine, Running};
use crate::machine::listen::{listen, reachable, url};
use emulator::next_run;

/// A run is given this long.
const TIME_FOR_A_RUN: TimeDelta = TimeDelta::hours(2);
/// Expired items are deleted this often.
const TTL_INTERVAL: Duration = Duration::from_secs(3_600);

pub async fn serve(settings: &Settings, serve: &Serve) -> Result<ExitCode, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut held = match Held::take(settings, &clock).await? {
        Ok(held) => held,
        Err(running) => {
            let what = running.map_or("starting".to_owned(), |r| format!("process {}, API at {}", r.pid, r.api));
            return Err(Failure::InUse { path: settings.data.clone(), what });
        }
    };
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let api_listener = listen(loopback, serve.api_port, "--api-port").await?;
    let gateway = match &held.gateway {
        Gateway::Inside(sandbox) => gateway::serve(sandbox.clone(), serve.listen, serve.gateway_port).await?,
        Gateway::At(url) => url.clone(),
    };
    let dynamodb = held
        .engine
        .serve(SocketAddr::new(serve.listen, serve.dynamodb_port))
        .map_err(|error| hinted(error, "--dynamodb-port"))?;
    let running = Running {
        pid: std::process::id(),
        api: url(&api_listener),
        dynamodb: format!("http://{}", reachable(dynamodb.address)),
        gateway,
    };
    held.announce(&running)?;
    let held = Arc::new(held);
    let Machine { deployment, .. } = &Machine::on(held.clone(), settings, clock.clone()).await?;
    let api = Api::new(deployment.table.clone(), &deployment.config, clock.clone()).await?;
    // On loopback, whoever reaches the API is its operator.
    let pages = SwaggerUi::new("/docs").external_url_unchecked("/openapi.json", api::document());
    let routes = api.with_docs().router().merge(pages).layer(Extension(Caller::Operator));
    tokio::spawn(async move { axum::serve(api_listener, routes).await });

    print!("{}", welcome(settings, serve, &running));
    let (reminders, payments) = (deployment.reminders().await?, deployment.payments().await?);
    let daily =
        Daily { reminders, payments, clock, zone: deployment.config.zone, serve, lease: deployment.config.lease };
    tokio::select! {
        () = daily.run() => {}
        () = delete_expired(&held) => {}
        _ = tokio::signal::ctrl_c() => println!("\nStopped. Everything is kept in {}.", settings.data.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The timer: what is due at once, then at every run of the timetable, and one lease after a run that left attempts
/// open.
struct Daily<'a> {
    reminders: Sweep<RemindDue>,
    payments: Sweep<ChargeDue>,
    clock: Arc<dyn Clock>,
    zone: chrono_tz::Tz,
    serve: &'a Serve,
    lease: TimeDelta,
}

impl Daily<'_> {
    async fn run(&self) {
        loop {
            let now = self.clock.now();
            let is_open = self.sweep(now.with_timezone(&self.zone).date_naive(), now + TIME_FOR_A_RUN).await;
            let scheduled = next_run(self.clock.now(), self.serve.billing_time, self.zone);
            let next = if is_open { scheduled.min(self.clock.now() + self.lease) } else { scheduled };
            println!("next run at {}", next.with_timezone(&self.zone).format("%Y-%m-%d %H:%M %Z"));
            // Wakes in between, so that a machine that was asleep is not late by as long as it slept.
            while self.clock.now() < next {
                let left = next.signed_duration_since(self.clock.now()).to_std().unwrap_or_default();
                tokio::time::sleep(left.min(Duration::from_secs(60))).await;
            }
        }
    }

    /// Answers whether anything was left open.
    async fn sweep(&self, today: NaiveDate, deadline: DateTime<Utc>) -> bool {
        let request = BatchRequest::on(today);
        let reminded = self.reminders.run(&request, deadline).await;
        let charged = self.payments.run(&request, deadline).await;
        let is_left = reminded.as_ref().map_or(true, |report| !report.complete || report.counts.failed > 0)
            || charged
                .as_ref()
                .map_or(true, |report| !report.complete || report.counts.in_doubt > 0 || report.counts.failed > 0);
        tell(reminded);
        tell(charged);
        is_left
    }
}

fn tell(report: Result<Report<impl Counts>, SweepError>) {
    match report {
        Ok(report) => print!("{}", run::text(&report)),
        Err(error) => eprintln!("error: {error}"),
    }
}

async fn delete_expired(held: &Held) {
    loop {
        tokio::time::sleep(TTL_INTERVAL).await;
        held.engine.delete_expired();
    }
}

fn hinted(error: emulator::EngineError, flag: &str) -> Failure {
    match error {
        emulator::EngineError::Listen { address, source } => {
            Failure::Listen { address: address.to_string(), source, hint: format!(" Choose another port with {flag}") }
        }
        other => other.into(),
    }
}

fn welcome(settings: &Settings, serve: &Serve, running: &Running) -> String {
    let Running { api, dynamodb, gateway, .. } = running;
    let data = settings.data.display();
    let (what_of_it, open) = match settings.gateway {
        None => ("sandbox: no money moves", "the DynamoDB port and the gateway listen"),
        Some(_) => ("elsewhere, by --gateway", "the DynamoDB port listens"),
    };
    let warning = if serve.listen.is_loopback() {
        String::new()
    } else {
        format!(
            "\nWARNING: {open} on {}: whoever reaches this machine can read\n\
             and write everything. Use it only on a network you trust.\n",
            serve.listen
        )
    };
    format!(
        "Dueday is running. Stop it with Ctrl-C.\n\
         \n\
         \x20 API         {api}  (its description: {api}/docs)\n\
         \x20 DynamoDB    {dynamodb}  (AWS CLI, NoSQL Workbench; any credentials)\n\
         \x20 gateway     {gateway}  ({what_of_it})\n\
         \x20 data        {data}\n\
         \x20 mails       {data}/outbox\n\
         {warning}\n\
         Try next, in another terminal\n\
         \x20 cargo run -- demo\n\
         \x20 curl {api}/accounts/harbour-books/receipts\n\
         \x20 cargo run -- due\n\
         \n"
    )
}
