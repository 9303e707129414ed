"""The five requests of the benchmark as an API with FastAPI and boto3."""
import base64
import re
import socket
from datetime import datetime, timezone
from typing import Annotated

import orjson
import uvicorn
from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from ulid import ULID

import subscriptions
from action_log import action_write
from fields import Change, Id, ListQuery, NewSubscription, SubscriptionId, parse_body
from problem import Problem, problem_of_validation
from sign_up import first_payment
from table import (
    ABSENT, TABLE, account_key, get_account, get_record, get_settings, get_subscription, list_disputes, list_page, n, put, s, sha256,
    subscription_code, transact, versioned_update,
)
from views import receipt_view, subscription_view

RECORD_SECONDS = 48 * 3_600
MAX_CONFLICTS = 8
KEY = re.compile(r"[\x20-\x7e]{1,255}")
TAG = re.compile(r'(W/)?"[^"]*"')
NO_STORE = {"Cache-Control": "no-store"}

app = FastAPI(openapi_url=None)
shards = int(get_settings()["Shards"]["N"])


@app.exception_handler(Problem)
async def respond_with_problem(request, problem):
    return Response(orjson.dumps(problem.body), problem.status, NO_STORE, "application/problem+json")


@app.exception_handler(RequestValidationError)
async def respond_to_invalid_request(request, error):
    return await respond_with_problem(request, problem_of_validation(error.errors(), 1))


@app.exception_handler(HTTPException)
async def respond_to_unknown_path(request, error):
    return await respond_with_problem(request, Problem("not-found", "there is nothing at this path"))


def body_of(model):
    """Returns the dependency that reads the body of a request: the validated fields, and the hash of the bytes."""

    async def read(request: Request):
        if request.query_params:
            raise Problem("invalid-field", "is unknown", next(iter(request.query_params)))
        body = await request.body()
        return parse_body(model, request.headers.get("content-type"), body), sha256(body)

    return Depends(read)


def json_response(status, body, version, headers={}):
    return Response(body, status, {"ETag": f'"{version}"', **NO_STORE, **headers}, "application/json")


def no_account():
    return Problem("not-found", "there is no such account")


