"""The fields of the requests, validated by pydantic."""
import json
import pathlib
import re
import unicodedata
from datetime import date
from typing import Annotated, Literal

from email_validator import EmailNotValidError, validate_email
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from problem import Problem, problem_of_validation

MAX_BODY_BYTES = 64 * 1024
CURRENCIES = tuple(json.loads((pathlib.Path(__file__).parent.parent / "currencies.json").read_text()))
DIGITS = re.compile(r"[0-9]+(?:[ -][0-9]+)*")
# Control characters, line breaks, and characters that change the direction of the text.
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def passes_luhn(digits):
    values = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in values) % 10 == 0


def has_card_number(text):
    """Returns whether the text contains 13 to 19 digits with a correct check digit, possibly in groups."""
    for run in DIGITS.findall(text):
        if len(run) < 13:
            continue
        groups = re.split("[ -]", run)
        for first in range(len(groups)):
            digits = ""
            for group in groups[first:]:
                digits += group
                if 13 <= len(digits) <= 19 and passes_luhn(digits):
                    return True
    return False


def without_card_number(text):
    if has_card_number(text):
        raise ValueError("must not contain a card number")
    return text


def check_address(text):
    try:
        validate_email(text, check_deliverability=False)
    except EmailNotValidError as error:
        raise ValueError(str(error)) from None
    return without_card_number(text)


def check_label(text):
    if text.strip() != text or FORBIDDEN.search(text) or "=?" in text:
        raise ValueError("must not contain control characters, =?, or space at the start or end")
    if not text.isascii() and all(unicodedata.category(c) in ("Cf", "Zs") or c == "\u2800" for c in text):
        raise ValueError("must contain a visible character")
    return without_card_number(text)


Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
SubscriptionId = Annotated[str, Field(pattern=r"^[0-7][0-9A-HJKMNP-TV-Z]{25}$")]
Token = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,255}$")]
Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(check_label)]
Email = Annotated[str, Field(max_length=254), AfterValidator(check_address)]
Amount = Annotated[int, Field(ge=1, le=999_999_999_999)]
PaymentDay = Annotated[int, Field(ge=1, le=31)]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PaymentMethod(Model):
    customer: Token
    payment_method: Token


class NewSubscription(Model):
    sku: Id
    product_name: Label
    payment_day: PaymentDay
    amount: Amount
    currency: Literal[CURRENCIES]
    payment_method: PaymentMethod
    email: Email | None = None
    first_payment_date: date | None = None
    charge_now: bool = False


class Change(Model):
    # A field that is absent stays unchanged. Only the address may be null.
    amount: Amount = None
    payment_day: PaymentDay = None
    payment_method: PaymentMethod = None
    product_name: Label = None
    email: Email | None = None


class ListQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    cursor: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,1400}$")] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 50


def parse_body(model, content_type, body):
    if (content_type or "").split(";")[0].strip().lower() != "application/json":
        raise Problem("not-json", "send the header Content-Type: application/json, even without a body")
    if len(body) > MAX_BODY_BYTES:
        raise Problem("too-large", f"the body must be at most {MAX_BODY_BYTES} bytes")
    try:
        return model.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise problem_of_validation(error.errors(include_url=False, include_input=False, include_context=False)) from None
