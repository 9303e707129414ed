"""The rules of subscriptions: dates, changes, and the views that the API returns. Subscriptions are kept as DynamoDB items."""
import calendar
from datetime import date, timedelta

from problem import Problem
from table import n, partition, s, shard_of, subscription_code

LEAD = timedelta(days=7)
MAX_AHEAD = timedelta(days=3_652)
ACTIVE_STATES = ("active", "past_due")


def format_instant(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1000:03d}Z"


def period_of(day):
    return day.year, day.month


def next_period(period):
    year, month = period
    return (year + 1, 1) if month == 12 else (year, month + 1)


def format_period(period):
    return f"{period[0]:04d}-{period[1]:02d}"


def parse_period(text):
    return int(text[:4]), int(text[5:7])


def due_in(period, payment_day):
    return date(*period, min(payment_day, calendar.monthrange(*period)[1]))


def first_due(payment_day, requested, today):
    if requested is None:
        due = due_in(period_of(today), payment_day)
        return due if due > today else due_in(next_period(period_of(today)), payment_day)
    expected = due_in(period_of(requested), payment_day)
    if requested < today or requested > today + MAX_AHEAD or requested != expected:
        detail = f"must be on the payment day, today ({today}) or later, and at most ten years ahead"
        raise Problem("refused-field", detail, "first_payment_date")
    return requested


def payment_details(method):
    return {"M": {"customer": s(method.customer), "payment_method": s(method.payment_method)}}


def mark_dispute(item, disputes):
    """Sets the time since which an open or lost dispute stops the charges of the payment method, or removes it."""
    item.pop("DisputedDate", None)
    allowed = item.get("ChargedThoughDisputedDate", s(""))["S"]
    method = item["PaymentDetails"]["M"]["payment_method"]
    stops = [
        dispute["CreatedDate"]["S"]
        for dispute in disputes
        if dispute["Status"]["S"] in ("open", "lost", "returned")
        and dispute["PaymentMethod"] == method
        and dispute["CreatedDate"]["S"] > allowed
    ]
    if stops:
        item["DisputedDate"] = s(min(stops))
    return item


def create(account, subscription, fields, now, shards, disputes):
    due = first_due(fields.payment_day, fields.first_payment_date, now.date())
    item = {
        "PK": partition(account),
        "SK": s(f"SUB#{subscription}#SKU#{fields.sku}"),
        "SKU": s(fields.sku),
        "ProductName": s(fields.product_name),
        "PaymentDay": n(fields.payment_day),
        "PaymentAmount": n(fields.amount),
        "Currency": s(fields.currency),
        "PaymentDetails": payment_details(fields.payment_method),
        "Status": s("active"),
        "FirstDueDate": s(due.isoformat()),
        "DueDate": s(due.isoformat()),
        "NextPaymentDate": s(due.isoformat()),
        "NextReminderDate": s((due - LEAD).isoformat()),
        "FailedAttempts": n(0),
        "AttemptSeq": n(0),
        "Shard": n(shard_of(account, shards)),
        "CreatedDate": s(format_instant(now)),
        "Version": n(1),
    }
    if fields.email:
        item["Email"] = s(fields.email)
    return mark_dispute(item, disputes)


def due_date(item):
    return date.fromisoformat(item["DueDate"]["S"])


def waiting_terms(item):
    return [terms["M"] for terms in item.get("WaitingTerms", {"L": []})["L"]]


def terms_in(item, period):
    """Returns the terms of a month: those of the latest waiting change that begins in or before this month."""
    text = format_period(period)
    terms = {"PaymentDay": item["PaymentDay"], "PaymentAmount": item["PaymentAmount"]}
    for waiting in waiting_terms(item):
        if waiting["From"]["S"] <= text:
            terms = waiting
    return {**terms, "From": s(text)}


def due_of(item, period):
    due = due_date(item)
    return due if period == period_of(due) else due_in(period, int(terms_in(item, period)["PaymentDay"]["N"]))