def key_hash(request):
    """Returns the hash of the idempotency key; None if the request has no key."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not KEY.fullmatch(key):
        raise Problem("invalid-field", "must be 1 to 255 printable ASCII characters", "Idempotency-Key")
    return sha256(f"operator\n{request.method}\n{request.url.path}\n{key}")


def replay(record, account, fields, body_hash, today):
    if record["RequestHash"]["S"] != body_hash:
        detail = "this Idempotency-Key was used for a request with another body; use a new key"
        raise Problem("idempotency-key-reused", detail)
    headers = {"Idempotent-Replayed": "true"}
    if fields.charge_now:
        stored = get_subscription(account, orjson.loads(record["Answer"]["S"])["id"])
        return first_payment_response(stored, today, headers)
    return json_response(201, record["Answer"]["S"], record["AnswerVersion"]["N"], headers)


def first_payment_response(subscription, today, headers={}):
    stored, body = first_payment(subscription, today)
    status = 202 if body["payment"] in ("unknown", "not_attempted") else 201
    return json_response(status, orjson.dumps(body), stored["Version"]["N"], headers)


@app.post("/accounts/{account}/subscriptions")
def create(request: Request, account: Id, body: Annotated[tuple, body_of(NewSubscription)]):
    fields, body_hash = body
    now = datetime.now(timezone.utc)
    today, seconds, key = now.date(), int(now.timestamp()), key_hash(request)
    record = key and get_record(key)
    if record and int(record["TTL"]["N"]) > seconds:
        return replay(record, account, fields, body_hash, today)
    if fields.charge_now and fields.first_payment_date != today:
        raise Problem("refused-field", f"charge_now requires a first_payment_date of today, {today}", "charge_now")
    if fields.charge_now and key is None:
        raise Problem("refused-field", "charge_now requires an Idempotency-Key", "charge_now")
    disputes, subscription = list_disputes(account), str(ULID())
    item = subscriptions.create(account, subscription, fields, now, shards, disputes)
    view = orjson.dumps(subscription_view(item))
    check = {"TableName": TABLE, "Key": account_key(account), "ConditionExpression": "attribute_exists(PK)"}
    writes = [{"ConditionCheck": check}, put(item, ABSENT)]
    if key:
        record = {
            "PK": s(f"IDEM#{key}"),
            "SK": s(f"IDEM#{key}"),
            "RequestHash": s(body_hash),
            "Answer": s(view.decode()),
            "AnswerVersion": n(1),
            "TTL": n(seconds + RECORD_SECONDS),
        }
        names, values = {"#PK": "PK", "#TTL": "TTL"}, {":now": n(seconds)}
        writes.append(put(record, "attribute_not_exists(#PK) OR #TTL <= :now", names, values))
    code = s(f"CODE#{subscription_code(account, subscription)}")
    writes.append(put({"PK": code, "SK": code, "Account": s(account), "Subscription": s(subscription)}))
    writes.append(action_write("subscription.create", None, item, now))
    failed = transact(writes)
    if failed and key and failed[2] is not None:
        return replay(failed[2], account, fields, body_hash, today)
    if failed and failed[1] is not None:
        raise Problem("conflict", "there is already a subscription with this id")
    if failed:
        raise no_account()
    return first_payment_response(item, today) if fields.charge_now else json_response(201, view, 1)


def paging(query, prefix):
    if query.cursor is None:
        return {"limit": query.limit}
    try:
        after = base64.urlsafe_b64decode(query.cursor + "=" * (-len(query.cursor) % 4)).decode()
    except ValueError:
        after = ""
    if not after.startswith(prefix):
        raise Problem("refused-field", "must be the next_cursor of the previous page", "cursor")
    return {"limit": query.limit, "after": after}


def list_response(account, page, view):
    items, following = page
    if not items and get_account(account) is None:
        raise no_account()
    body = {"data": [view(item) for item in items], "unreadable": [], "next_cursor": following}
    return Response(orjson.dumps(body), 200, NO_STORE, "application/json")


@app.get("/accounts/{account}/subscriptions")
def list_subscriptions(account: Id, query: Annotated[ListQuery, Query()]):
    return list_response(account, list_page(account, "SUB#", **paging(query, "SUB#")), subscription_view)


@app.get("/accounts/{account}/receipts")
def list_receipts(account: Id, query: Annotated[ListQuery, Query()]):
    now = datetime.now(timezone.utc)
    page = list_page(account, "REC#", **paging(query, "REC#"), now=now, ascending=False)
    return list_response(account, page, receipt_view)


def check_version(header, item):
    """Checks the version against the header If-Match."""
    if header is None or header.strip() == "*":
        return
    tags = [tag.strip() for tag in header.split(",") if tag.strip()]
    if not all(TAG.fullmatch(tag) for tag in tags):
        raise Problem("invalid-field", "must be the ETag of an earlier response, with its quotes, or *", "If-Match")
    if f'"{item["Version"]["N"]}"' not in tags:
        raise Problem("stale", "the stored item does not have the version in If-Match; get it again before you repeat the request")


@app.patch("/accounts/{account}/subscriptions/{subscription}")
def change(
    account: Id,
    subscription: SubscriptionId,
    body: Annotated[tuple, body_of(Change)],
    if_match: Annotated[str | None, Header()] = None,
):
    fields, _ = body
    now = datetime.now(timezone.utc)
    disputes = list_disputes(account) if fields.payment_method else []
    stored, conflicts = get_subscription(account, subscription), 0
    while stored:
        check_version(if_match, stored)
        changed = subscriptions.change(stored, fields, now, disputes)
        is_same = changed == stored
        written = stored if is_same else subscriptions.with_version(stored, changed)
        writes = [{"Update": versioned_update(stored, written)}, action_write("subscription.change", stored, written, now)]
        failed = None if is_same else transact(writes)
        if failed is None:
            return json_response(200, orjson.dumps(subscription_view(written)), written["Version"]["N"])
        if conflicts == MAX_CONFLICTS:
            raise Problem("in-progress", "another request is changing the same data at this moment; send this request again")
        stored, conflicts = failed[0], conflicts + 1
    raise Problem("not-found", "there is no such subscription")


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(app, loop="uvloop", http="httptools", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])
