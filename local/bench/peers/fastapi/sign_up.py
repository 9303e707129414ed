"""The first payment at sign-up: claim, charge, settle."""
import logging
import os
from datetime import date, datetime, timedelta, timezone

import urllib3
from ulid import ULID

from subscriptions import ACTIVE_STATES, LEAD, due_in, format_instant, format_period, next_period, period_of, with_version
from table import (
    ABSENT, TABLE, get_item, get_settings, get_subscription, n, put, s, sha256, transact, update, versioned_update,
)
from views import receipt_view, subscription_view

GATEWAY = os.environ["GATEWAY"]
RECEIPT_SECONDS = 190 * 86_400
LEASE = timedelta(minutes=20)
ATTEMPT = [f"Attempt{name}" for name in ("Table", "No", "Due", "Amount", "Currency", "Payment", "At", "Lease", "By")]
CLAIM = (
    "SET AttemptBy = :token, AttemptLease = :lease, AttemptTable = :table, AttemptSeq = AttemptSeq + :one, "
    "AttemptNo = AttemptSeq + :one, AttemptDue = DueDate, AttemptAmount = PaymentAmount, AttemptCurrency = Currency, "
    "AttemptPayment = PaymentDetails, AttemptAt = :now, Version = Version + :one"
)
IS_PAYABLE = (
    "NextPaymentDate = :seen AND DueDate <= :seen AND #Status IN (:active, :past_due) AND attribute_not_exists(AttemptNo) "
    "AND attribute_not_exists(AttemptBy) AND (attribute_not_exists(ChargeableFrom) OR ChargeableFrom <= DueDate) "
    "AND attribute_not_exists(DisputedDate) AND attribute_not_exists(OpenFindings) "
    "AND (attribute_not_exists(CancelPeriod) OR CancelPeriod > DueDate)"
)

http = urllib3.PoolManager(maxsize=50, timeout=10, retries=False)
gateway_account = None


def request(method, path, body=None):
    response = http.request(method, GATEWAY + path, json=body)
    if response.status != 200:
        raise RuntimeError(f"the gateway responded with {response.status}")
    return response.json()


def is_own_gateway(settings):
    """Returns whether the payments of the table are made at the account of the gateway. The first charge stores the account."""
    global gateway_account
    if gateway_account is None:
        account = request("GET", "/v1/account")
        gateway_account = {"M": {"Kind": s(account["Kind"]), "Account": s(account["Account"]), "Live": {"BOOL": account["Live"]}}}
    stored = settings.get("Gateway")
    if stored is None:
        is_stored, other = update({
            "TableName": TABLE,
            "Key": {"PK": settings["PK"], "SK": settings["SK"]},
            "UpdateExpression": "SET Gateway = :gateway",
            "ConditionExpression": "attribute_not_exists(Gateway)",
            "ExpressionAttributeValues": {":gateway": gateway_account},
        })
        stored = gateway_account if is_stored else other["Gateway"]
    return stored == gateway_account


def claim(item, table, now):
    token = str(ULID())
    is_claimed, stored = update({
        "TableName": TABLE,
        "Key": {"PK": item["PK"], "SK": item["SK"]},
        "UpdateExpression": CLAIM,
        "ConditionExpression": IS_PAYABLE,
        "ReturnValues": "ALL_NEW",
        "ExpressionAttributeNames": {"#Status": "Status"},
        "ExpressionAttributeValues": {
            ":token": s(token),
            ":lease": s(format_instant(now + LEASE)),
            ":table": table,
            ":one": n(1),
            ":now": s(format_instant(now)),
            ":seen": item["NextPaymentDate"],
            ":active": s(ACTIVE_STATES[0]),
            ":past_due": s(ACTIVE_STATES[1]),
        },
    })
    return stored if is_claimed or (stored and stored.get("AttemptBy") == s(token)) else None


def charge(claimed):
    account = claimed["PK"]["S"][4:]
    _, subscription, _, sku = claimed["SK"]["S"].split("#")
    table, due, number = claimed["AttemptTable"]["S"], claimed["AttemptDue"]["S"], int(claimed["AttemptNo"]["N"])
    amount, currency = int(claimed["AttemptAmount"]["N"]), claimed["AttemptCurrency"]["S"]
    method = claimed["AttemptPayment"]["M"]
    response = request("POST", "/v1/payments", {
        "idempotency_key": sha256("\n".join([table, account, subscription, sku, due, str(number)])),
        "table": table,
        "account": account,
        "subscription": subscription,
        "sku": sku,
        "due_on": due,
        "attempt_no": number,
        "amount": amount,
        "currency": currency,
        "customer": method["customer"]["S"],
        "payment_method": method["payment_method"]["S"],
    })
    payment = response["succeeded"]
    returned = (payment["account"], payment["subscription"], payment["due_on"][:7], payment["amount"], payment["currency"])
    if returned != (account, subscription, due[:7], amount, currency):
        raise RuntimeError(f"the gateway returned another payment: {payment['id']}")
    return payment


