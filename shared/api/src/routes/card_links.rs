//! `/card-links/{link}`: the web pages of card links. A card link is the link in a mail about an owed payment: the
//! customer opens it, enters a card on a page of the payment gateway, and the next run charges the owed payment.
//!
//! The web page of a card link has a button, because mail scanners open the links in mails. Only a click on the button
//! causes a request to the gateway.

use axum::extract::State;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use billing::{Account, ActionKind, Actor, OwedPayment, Subscription, SubscriptionStatus};
use mail::Language;
use minijinja::context;
use rest::html_page;
use rest::openapi::UlidText;
use rest::parameters::{NoParameters, PathId, Query};
use rest::{Problem, PublicUrl, RequestActor, RequestTime};
use serde::Deserialize;
use store::{ChangeRecords, LimitedOperation, Paging};
use ulid::Ulid;
use utoipa::{IntoParams, ToSchema};

use super::payment_method_setups::setup_return_url;
use crate::actions::new_action;
use crate::error_responses::setup_problem;
use crate::{Api, problems};

/// The HTML template of the web page of a card link.
const PAGE_TEMPLATE: &str = include_str!("card_link.html");

/// The path parameter that names a card link.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct CardLinkPath {
    /// The id of the card link.
    #[param(value_type = UlidText)]
    link: PathId<Ulid>,
}

/// The query parameters of a request to enter a card.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CardLinkQuery {
    /// The subscriptions that will use the card: the subscription of the owed payment, or all subscriptions of the account
    /// that are not cancelled.
    #[serde(default)]
    #[param(inline)]
    subscriptions: CardScope,
}

/// The subscriptions that will use a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CardScope {
    /// The subscription of the owed payment.
    #[default]
    Owed,
    /// All subscriptions of the account that are not cancelled.
    All,
}

/// The current state of the account, the subscription and the payment of a card link.
struct CardLinkState {
    account: Account,
    subscription: Subscription,
    /// `None` if the payment of the link is no longer owed.
    owed: Option<OwedPayment>,
}

/// The id of the card link in the path, or the error of a path that cannot be read. For this error, too, the routes
/// return that the link does not exist.
type LinkPath = Result<axum::extract::Path<CardLinkPath>, PathRejection>;

/// Show the owed payment of a card link
///
/// The link in a mail about an owed payment opens this page. The request needs no token. The page shows what
/// is owed, lists the other subscriptions of the account, and has a button to enter a card for the subscription with the owed
/// payment, and one to enter a card for all subscriptions.
#[utoipa::path(
    get,
    path = "/card-links/{link}",
    operation_id = "show_card_link",
    tag = "payment methods",
    security(()),
    params(CardLinkPath),
    responses((status = 200, description = "The page with the owed payment", content((String = "text/html"))))
)]
pub async fn show_card_link(
    State(api): State<Api>,
    now: RequestTime,
    path: LinkPath,
    _: Query<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    match api.read_card_link(path, now).await {
        Ok(CardLinkState { account, subscription, owed }) => api.card_link_page(&account, &subscription, owed).await,
        Err(problem) => api.card_link_error(problem, &headers),
    }
}

/// Enter a card for an owed payment
///
/// Opens a page of the payment gateway, and redirects the customer's browser to it; the request needs no token.
#[utoipa::path(
    post,
    path = "/card-links/{link}",
    operation_id = "open_card_link",
    tag = "payment methods",
    security(()),
    params(CardLinkPath, CardLinkQuery),
    responses(
        (status = 200, description = "The payment is not owed any more", content((String = "text/html"))),
        (status = 303, description = "Redirects the browser to the gateway's page")
    )
)]
pub async fn open_card_link(
    State(api): State<Api>,
    now: RequestTime,
    path: LinkPath,
    Query(CardLinkQuery { subscriptions }): Query<CardLinkQuery>,
    headers: HeaderMap,
    public_url: PublicUrl,
) -> Result<Response, Problem> {
    let CardLinkState { account, subscription, owed } = match api.read_card_link(path, now).await {
        Ok(state) => state,
        Err(problem) => return api.card_link_error(problem, &headers),
    };
    if owed.is_none() {
        return api.card_link_page(&account, &subscription, owed).await;
    }
    let subscriptions = (subscriptions == CardScope::Owed).then(|| vec![subscription.id]);
    api.count_limited_use(&LimitedOperation::SetupsOf(account.id.clone()), now.at).await?;
    let setup = api
        .payment_method_setups()?
        .open(&account, subscriptions, |id| setup_return_url(&public_url, id))
        .await
        .map_err(setup_problem)?;
    let action = new_action(ActionKind::CreateSetup, RequestActor(Actor::Anonymous), now);
    api.table.create_setup(&setup, ChangeRecords { request: None, action: Some(&action) }).await?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, setup.url)]).into_response())
}

