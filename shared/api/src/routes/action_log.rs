//! `/accounts/{account}/log`: the log of the changes of an account that people and programs have made.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use billing::{AccountId, Actor, ActorKind, Label, LoggedAction, SubscriptionId};
use chrono::{DateTime, Utc};
use rest::list::ListView;
use rest::openapi::UlidText;
use rest::parameters::{AccountPath, PageQuery, Path, Query};
use rest::{Caller, Problem, RequestTime};
use serde::Serialize;
use store::Table;
use utoipa::ToSchema;

use crate::Api;

/// The person or program that made a change. `operator`: a caller of the API with an operator's token. `account`: a
/// caller with the token of an account. `command`: the command `dueday`. `anonymous`: a customer who opened a link, or
/// any caller of a system that checks no tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Actor)]
pub struct ActorView {
    /// The kind of the actor: `operator`, `account`, `command`, `customer` or `anonymous`. A
    /// `customer` entered a payment method on a page of the gateway.
    pub kind: String,
    /// The subject of the token, the name of the user who ran the command, or the public name of the payment method setup; null if
    /// there is none. A name that contains `@` is replaced by a hash. An account sees only its own names.
    pub name: Option<String>,
}

/// An entry of the action log: a change that a person or a program made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Action)]
pub struct ActionView {
    /// The id of the entry.
    #[schema(value_type = UlidText)]
    pub id: String,
    /// The time of the change.
    pub at: DateTime<Utc>,
    /// The person or program that made the change.
    pub actor: ActorView,
    /// The kind of the change, such as `subscription.pause`.
    pub action: String,
    /// The account that the change concerns; null if it concerns no account.
    pub account: Option<AccountId>,
    /// The subscription that the change concerns; null if it concerns no subscription.
    pub subscription: Option<SubscriptionId>,
    /// The id of the changed item if it is neither an account nor a subscription, such as the id of a refund.
    pub item: Option<String>,
    /// The changed fields before the change, without personal data.
    pub before: BTreeMap<String, String>,
    /// The changed fields after the change. The value `changed` stands for content that is not in the log.
    pub after: BTreeMap<String, String>,
    /// The reason that the actor gave; null if it gave none. An account does not see the reason.
    pub reason: Option<Label>,
}

impl From<LoggedAction> for ActionView {
    fn from(logged: LoggedAction) -> Self {
        Self {
            id: logged.id.to_string(),
            at: logged.at,
            actor: ActorView { kind: logged.actor.kind().to_string(), name: logged.actor.name().map(str::to_owned) },
            action: logged.kind.to_string(),
            account: logged.account,
            subscription: logged.subscription,
            item: logged.item,
            before: logged.before,
            after: logged.after,
            reason: logged.reason,
        }
    }
}

/// Returns the entry as an account may see it: without the reason. The name of the actor is removed, too, unless the
/// actor is an account or a customer.
pub(super) fn hide_operator_details(logged: LoggedAction) -> LoggedAction {
    let actor = match logged.actor.kind() {
        ActorKind::Account | ActorKind::Customer => logged.actor,
        kind => Actor::from_parts(kind, None),
    };
    LoggedAction { actor, reason: None, ..logged }
}

/// List the actions on an account
///
/// Lists the changes of the account, its subscriptions and its payments that people and programs made with the API or
/// with a command, the newest first. Payments of the daily runs are not in the list. An account sees the changes of its
/// own data, without the names of operators and without reasons.
#[utoipa::path(
    get,
    path = "/accounts/{account}/log",
    operation_id = "list_actions",
    tag = "accounts",
    params(AccountPath, PageQuery),
    responses((status = 200, description = "A page of the actions", body = ListView<ActionView>))
)]
pub async fn list_actions(
    State(api): State<Api>,
    now: RequestTime,
    caller: Caller,
    Path(AccountPath { account }): Path<AccountPath>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<ActionView>>, Problem> {
    let paging = page.paging(Table::parse_action_log_cursor)?;
    let page = api.table.get_actions_by_account(&account, &paging, now.at).await?;
    let page = match caller {
        Caller::Operator(_) => page,
        Caller::Account { .. } => page.map(hide_operator_details),
    };
    Ok(Json(api.convert_account_list(&account, page).await?))
}