def settle(claimed, payment, today):
    """Writes the receipt and the next due date in one transaction. Returns whether this call has settled the attempt."""
    now = datetime.now(timezone.utc)
    _, subscription, _, sku = claimed["SK"]["S"].split("#")
    due = claimed["AttemptDue"]["S"]
    period = next_period(period_of(date.fromisoformat(due)))
    following = due_in(period, int(claimed["PaymentDay"]["N"]))
    settled = {name: value for name, value in claimed.items() if name not in ATTEMPT and name != "NextReminderDate"}
    settled |= {
        "DueDate": s(following.isoformat()),
        "NextPaymentDate": s(max(following, today + timedelta(days=1)).isoformat()),
        "LastPaymentDate": s(format_instant(now)),
        "ChargeableFrom": s(format_period(period)),
    }
    if following > today:
        settled["NextReminderDate"] = s((following - LEAD).isoformat())
    receipt = {
        "PK": claimed["PK"],
        "SK": s(f"REC#{due}#SKU#{sku}#SUB#{subscription}"),
        "SKU": s(sku),
        "ProductName": claimed["ProductName"],
        "DueDate": s(due),
        "ProcessedDate": s(format_instant(now)),
        "ProcessedAmount": claimed["AttemptAmount"],
        "Currency": claimed["AttemptCurrency"],
        "GatewayPaymentId": s(payment["id"]),
        "GatewayCustomerId": claimed["AttemptPayment"]["M"]["customer"],
        "TTL": n(int(now.timestamp()) + RECEIPT_SECONDS),
    }
    if "Email" in claimed:
        receipt["Email"] = claimed["Email"]
    if card := payment.get("card"):
        receipt["Card"] = {"M": {"Brand": s(card["brand"]), "Last4": s(card["last4"])}}
    written = with_version(claimed, settled)
    return transact([{"Update": versioned_update(claimed, written)}, put(receipt, ABSENT)]) is None


def add_to_total(claimed, today):
    midnight = datetime(today.year, today.month, today.day, tzinfo=timezone.utc)
    update({
        "TableName": TABLE,
        "Key": {"PK": s(f"RUN#payments#{today}"), "SK": s(f"CHARGED#{claimed['Shard']['N']}")},
        "UpdateExpression": f"SET #TTL = :ttl ADD Charges :one, Sum{claimed['AttemptCurrency']['S']} :amount",
        "ConditionExpression": "attribute_not_exists(Version)",
        "ExpressionAttributeNames": {"#TTL": "TTL"},
        "ExpressionAttributeValues": {
            ":ttl": n(int(midnight.timestamp()) + RECEIPT_SECONDS),
            ":one": n(1),
            ":amount": claimed["AttemptAmount"],
        },
    })


def claim_and_charge(stored, today):
    if "NextPaymentDate" not in stored or stored["NextPaymentDate"]["S"] > today.isoformat():
        return
    settings = get_settings()
    if not settings["Charging"]["BOOL"] or not is_own_gateway(settings):
        return
    claimed = claim(stored, settings["TableId"], datetime.now(timezone.utc))
    if claimed is None:
        return
    try:
        if settle(claimed, charge(claimed), today):
            add_to_total(claimed, today)
    except Exception:
        # The outcome is unknown: the attempt stays open, and the next run looks it up.
        logging.exception("a charge at sign-up has an unknown outcome")


def first_payment(stored, today):
    """Charges the first payment if it was not attempted yet. Returns the subscription with the state of the payment."""
    account = stored["PK"]["S"][4:]
    _, subscription, _, sku = stored["SK"]["S"].split("#")
    if stored["AttemptSeq"]["N"] == "0":
        claim_and_charge(stored, today)
        stored = get_subscription(account, subscription)
    receipt = None
    if "LastPaymentDate" in stored:
        receipt = get_item({"PK": stored["PK"], "SK": s(f"REC#{stored['FirstDueDate']['S']}#SKU#{sku}#SUB#{subscription}")})
    payment = "paid" if receipt else "not_attempted" if stored["AttemptSeq"]["N"] == "0" else "unknown"
    receipt = receipt and receipt_view(receipt)
    return stored, {**subscription_view(stored), "payment": payment, "decline_code": None, "receipt": receipt}
