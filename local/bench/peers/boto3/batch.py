"""The payment batch as a boto3 program. It follows the same protocol as Dueday, with one thread for each account in progress."""
import calendar
import datetime
import hashlib
import json
import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import boto3
import urllib3
from botocore.config import Config

TABLE = "dueday"
CONCURRENCY = int(os.environ["CONCURRENCY"])
TODAY = datetime.date.fromisoformat(os.environ["TODAY"])
CHARGE = os.environ["GATEWAY"] + "/v1/payments"

client = boto3.client("dynamodb", endpoint_url=os.environ["ENGINE"], config=Config(max_pool_connections=CONCURRENCY))
http = urllib3.PoolManager(maxsize=CONCURRENCY)

CLAIM = (
    "SET AttemptTable = :table, AttemptSeq = AttemptSeq + :one, AttemptNo = AttemptSeq + :one, AttemptDue = DueDate, "
    "AttemptAmount = PaymentAmount, AttemptCurrency = Currency, AttemptPayment = PaymentDetails, AttemptAt = :now, "
    "AttemptLease = :lease, AttemptBy = :token, Version = Version + :one"
)
IS_DUE = (
    "NextPaymentDate = :seen AND #Status IN (:active, :past_due) AND attribute_not_exists(AttemptNo) AND attribute_not_exists(DisputedDate) "
    "AND (attribute_not_exists(CancelPeriod) OR CancelPeriod > DueDate)"
)
SETTLE = (
    "SET DueDate = :due, NextPaymentDate = :due, NextReminderDate = :remind, LastPaymentDate = :now, Version = :version "
    "REMOVE AttemptTable, AttemptNo, AttemptDue, AttemptAmount, AttemptCurrency, AttemptPayment, AttemptAt, AttemptLease, "
    "AttemptBy"
)
settings = None


def format_instant(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant.microsecond // 1000:03d}Z"


def next_due_date(due, payment_day):
    year, month = (due.year + 1, 1) if due.month == 12 else (due.year, due.month + 1)
    return datetime.date(year, month, min(payment_day, calendar.monthrange(year, month)[1]))


def pay(row):
    now = datetime.datetime.now(datetime.timezone.utc)
    key = {"PK": row["PK"], "SK": row["SK"]}
    claimed = client.update_item(
        TableName=TABLE,
        Key=key,
        UpdateExpression=CLAIM,
        ConditionExpression=IS_DUE,
        ExpressionAttributeNames={"#Status": "Status"},
        ExpressionAttributeValues={
            ":table": {"S": settings["TableId"]["S"]},
            ":one": {"N": "1"},
            ":now": {"S": format_instant(now)},
            ":lease": {"S": format_instant(now + datetime.timedelta(minutes=20))},
            ":token": {"S": uuid.uuid4().hex[:26].upper()},
            ":seen": row["NextPaymentDate"],
            ":active": {"S": "active"},
            ":past_due": {"S": "past_due"},
        },
        ReturnValues="ALL_NEW",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )["Attributes"]
    account = row["PK"]["S"].removeprefix("ACC#")
    _, subscription, _, sku = row["SK"]["S"].split("#", 3)
    due, number = claimed["AttemptDue"]["S"], int(claimed["AttemptNo"]["N"])
    names = [settings["TableId"]["S"], account, subscription, sku, due, str(number)]
    charge = {
        "idempotency_key": hashlib.sha256("\n".join(names).encode()).hexdigest(),
        "table": settings["TableId"]["S"],
        "account": account,
        "subscription": subscription,
        "sku": sku,
        "due_on": due,
        "attempt_no": number,
        "amount": int(claimed["AttemptAmount"]["N"]),
        "currency": claimed["AttemptCurrency"]["S"],
        "customer": claimed["AttemptPayment"]["M"]["customer"]["S"],
        "payment_method": claimed["AttemptPayment"]["M"]["payment_method"]["S"],
    }
    response = http.request("POST", CHARGE, json=charge, timeout=30)
    payment = response.json()["succeeded"]
    if (payment["account"], payment["subscription"], payment["amount"]) != (account, subscription, charge["amount"]):
        raise RuntimeError(f"the gateway returned another payment: {payment}")
    now = datetime.datetime.now(datetime.timezone.utc)
    following = next_due_date(datetime.date.fromisoformat(due), int(claimed["PaymentDay"]["N"]))
    client.transact_write_items(
        TransactItems=[
            {
                "Update": {
                    "TableName": TABLE,
                    "Key": key,
                    "UpdateExpression": SETTLE,
                    "ConditionExpression": "Version = :seen",
                    "ExpressionAttributeValues": {
                        ":due": {"S": following.isoformat()},
                        ":remind": {"S": (following - datetime.timedelta(days=7)).isoformat()},
                        ":now": {"S": format_instant(now)},
                        ":version": {"N": str(int(claimed["Version"]["N"]) + 1)},
                        ":seen": claimed["Version"],
                    },
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            },
            {
                "Put": {
                    "TableName": TABLE,
                    "Item": {
                        "PK": row["PK"],
                        "SK": {"S": f"REC#{due}#SKU#{sku}#SUB#{subscription}"},
                        "SKU": {"S": sku},
                        "ProductName": claimed["ProductName"],
                        "DueDate": {"S": due},
                        "ProcessedDate": {"S": format_instant(now)},
                        "ProcessedAmount": claimed["AttemptAmount"],
                        "Currency": claimed["AttemptCurrency"],
                        "GatewayPaymentId": {"S": payment["id"]},
                        "TTL": {"N": str(int(now.timestamp()) + 190 * 86400)},
                    },
                    "ConditionExpression": "attribute_not_exists(PK)",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            },
        ]
    )


def due_rows(today):
    paginator = client.get_paginator("query")
    for shard in range(int(os.environ["SHARDS"])):
        pages = paginator.paginate(
            TableName=TABLE,
            IndexName="GSI-2",
            KeyConditionExpression="#Shard = :shard AND NextPaymentDate <= :today",
            ExpressionAttributeNames={"#Shard": "Shard"},
            ExpressionAttributeValues={":shard": {"N": str(shard)}, ":today": {"S": today}},
            PaginationConfig={"PageSize": 200},
        )
        for page in pages:
            yield from page["Items"]


settings = client.get_item(TableName=TABLE, Key={"PK": {"S": "CTL#settings"}, "SK": {"S": "CTL#settings"}})["Item"]
list(due_rows("2020-01-01"))
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(CONCURRENCY) as pool:
    for done in [pool.submit(pay, row) for row in due_rows(TODAY.isoformat())]:
        done.result()
print("done", flush=True)
sys.stdin.readline()
