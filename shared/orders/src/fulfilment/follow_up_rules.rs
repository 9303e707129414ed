//! The rules of follow-up orders: which orders can be split or replaced, and the new order with its products.

use crate::fulfilment::follow_up::{FollowUp, FollowUpReason};
use crate::fulfilment::order::{Order, OrderLine};
use crate::fulfilment::order_status::OrderStatus;
use crate::ids::{EmployeeId, MAX_PART, OrderId, ProductId};
use billing::Money;

/// The reason why a follow-up order is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FollowUpError {
    #[error("an order that is {0} cannot be split; it must be BACKORDERED or OPEN")]
    NotSplittable(OrderStatus),
    #[error("an order that is {0} cannot be replaced; it must be SHIPPED, DELIVERED or RETURNED")]
    NotReplaceable(OrderStatus),
    #[error("the payment of the order {0} was refunded in full")]
    Refunded(OrderId),
    #[error("a paid month can have at most {} follow-up orders", MAX_PART.saturating_sub(1))]
    TooMany,
    #[error("the order has only {ordered} pieces of {product}; the list contains {quantity}")]
    MoreThanOrdered { product: ProductId, ordered: u32, quantity: u32 },
    #[error("at least one product must be listed")]
    NoLines,
    #[error(
        "the list contains all products of the order, so none are left for the follow-up order; list only the products that the order keeps"
    )]
    NothingLeft,
    #[error("the products of an open order are reserved already; list the products that it keeps")]
    KeepNothingListed,
    #[error(
        "the customer has no shipping address, so no warehouse was looked for; list the products that the order keeps"
    )]
    NoAddress,
    #[error("no warehouse has a product of the order in stock; list the products that the order keeps")]
    NothingInStock,
    #[error(
        "one warehouse has all products of the order in stock, so the order need not be split; it is filled as soon as no \
            older order waits for these products"
    )]
    AllInStock,
}

/// Checks that `part` is a part of `lines`: `lines` must contain all products of `part`, each with at least the
/// quantity in `part`.
///
/// # Errors
/// `part` is empty, contains a product that is not in `lines`, or contains more pieces of a product than `lines`.
pub fn check_part_of_lines(lines: &[OrderLine], part: &[OrderLine]) -> Result<(), FollowUpError> {
    if part.is_empty() {
        return Err(FollowUpError::NoLines);
    }
    for OrderLine { product, quantity } in part {
        let ordered = lines.iter().find(|line| line.product == *product).map_or(0, |line| line.quantity);
        if *quantity > ordered {
            return Err(FollowUpError::MoreThanOrdered { product: product.clone(), ordered, quantity: *quantity });
        }
    }
    Ok(())
}

/// Subtracts the quantities in `part` from those in `lines`, and returns the lines with a quantity above 0, in the sequence
/// of `lines`.
///
/// # Errors
/// The errors of [`check_part_of_lines`], and [`FollowUpError::NothingLeft`] if no line is left.
pub fn lines_without_part(lines: &[OrderLine], part: &[OrderLine]) -> Result<Vec<OrderLine>, FollowUpError> {
    check_part_of_lines(lines, part)?;
    let left = |line: &OrderLine| {
        let kept = part.iter().find(|kept| kept.product == line.product).map_or(0, |kept| kept.quantity);
        let quantity = line.quantity.saturating_sub(kept);
        (quantity > 0).then(|| OrderLine { product: line.product.clone(), quantity })
    };
    let rest: Vec<OrderLine> = lines.iter().filter_map(left).collect();
    if rest.is_empty() { Err(FollowUpError::NothingLeft) } else { Ok(rest) }
}

impl Order {
    /// Checks that the order can be split into two orders: its status must be `BACKORDERED` or `OPEN`.
    ///
    /// # Errors
    /// The order is neither backordered nor open.
    pub fn check_splittable(&self) -> Result<(), FollowUpError> {
        match self.status {
            OrderStatus::BackOrdered | OrderStatus::Open => Ok(()),
            status => Err(FollowUpError::NotSplittable(status)),
        }
    }

    /// Checks that products of the order can be replaced: its status must be `SHIPPED`, `DELIVERED` or `RETURNED`.
    ///
    /// # Errors
    /// The order was not shipped.
    pub fn check_replaceable(&self) -> Result<(), FollowUpError> {
        match self.status {
            OrderStatus::Shipped | OrderStatus::Delivered | OrderStatus::Returned => Ok(()),
            status => Err(FollowUpError::NotReplaceable(status)),
        }
    }

    /// Returns this main order after its number of follow-up orders is increased by 1, and the id of the new follow-up
    /// order.
    ///
    /// # Errors
    /// The payment was refunded in full, or the paid month already has 98 follow-up orders, which is the maximum.
    pub fn with_follow_up(&self) -> Result<(Self, OrderId), FollowUpError> {
        if self.is_refunded_in_full() {
            return Err(FollowUpError::Refunded(self.id));
        }
        let follow_ups = self.follow_ups.saturating_add(1);
        let id = self.id.follow_up_id(follow_ups).ok_or(FollowUpError::TooMany)?;
        Ok((Self { follow_ups, ..self.clone() }, id))
    }

    /// Returns the ids of all follow-up orders that were ever created for the paid month of this main order.
    pub fn follow_up_ids(&self) -> impl Iterator<Item = OrderId> + use<> {
        let id = self.id;
        (1..=self.follow_ups).filter_map(move |number| id.follow_up_id(number))
    }

