//! Packing slips: a web page that prints each order on a page of its own.

use std::collections::HashMap;

use billing::{AccountId, Label, Locale};
use dynamo::{Paging, TableError};
use mail::Language;
use minijinja::{Value, context};
use orders::{Country, FollowUpReason, PlaceId, ShippingAddress};
use orders_table::{NamedLine, OrderToPack, OrdersTable};
use qrcode::QrCode;
use qrcode::render::svg;
use rest::html_page;
use store::Table;

/// The HTML template of the packing slips. Each order is printed on a page of its own.
const SLIPS_TEMPLATE: &str = include_str!("packing_slips.html");
/// The width and height of the QR code with the order number, in CSS pixels. This is 3 cm on paper.
const CODE_PIXELS: u32 = 113;

/// Prints packing slips. Reads the languages of the customers and the merchant's names of countries.
#[derive(Clone, Copy, Debug)]
pub struct SlipPrinter<'a> {
    pub orders_table: &'a OrdersTable,
    /// The payments table, with the accounts of the customers.
    pub payments: &'a Table,
    /// The name of the merchant.
    pub merchant: &'a str,
}

impl SlipPrinter<'_> {
    /// Returns the packing slips of `orders` as one web page. Each printed page shows the merchant's name, the order number
    /// as a QR code, the address, and the products. `next` is the URL of the next list page, to which the web page has a
    /// link. The link is not printed.
    ///
    /// Sends a BatchGetItem request for each 100 customers. If the id of a country is not an ISO 3166-1 code, also reads the list
    /// of all countries.
    pub async fn print_slips(&self, orders: &[OrderToPack], next: Option<String>) -> Result<String, TableError> {
        let customers = orders.iter().map(|to_pack| to_pack.order.customer.clone()).collect();
        let locales = self.payments.get_locales(&customers).await?;
        let english = Language::for_locale(&Locale::default());
        let has_name = |address: &ShippingAddress| english.country_name(address.country.as_str()).is_some();
        let countries = match orders.iter().filter_map(|to_pack| to_pack.order.address.as_ref()).all(has_name) {
            true => HashMap::new(),
            false => self.get_country_names().await?,
        };
        let slips: Vec<Value> =
            orders.iter().map(|to_pack| packing_slip_values(to_pack, &locales, &countries)).collect();
        let merchant = self.merchant;
        Ok(html_page::render_template("packing_slips.html", SLIPS_TEMPLATE, context! { merchant, slips, next }))
    }

    /// Returns the merchant's name of each country. The result lacks countries that cannot be read.
    async fn get_country_names(&self) -> Result<HashMap<PlaceId, Label>, TableError> {
        let countries = self.orders_table.get_entities::<Country>(&Paging::all()).await?;
        Ok(countries.items.into_iter().map(|country| (country.id, country.name)).collect())
    }
}

/// Returns the values of an order for the template of the packing slips. `locales` contains the locales of customers, and
/// `countries` the merchant's names of countries.
fn packing_slip_values(
    OrderToPack { order, lines }: &OrderToPack,
    locales: &HashMap<AccountId, Locale>,
    countries: &HashMap<PlaceId, Label>,
) -> Value {
    let lines: Vec<Value> = lines
        .iter()
        .map(|NamedLine { line, name }| {
            let name = name.as_ref().map_or_else(|| line.product.as_str(), |name| name.as_str());
            context! { quantity => line.quantity, product => line.product.as_str(), name }
        })
        .collect();
    let language = Language::for_locale(&locales.get(&order.customer).cloned().unwrap_or_default());
    let address = order.address.as_ref().map(|address| address_values(address, &language, countries));
    let number = order.id.to_string();
    let follows = order.follow_up.map(|follow_up| follow_up.follows.to_string());
    let reason = order.follow_up.map(|follow_up| match follow_up.reason {
        FollowUpReason::Remainder => "Remainder",
        FollowUpReason::Replacement => "Replacement",
    });
    let paid_on = order.placed_at.date_naive().to_string();
    context! { code => Value::from_safe_string(qr_code_svg(&number)), number, paid_on, follows, reason, address, lines }
}

/// Returns the values of `address` for the template. The name of the country is in capitals, as is usual in postal
/// addresses: the name in `language`, or else the merchant's name of the country, or else its id.
fn address_values(address: &ShippingAddress, language: &Language, countries: &HashMap<PlaceId, Label>) -> Value {
    let ShippingAddress { name, street, line2, postal_code, city, state, country, region: _, phone } = address;
    let [name, street, postal_code, city] = [name, street, postal_code, city].map(|label| label.as_str());
    let [line2, state] = [line2, state].map(|label| label.as_ref().map(|label| label.as_str()));
    let phone = phone.as_ref().map(|phone| phone.as_str());
    let own_name = || countries.get(country).map(|name| name.as_str().to_owned());
    let country_name = language.country_name(country.as_str()).or_else(own_name);
    let country = country_name.unwrap_or_else(|| country.as_str().to_owned()).to_uppercase();
    let language = &language.texts.language;
    context! { name, street, line2, postal_code, city, state, country, language, phone }
}

/// Returns `text` as a QR code in SVG.
fn qr_code_svg(text: &str) -> String {
    // A QR code can contain 2,900 bytes, and an order number has at most 40.
    let code = QrCode::new(text).expect("an order number is short enough");
    let svg = code.render::<svg::Color<'_>>().min_dimensions(CODE_PIXELS, CODE_PIXELS).build();
    // Remove the XML declaration before the SVG element: it is not allowed within HTML.
    svg.split_once("?>").map_or_else(|| svg.clone(), |(_, svg)| svg.to_owned())
}