impl Api {
    /// Returns the current state of a card link that is opened at `now`. While its payment is owed, the link is renewed.
    ///
    /// # Errors
    /// 404 if there is no such link, or if its account or subscription does not exist any more.
    async fn read_card_link(&self, path: LinkPath, now: RequestTime) -> Result<CardLinkState, Problem> {
        let axum::extract::Path(CardLinkPath { link }) = path.map_err(|_| problems::card_link_not_found())?;
        let id = link.ok_or_else(problems::card_link_not_found)?;
        let opened = self.table.get_card_link(id, now.at).await?.ok_or_else(problems::card_link_not_found)?;
        let link = &opened.link;
        let account = self.table.get_account(&link.account).await?.ok_or_else(problems::card_link_not_found)?;
        let stored = self.table.get_subscription(&link.account, link.subscription).await?;
        let subscription = stored.ok_or_else(problems::card_link_not_found)?;
        let owed = subscription.outlook(&self.table.policy(), now.today).owed;
        let owed = owed.filter(|owed| owed.due_on == link.due_on);
        self.table.renew_card_link(&opened, owed.is_some(), now.at).await?;
        Ok(CardLinkState { account, subscription, owed })
    }

    /// Returns the web page of a card link for a payment of the subscription `stored`. The page has buttons only if the
    /// payment is owed.
    async fn card_link_page(
        &self,
        account: &Account,
        stored: &Subscription,
        owed: Option<OwedPayment>,
    ) -> Result<Response, Problem> {
        let is_owed = owed.is_some();
        let language = Language::for_locale(&account.locale);
        let texts = &language.texts.card_link;
        let others = if is_owed { self.other_products(stored).await? } else { Vec::new() };
        let values = context! {
            merchant => self.merchant.name.as_str(),
            amount => language.format_amount(owed.map_or(stored.price, |owed| owed.amount)),
            product => stored.product_name.as_str(),
            products => others.join(", "),
        };
        let values = context! {
            language => language.texts.language.as_str(),
            merchant => self.merchant.name.as_str(),
            heading => if is_owed { &texts.heading } else { &texts.settled },
            body => html_page::render_template("body.txt", if is_owed { &texts.body } else { &texts.settled_body }, values.clone()),
            action => is_owed.then_some(texts.action.as_str()),
            others => (!others.is_empty()).then(|| html_page::render_template("others.txt", &texts.others, values)),
            action_all => texts.action_all.as_str(),
        };
        Ok(html_page::html_response(html_page::render_template("card_link.html", PAGE_TEMPLATE, values)))
    }

    /// Returns the products of the account's other subscriptions that are not cancelled.
    async fn other_products(&self, stored: &Subscription) -> Result<Vec<String>, Problem> {
        let subscriptions = self.table.get_subscriptions_by_account(&stored.account, &Paging::all()).await?;
        let others = subscriptions.items.into_iter();
        let others = others.filter(|other| other.id != stored.id && other.status != SubscriptionStatus::Cancelled);
        Ok(others.map(|other| other.product_name.as_str().to_owned()).collect())
    }

    /// Returns the response for a card link that cannot be read: `problem`, or in a browser a web page if the link does not
    /// exist. The account is unknown then, so the web page is in the language of the browser.
    fn card_link_error(&self, problem: Problem, headers: &HeaderMap) -> Result<Response, Problem> {
        if !problem.is_not_found() || !html_page::prefers_html(headers) {
            return Err(problem);
        }
        let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let language = Language::for_header(accepted.unwrap_or_default());
        let texts = &language.texts.card_link;
        let merchant = self.merchant.name.as_str();
        let values = context! {
            language => language.texts.language.as_str(),
            merchant,
            heading => texts.not_found.as_str(),
            body => html_page::render_template("body.txt", &texts.not_found_body, context! { merchant }),
            action => (),
            others => (),
            action_all => (),
        };
        let page = html_page::html_response(html_page::render_template("card_link.html", PAGE_TEMPLATE, values));
        Ok((StatusCode::NOT_FOUND, page).into_response())
    }
}