    /// Returns a new backordered follow-up order with the identifier `id`, which follows this order, with `lines` as
    /// its products. Backordered orders are filled in the sequence of their payments, so the follow-up order keeps the
    /// payment time of this order.
    pub fn new_follow_up_order(
        &self,
        id: OrderId,
        reason: FollowUpReason,
        lines: Vec<OrderLine>,
        representative: Option<EmployeeId>,
        bucket: u32,
    ) -> Self {
        let nothing = Money::new(0, self.total.currency());
        Self {
            id,
            follow_up: Some(FollowUp { follows: self.id, reason }),
            follow_ups: 0,
            customer: self.customer.clone(),
            representative,
            status: OrderStatus::BackOrdered,
            waits_for: None,
            missing: Vec::new(),
            lines,
            warehouse: None,
            address: None,
            shipment: None,
            is_written_off: false,
            total: nothing,
            refunded: nothing,
            placed_at: self.placed_at,
            bucket,
            version: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    fn order_lines(lines: &[(&str, u32)]) -> Vec<OrderLine> {
        let line =
            |(product, quantity): &(&str, u32)| OrderLine { product: product.parse().unwrap(), quantity: *quantity };
        lines.iter().map(line).collect()
    }

    fn sample_order(status: OrderStatus, follow_ups: u8) -> Order {
        let currency = "EUR".parse().unwrap();
        let main: OrderId = "2027-01-31.01JZXCVBNM0123456789ABCDEF".parse().unwrap();
        let order = Order {
            id: main,
            follow_up: None,
            follow_ups,
            customer: "acme".parse().unwrap(),
            representative: None,
            status,
            waits_for: None,
            missing: Vec::new(),
            lines: order_lines(&[("beans", 3), ("cups", 1)]),
            warehouse: None,
            address: None,
            shipment: None,
            is_written_off: false,
            total: Money::new(1_299, currency),
            refunded: Money::new(0, currency),
            placed_at: "2027-01-31T06:00:02Z".parse().unwrap(),
            bucket: 0,
            version: 4,
        };
        order.waiting_for(crate::fulfilment::order::BackOrderReason::Stock, order_lines(&[("cups", 1)]))
    }

    #[test]
    fn lines_are_split_into_two_parts_that_add_up_to_the_order() {
        let more = |product: &str, ordered, quantity| {
            Err(FollowUpError::MoreThanOrdered { product: product.parse().unwrap(), ordered, quantity })
        };
        // The columns are: the lines that are kept, and the lines that are left or the error.
        for (kept, expected) in [
            (vec![("beans", 3)], Ok(vec![("cups", 1)])),
            (vec![("beans", 1)], Ok(vec![("beans", 2), ("cups", 1)])),
            (vec![("cups", 1), ("beans", 2)], Ok(vec![("beans", 1)])),
            (vec![("beans", 4)], more("beans", 3, 4)),
            (vec![("beans", 1), ("tea", 1)], more("tea", 0, 1)),
            (vec![("beans", 3), ("cups", 1)], Err(FollowUpError::NothingLeft)),
            (vec![], Err(FollowUpError::NoLines)),
        ] {
            let left = lines_without_part(&order_lines(&[("beans", 3), ("cups", 1)]), &order_lines(&kept));
            assert_eq!(left, expected.map(|left| order_lines(&left)), "{kept:?}");
        }
    }

    #[test]
    fn an_order_is_split_before_it_is_picked_and_replaced_after_it_is_shipped() {
        use OrderStatus::{BackOrdered, Delivered, Open, Returned, Shipped};
        for status in OrderStatus::iter() {
            let order = sample_order(status, 0);
            let is_early = [BackOrdered, Open].contains(&status);
            let is_shipped = [Shipped, Delivered, Returned].contains(&status);
            assert_eq!((order.check_splittable().is_ok(), order.check_replaceable().is_ok()), (is_early, is_shipped));
        }
    }

    #[test]
    fn follow_ups_get_part_numbers_from_2_to_99_and_none_after_a_full_refund() {
        // The columns are: the follow-ups so far, the refunded amount, and the part number or the error.
        for (follow_ups, refunded, expected) in [
            (0, 0, Ok(2)),
            (0, 1_298, Ok(2)),
            (97, 0, Ok(99)),
            (98, 0, Err(FollowUpError::TooMany)),
            (3, 1_299, Err(FollowUpError::Refunded(sample_order(OrderStatus::Open, 0).id))),
        ] {
            let main = sample_order(OrderStatus::Shipped, follow_ups);
            let main = Order { refunded: Money::new(refunded, main.total.currency()), ..main };
            let next = main.with_follow_up();
            assert_eq!(
                next.as_ref().map(|(_, id)| id.part_number()).map_err(Clone::clone),
                expected,
                "{follow_ups} {refunded}"
            );
            if let Ok((after, id)) = next {
                assert_eq!((after.follow_ups, after.follow_up_ids().last()), (follow_ups + 1, Some(id)));
            }
        }
    }

    #[test]
    fn follow_up_has_no_amount_and_is_never_refunded_in_full() {
        let main = sample_order(OrderStatus::BackOrdered, 0);
        let (_, id) = main.with_follow_up().unwrap();
        let rest = order_lines(&[("cups", 1)]);
        let follow_up = main.new_follow_up_order(id, FollowUpReason::Remainder, rest.clone(), None, 3);
        assert_eq!(follow_up.follow_up.map(|of| of.follows), Some(main.id));
        assert_eq!((follow_up.lines.clone(), follow_up.placed_at, follow_up.bucket), (rest, main.placed_at, 3));
        assert_eq!((follow_up.missing.len(), follow_up.version), (0, 1));
        assert_eq!((follow_up.amount_in_quarter_total().minor(), follow_up.is_refunded_in_full()), (0, false));
    }
}
