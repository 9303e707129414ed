//! `dueday orders address`: shows or sets the shipping address of a customer, or sets that of an order that is not shipped
//! yet.

use std::path::{Path, PathBuf};

use billing::{AccountId, Label};
use clap::Args;
use orders::{Order, OrderId, OrderStatus, PhoneNumber, PlaceId, ShippingAddress};
use orders_api::read_address;
use orders_desk::OrderDesk;
use rest::request_input::RequestInput;

use crate::commands::orders::fulfilment::fill_waiting_orders::fill_orders_after_change;
use crate::commands::orders::fulfilment::list::{PrintedOrder, address_line};
use crate::commands::orders::people::customers::require_account;
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::{Exit, Failure};

/// The text after the help of `dueday orders address`.
pub const AFTER_HELP: &str = "\
Without an address, the command shows the stored address of the customer. A file contains the address as one JSON object. If its name ends with .toml, it contains the same fields as TOML. The fields name, \
street, postal_code, city, country and region are required; line2, state and phone are optional.

Example of a file:
  {\"name\": \"Acme Ltd\", \"street\": \"1 High Street\", \"line2\": \"Unit 4\", \"postal_code\": \"LS1\", \"city\": \"Leeds\",
   \"country\": \"gb\", \"region\": \"eu\", \"phone\": \"+44 113 496 0000\"}

Examples:
  dueday orders address acme
  dueday orders address acme --file address.json
  dueday orders address acme --file address.json \\
    --order 2027-01-31.01JZXCVBNM0123456789ABCDEF";

/// A customer's account and new shipping address.
#[derive(Debug, Args)]
pub struct AddressArgs {
    /// The account of the customer
    account: AccountId,
    /// Read the address from this JSON or TOML file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    options: AddressOptions,
    /// Correct only the address of this order, which is not shipped yet
    #[arg(long, value_name = "ORDER")]
    order: Option<OrderId>,
}

/// The fields of an address, as options.
#[derive(Debug, Args)]
struct AddressOptions {
    /// The name of the recipient. Instead of these options, --file can name a file with the address
    #[arg(long, requires = "street", conflicts_with = "file")]
    name: Option<Label>,
    /// The first line: street and number
    #[arg(long, requires = "postal_code", conflicts_with = "file")]
    street: Option<Label>,
    /// The second line, such as the apartment or the building
    #[arg(long, value_name = "TEXT", requires = "name", conflicts_with = "file")]
    line2: Option<Label>,
    /// The postal code
    #[arg(long, value_name = "CODE", requires = "city", conflicts_with = "file")]
    postal_code: Option<Label>,
    /// The city
    #[arg(long, requires = "country", conflicts_with = "file")]
    city: Option<Label>,
    /// The state or province
    #[arg(long, requires = "name", conflicts_with = "file")]
    state: Option<Label>,
    /// The id of the country, such as gb
    #[arg(long, requires = "region", conflicts_with = "file")]
    country: Option<PlaceId>,
    /// The region, which determines the warehouse
    #[arg(long, requires = "name", conflicts_with = "file")]
    region: Option<PlaceId>,
    /// The phone number that the carrier may call
    #[arg(long, value_name = "NUMBER", requires = "name", conflicts_with = "file")]
    phone: Option<PhoneNumber>,
}

impl AddressOptions {
    /// Returns the address; `None` if a required option is absent.
    fn address(&self) -> Option<ShippingAddress> {
        let Self { name, street, line2, postal_code, city, state, country, region, phone } = self;
        Some(ShippingAddress {
            name: name.clone()?,
            street: street.clone()?,
            line2: line2.clone(),
            postal_code: postal_code.clone()?,
            city: city.clone()?,
            state: state.clone(),
            country: country.clone()?,
            region: region.clone()?,
            phone: phone.clone(),
        })
    }
}

impl AddressArgs {
    /// Returns the address of the file or of the options; `None` if there is neither.
    fn address(&self) -> Result<Option<ShippingAddress>, Failure> {
        match &self.file {
            Some(path) => read_address_file(path).map(Some),
            // The parser of the command line requires all options of an address, or none.
            None => Ok(self.options.address()),
        }
    }
}

/// Reads the address in the file at `path`.
///
/// # Errors
/// The file cannot be read, or its content is not an address. The error names the field and what is allowed.
fn read_address_file(path: &Path) -> Result<ShippingAddress, Failure> {
    let invalid_file = |reason: String| Failure::File { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| invalid_file(error.to_string()))?;
    let input = match path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        true => toml::from_str(&text).map_err(|error| invalid_file(format!("is not TOML: {}", error.message())))?,
        false => RequestInput::parse_json(text.as_bytes()).map_err(|error| invalid_file(error.to_string()))?,
    };
    read_address(input).map_err(|error| invalid_file(error.to_string()))
}

/// Shows the shipping address of a customer, if `args` contain no address. Otherwise sets the address of the customer or of a
/// single order, and fills waiting orders.
pub async fn set_address(
    context: &CommandContext,
    desk: &OrderDesk,
    open_table: &OpenTable,
    args: &AddressArgs,
) -> Result<Exit, Failure> {
    let address = args.address()?;
    require_account(open_table, &args.account).await?;
    let Some(address) = address else {
        return show_address(context, desk, args).await;
    };
    let Some(order) = args.order else {
        desk.set_shipping_address(&args.account, address).await?;
        return fill_orders_after_change(context, desk, &format!("the address of {} was set", args.account)).await;
    };
    let is_of_account = |order: &Order| match order.customer == args.account {
        true => Ok(()),
        false => Err(Failure::Refused(format!("the order {} is not an order of {}", order.id, args.account))),
    };
    let (order, _) = desk.correct_address(order, address, is_of_account).await?;
    if order.status == OrderStatus::BackOrdered {
        // The order may have waited only for an address.
        return fill_orders_after_change(context, desk, &format!("the address of the order {} was set", order.id))
            .await;
    }
    context.print(&PrintedOrder::from(&order), || {
        format!("the order {} will be shipped to the new address\n", order.id)
    })?;
    Ok(Exit::Done)
}

/// Shows the stored shipping address of a customer.
async fn show_address(context: &CommandContext, desk: &OrderDesk, args: &AddressArgs) -> Result<Exit, Failure> {
    let AddressArgs { account, order, .. } = args;
    if let Some(order) = order {
        return Err(Failure::Refused(format!(
            "give the new address of the order; `dueday orders show {order}` shows the present one"
        )));
    }
    let customer = desk.table.get_customer(account).await?;
    let Some(address) = customer.and_then(|customer| customer.address) else {
        return Err(Failure::Refused(format!("the account {account} has no shipping address")));
    };
    context.print(&address, || format!("{}\n", address_line(&address)))?;
    Ok(Exit::Done)
}
