//! What a request names outside its body: path and query, read into types that can only hold what is allowed.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use chrono::{Datelike, NaiveDate};
use shared::billing::{AccountId, ReceiptId, SubscriptionId};

use crate::{Caller, Problem};

/// The account a path names, which the caller may see.
#[derive(Debug)]
pub struct AccountPath(pub AccountId);

/// The subscription a path names, of an account that the caller may see.
#[derive(Debug)]
pub struct SubscriptionPath {
    pub account: AccountId,
    pub id: SubscriptionId,
}

/// The receipt a path names, of an account that the caller may see.
#[derive(Debug)]
pub struct ReceiptPath {
    pub account: AccountId,
    pub id: ReceiptId,
}

/// The parameters of a query.
#[derive(Debug)]
pub struct Parameters(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for AccountPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = path(parts, state).await?;
        Ok(Self(account(parts, state, &names).await?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for SubscriptionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = path(parts, state).await?;
        Ok(Self { account: account(parts, state, &names).await?, id: named(&names, "subscription")? })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ReceiptPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let names = path(parts, state).await?;
        let account = account(parts, state, &names).await?;
        // A date that no calendar has is looked up like any other, and is not there.
        Ok(Self { account, id: named(&names, "receipt").map_err(|_| Problem::no_receipt())? })
    }
}

async fn path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<BTreeMap<String, String>, Problem> {
    let Path(names) =
        Path::from_request_parts(parts, state).await.map_err(|_| Problem::field("path", "must be text in UTF-8"))?;
    Ok(names)
}

/// The account is looked at first: nothing is said of what stands in another one.
async fn account<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
    names: &BTreeMap<String, String>,
) -> Result<AccountId, Problem> {
    let caller = Caller::from_request_parts(parts, state).await?;
    let account = named(names, "account")?;
    caller.sees(&account)?;
    Ok(account)
}

fn named<T: FromStr<Err: Display>>(names: &BTreeMap<String, String>, name: &str) -> Result<T, Problem> {
    names.get(name).map_or("", String::as_str).parse().map_err(|error| Problem::field(name, error))
}

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|_| Problem::field("query", "must be parameters like ?limit=10&cursor=..., in UTF-8"))?;
        let mut parameters = BTreeMap::new();
        for (name, value) in pairs {
            if parameters.insert(name.clone(), value).is_some() {
                return Err(Problem::field(name, "must be given once"));
            }
        }
        Ok(Self(parameters))
    }
}

/// That a query has no parameters: one that is not known must not be passed over.
#[derive(Debug)]
pub struct NoParameters;

impl<S: Send + Sync> FromRequestParts<S> for NoParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Parameters(given) = Parameters::from_request_parts(parts, state).await?;
        match given.keys().next() {
            Some(unknown) => Err(Problem::field(unknown, "is not known; this takes no parameters in its query")),
            None => Ok(Self),
        }
    }
}

impl Parameters {
    /// These, if all of them are among `known`.
    ///
    /// # Errors
    /// 400, naming the one that is not.
    pub fn only(self, known: &[&str]) -> Result<Self, Problem> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => Err(Problem::field(unknown, format!("is not known; this takes {}", known.join(", ")))),
            None => Ok(self),
        }
    }

    /// The parameter `name`, if it is given; `expected` says what it must be.
    ///
    /// # Errors
    /// 400, naming it.
    pub fn parsed<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, Problem> {
        let wrong = |_| Problem::field(name, expected);
        self.0.get(name).map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// The date `name`, if it is given.
    ///
    /// # Errors
    /// 400, naming it.
    pub fn date(&self, name: &str) -> Result<Option<NaiveDate>, Problem> {
        const EXPECTED: &str = "must be a date like 2027-01-31";
        let date = self.parsed::<NaiveDate>(name, EXPECTED)?;
        // Years of more or fewer than four digits do not compare as text, as the indexes do.
        if date.is_some_and(|date| !(1..=9_999).contains(&date.year())) {
            return Err(Problem::field(name, EXPECTED));
        }
        Ok(date)
    }

    /// The whole number `name`, or `default`.
    ///
    /// # Errors
    /// 400, naming it and what is allowed.
    pub fn number(&self, name: &str, default: usize, most: usize) -> Result<usize, Problem> {
        let expected = format!("must be from 1 to {most}");
        match self.parsed(name, &expected)? {
            None => Ok(default),
            Some(number) if (1..=most).contains(&number) => Ok(number),
            Some(_) => Err(Problem::field(name, expected)),
        }
    }
}
