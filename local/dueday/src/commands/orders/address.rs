//! `dueday orders address`: sets the shipping address of a customer, or of an order that is not shipped yet.

use billing::{AccountId, Label};
use clap::Args;
use orders::{Order, OrderDesk, OrderId, OrderStatus, PhoneNumber, PlaceId, ShippingAddress};

use super::fulfilment::{fill_orders_after_change, require_account};
use super::list::OrderView;
use crate::context::Context;
use crate::machine::open_table::OpenTable;
use crate::{Exit, Failure};

/// A customer's account and new shipping address.
#[derive(Debug, Args)]
pub struct AddressArgs {
    account: AccountId,
    #[arg(long)]
    name: Label,
    #[arg(long)]
    street: Label,
    /// The second line, such as the apartment or the building
    #[arg(long, value_name = "TEXT")]
    line2: Option<Label>,
    #[arg(long, value_name = "CODE")]
    postal_code: Label,
    #[arg(long)]
    city: Label,
    /// The state or province
    #[arg(long)]
    state: Option<Label>,
    #[arg(long)]
    country: PlaceId,
    /// The region, which determines the warehouse
    #[arg(long)]
    region: PlaceId,
    /// The phone number that the carrier may call
    #[arg(long, value_name = "NUMBER")]
    phone: Option<PhoneNumber>,
    /// Correct only the address of this order, which is not shipped yet
    #[arg(long, value_name = "ORDER")]
    order: Option<OrderId>,
}

impl AddressArgs {
    /// Returns the address of the options.
    fn address(&self) -> ShippingAddress {
        let Self { account: _, name, street, line2, postal_code, city, state, country, region, phone, order: _ } = self;
        ShippingAddress {
            name: name.clone(),
            street: street.clone(),
            line2: line2.clone(),
            postal_code: postal_code.clone(),
            city: city.clone(),
            state: state.clone(),
            country: country.clone(),
            region: region.clone(),
            phone: phone.clone(),
        }
    }
}

/// Sets the shipping address of a customer or of a single order, and fills waiting orders.
pub async fn set_address(
    context: &Context,
    desk: &OrderDesk,
    open_table: &OpenTable,
    args: &AddressArgs,
) -> Result<Exit, Failure> {
    let address = args.address();
    require_account(open_table, &args.account).await?;
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
    context
        .print(&OrderView::from(&order), || format!("the order {} will be shipped to the new address\n", order.id))?;
    Ok(Exit::Done)
}