def is_ending(item):
    return "CancelPeriod" in item and item["CancelPeriod"]["S"] <= item["DueDate"]["S"][:7]


def plan_reminder(item, today):
    item.pop("NextReminderDate", None)
    due = due_date(item)
    if item["Status"]["S"] == "active" and "AttemptNo" not in item and due >= today and not is_ending(item):
        item["NextReminderDate"] = s((due - LEAD).isoformat())


def change_terms(item, changed, is_changeable):
    """Changes the terms from the first month that has neither fallen due nor been tried. Returns this month."""
    due_next = period_of(due_date(item))
    is_tried = "AttemptNo" in item or item["FailedAttempts"]["N"] != "0"
    period = next_period(due_next) if is_tried else due_next
    while not is_changeable(due_of(item, period), period):
        period = next_period(period)
    start, first = format_period(period), format_period(due_next)
    changes = waiting_terms(item)
    if all(terms["From"]["S"] != start for terms in changes):
        changes.append(terms_in(item, period))
    last, waiting = terms_in(item, due_next), []
    for terms in sorted(changes, key=lambda terms: terms["From"]["S"]):
        terms = {**terms, **changed} if terms["From"]["S"] >= start else terms
        if terms["From"]["S"] == first:
            item |= {"PaymentDay": terms["PaymentDay"], "PaymentAmount": terms["PaymentAmount"]}
        elif {**terms, "From": None} != {**last, "From": None}:
            waiting.append({"M": terms})
        last = terms
    item.pop("WaitingTerms", None)
    if waiting:
        item["WaitingTerms"] = {"L": waiting}
    return period


def change(stored, fields, now, disputes):
    """Returns the changed item of a subscription. Raises a problem if the change is not allowed."""
    if stored["Status"]["S"] == "cancelled":
        raise Problem("conflict", "a cancelled subscription cannot be changed")
    item, given, today = dict(stored), fields.model_fields_set, now.date()
    if "product_name" in given:
        item["ProductName"] = s(fields.product_name)
    if "email" in given:
        item.pop("Email", None)
        if fields.email:
            item["Email"] = s(fields.email)
    if "amount" in given:
        change_terms(item, {"PaymentAmount": n(fields.amount)}, lambda due, _: due > today)
        if item["PaymentAmount"] != stored["PaymentAmount"]:
            plan_reminder(item, today)
    if "payment_day" in given:
        change_payment_day(item, stored, fields.payment_day, today)
    if "payment_method" in given and item["PaymentDetails"] != payment_details(fields.payment_method):
        item |= {"PaymentDetails": payment_details(fields.payment_method), "PaymentDetailsDate": s(format_instant(now))}
        item.pop("Rejections", None)
        if item["Status"]["S"] in ("past_due", "unpaid") and "AttemptNo" not in item:
            item |= {"Status": s("past_due"), "FailedAttempts": n(0), "NextPaymentDate": s(today.isoformat())}
        mark_dispute(item, disputes)
    return item


def change_payment_day(item, stored, payment_day, today):
    if stored["Status"]["S"] == "paused" and n(payment_day) != stored["PaymentDay"]:
        raise Problem("conflict", "the payment day of a paused subscription cannot be changed")
    is_changeable = lambda due, period: due > today and due_in(period, payment_day) > today
    period = change_terms(item, {"PaymentDay": n(payment_day)}, is_changeable)
    moved, due = due_in(period, payment_day), due_date(item)
    if period != period_of(due) or moved == due:
        return
    if "LastPaymentDate" not in item and item["FirstDueDate"] == item["DueDate"]:
        item["FirstDueDate"] = s(moved.isoformat())
    item["DueDate"] = s(moved.isoformat())
    if item["Status"]["S"] in ACTIVE_STATES:
        item["NextPaymentDate"] = s(max(moved, today).isoformat())
        plan_reminder(item, today)


def with_version(before, item):
    return {**item, "Version": n(int(before["Version"]["N"]) + 1)}
