"""The views of subscriptions and receipts that the API returns."""
from subscriptions import due_date, due_of, is_ending, parse_period, waiting_terms
from table import subscription_code


def text(item, name):
    return item[name]["S"] if name in item else None


def number(item, name):
    return int(item[name]["N"])


def open_payment(item):
    if "AttemptNo" not in item:
        return None
    return {
        "due_date": item["AttemptDue"]["S"],
        "amount": number(item, "AttemptAmount"),
        "currency": item["AttemptCurrency"]["S"],
        "since": item["AttemptAt"]["S"],
    }


def cancel_date(item):
    if "CancelPeriod" not in item or item["Status"]["S"] == "cancelled":
        return None
    due = due_date(item) if is_ending(item) else due_of(item, parse_period(item["CancelPeriod"]["S"]))
    return due.isoformat()


def subscription_view(item):
    _, subscription, _, sku = item["SK"]["S"].split("#")
    method = item["PaymentDetails"]["M"]
    return {
        "id": subscription,
        "external_id": text(item, "ExternalId"),
        "account": item["PK"]["S"][4:],
        "sku": sku,
        "product_name": item["ProductName"]["S"],
        "email": text(item, "Email"),
        "status": item["Status"]["S"],
        "payment_day": number(item, "PaymentDay"),
        "amount": number(item, "PaymentAmount"),
        "currency": item["Currency"]["S"],
        "waiting_terms": [
            {"from": terms["From"]["S"], "payment_day": number(terms, "PaymentDay"), "amount": number(terms, "PaymentAmount")}
            for terms in waiting_terms(item)
        ],
        "payment_method": {"customer": method["customer"]["S"], "payment_method": method["payment_method"]["S"]},
        "disputed_at": text(item, "DisputedDate"),
        "due_date": item["DueDate"]["S"],
        "next_payment_date": text(item, "NextPaymentDate"),
        "next_reminder_date": text(item, "NextReminderDate"),
        "last_payment_at": text(item, "LastPaymentDate"),
        "last_reminder_at": text(item, "LastReminderDate"),
        "failed_attempts": number(item, "FailedAttempts"),
        "cancel_date": cancel_date(item),
        "open_payment": open_payment(item),
        "created_at": item["CreatedDate"]["S"],
        "version": number(item, "Version"),
    }


def receipt_view(item):
    account = item["PK"]["S"][4:]
    _, due, _, sku, _, subscription = item["SK"]["S"].split("#")
    code = subscription_code(account, subscription)
    amount = number(item, "ProcessedAmount")
    refunded = number(item, "RefundedAmount") if "RefundedAmount" in item else 0
    reversed_amount = number(item, "ReversedAmount") if "ReversedAmount" in item else 0
    card = item["Card"]["M"] if "Card" in item else None
    return {
        "id": f"{due}.{subscription}.{sku}",
        "number": f"{due[:4]}{due[5:7]}-{code[:6]}-{code[6:]}",
        "account": account,
        "subscription": subscription,
        "sku": sku,
        "product_name": item["ProductName"]["S"],
        "due_date": due,
        "amount": amount,
        "currency": item["Currency"]["S"],
        "refunded_amount": refunded,
        "refunded_at": text(item, "RefundedDate") if refunded else None,
        "reversed_amount": reversed_amount,
        "reversed_at": text(item, "ReversedDate"),
        "net_amount": max(0, amount - refunded - reversed_amount),
        "gateway_payment_id": item["GatewayPaymentId"]["S"],
        "card": {"brand": card["Brand"]["S"], "last4": card["Last4"]["S"]} if card else None,
        "processed_at": item["ProcessedDate"]["S"],
    }
