"""The entries of the action log: who changed a subscription, and its fields before and after the change."""
import hashlib

from ulid import ULID

from subscriptions import format_instant, waiting_terms
from table import n, put, s
from views import cancel_date, text

RETENTION_SECONDS = 730 * 86_400
EXPONENTS = dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3) | dict.fromkeys(
    ("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"), 0
)


def money(minor, currency):
    places = EXPONENTS.get(currency, 2)
    digits = minor.rjust(places + 1, "0")
    amount = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"{amount} {currency}"


def logged_fields(item):
    """Returns the fields whose values are logged."""
    currency = item["Currency"]["S"]
    waiting = [
        f"from {terms['From']['S']}: {money(terms['PaymentAmount']['N'], currency)} on day {terms['PaymentDay']['N']}"
        for terms in waiting_terms(item)
    ]
    fields = {
        "status": item["Status"]["S"],
        "sku": item["SKU"]["S"],
        "price": money(item["PaymentAmount"]["N"], currency),
        "payment_day": item["PaymentDay"]["N"],
        "waiting_terms": "; ".join(waiting) or None,
        "due_on": item["DueDate"]["S"],
        "next_payment_on": text(item, "NextPaymentDate"),
        "cancels_on": cancel_date(item),
        "disputed_at": text(item, "DisputedDate"),
    }
    return {name: value for name, value in fields.items() if value is not None}


def hidden_fields(item):
    """Returns the fields whose values are personal data or tokens. The log only contains that they were changed."""
    return {
        "payment_method": item["PaymentDetails"],
        "product_name": item["ProductName"],
        "email": item.get("Email"),
    }


def differing(fields, others):
    """Returns the fields of `fields` whose values are different in `others`."""
    return {name: s(value) for name, value in fields.items() if value != others.get(name)}


def action_write(action, before, after, now):
    """Builds the write of the entry for the change from `before`, which is None for a new subscription, to `after`."""
    subscription = after["SK"]["S"].split("#")[1]
    digest = hashlib.sha256(f"{action}\n{subscription}\n{after['Version']['N']}".encode()).digest()
    action_id = ULID.from_bytes(int(now.timestamp() * 1000).to_bytes(6, "big") + digest[6:16])
    old, new = logged_fields(before) if before else {}, logged_fields(after)
    added, removed = differing(new, old), differing(old, new)
    if before:
        old_hidden = hidden_fields(before)
        added |= {name: s("changed") for name, value in hidden_fields(after).items() if value != old_hidden[name]}
    entry = {
        "PK": after["PK"],
        "SK": s(f"ACTION#{action_id}"),
        "Action": s(action),
        "ActorKind": s("anonymous"),
        "Subscription": s(subscription),
        "ProcessedDate": s(format_instant(now)),
        "TTL": n(int(now.timestamp()) + RETENTION_SECONDS),
    }
    if removed:
        entry["Before"] = {"M": removed}
    if added:
        entry["After"] = {"M": added}
    return put(entry)
