"""The requests to DynamoDB, and the keys of the items."""
import base64
import hashlib
import os

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

TABLE = "dueday"
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ABSENT = "attribute_not_exists(PK)"

client = boto3.client(
    "dynamodb",
    endpoint_url=os.environ["ENGINE"],
    config=Config(max_pool_connections=50, connect_timeout=2, read_timeout=3, retries={"mode": "standard"}),
)


def s(text):
    return {"S": text}


def n(number):
    return {"N": str(number)}


def sha256(data):
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def partition(account):
    return s(f"ACC#{account}")


def account_key(account):
    return {"PK": partition(account), "SK": partition(account)}


def single(text):
    return {"PK": s(text), "SK": s(text)}


def subscription_code(account, subscription):
    """Returns the code that stands for a subscription in the numbers of its receipts."""
    digest = hashlib.sha256(f"{account}\n{subscription}".encode()).digest()
    return "".join(ALPHABET[byte % 32] for byte in digest[:12])


def shard_of(account, shards):
    return int.from_bytes(hashlib.sha256(account.encode()).digest()[:8], "big") % shards


def get_item(key):
    return client.get_item(TableName=TABLE, Key=key, ConsistentRead=True).get("Item")


def get_account(account):
    return get_item(account_key(account))


def get_settings():
    return get_item(single("CTL#settings"))


def get_record(key_hash):
    return get_item(single(f"IDEM#{key_hash}"))


def list_items(account, prefix, limit=None, after=None, now=None, ascending=True):
    """Returns the items of a partition whose sort keys begin with a prefix, at most `limit` of them."""
    request = {
        "TableName": TABLE,
        "ConsistentRead": True,
        "ScanIndexForward": ascending,
        "KeyConditionExpression": "#PK = :partition AND begins_with(#SK, :prefix)",
        "ExpressionAttributeNames": {"#PK": "PK", "#SK": "SK"},
        "ExpressionAttributeValues": {":partition": partition(account), ":prefix": s(prefix)},
    }
    if limit:
        request["Limit"] = limit
    if after:
        request["ExclusiveStartKey"] = {"PK": partition(account), "SK": s(after)}
    if now:
        request["FilterExpression"] = "#TTL > :now"
        request["ExpressionAttributeNames"]["#TTL"] = "TTL"
        request["ExpressionAttributeValues"][":now"] = n(int(now.timestamp()))
    items = []
    while True:
        page = client.query(**request)
        items += page["Items"]
        if "LastEvaluatedKey" not in page or (limit and len(items) >= limit):
            return items[:limit]
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def list_page(account, prefix, limit, after=None, **more):
    """Returns a page of a list, and the cursor of the next page."""
    items = list_items(account, prefix, limit=limit + 1, after=after, **more)
    if len(items) <= limit:
        return items, None
    items.pop()
    return items, base64.urlsafe_b64encode(items[-1]["SK"]["S"].encode()).decode().rstrip("=")


def get_subscription(account, subscription):
    found = list_items(account, f"SUB#{subscription}#")
    return found[-1] if found else None


def list_disputes(account):
    return list_items(account, "DSP#")


def transact(writes):
    """Sends a transaction. Returns None if it was written, otherwise for each write None, or the stored item for which its condition failed."""
    try:
        client.transact_write_items(TransactItems=writes)
        return None
    except client.exceptions.TransactionCanceledException as error:
        reasons = error.response["CancellationReasons"]
        if not any(reason["Code"] == "ConditionalCheckFailed" for reason in reasons):
            raise
        return [reason.get("Item", {}) if reason["Code"] == "ConditionalCheckFailed" else None for reason in reasons]


def update(request):
    """Updates an item. Returns True and the updated attributes, or False and the item for which the condition failed."""
    request = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD", **request}
    try:
        return True, client.update_item(**request).get("Attributes")
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return False, error.response.get("Item")


def put(item, condition=None, names=None, values=None):
    write = {"TableName": TABLE, "Item": item}
    if condition:
        write |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if values:
        write |= {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    return {"Put": write}


def versioned_update(before, after):
    """Writes the attributes in which two versions of an item differ, on condition that the stored version is the earlier one."""
    changed = [name for name, value in after.items() if before.get(name) != value]
    removed = [name for name in before if name not in after]
    update = "SET " + ", ".join(f"#{name} = :{name}" for name in changed) if changed else ""
    if removed:
        update += " REMOVE " + ", ".join(f"#{name}" for name in removed)
    return {
        "TableName": TABLE,
        "Key": {"PK": before["PK"], "SK": before["SK"]},
        "UpdateExpression": update.strip(),
        "ConditionExpression": "#Version = :seen",
        "ExpressionAttributeNames": {f"#{name}": name for name in (*changed, *removed, "Version")},
        "ExpressionAttributeValues": {":seen": before["Version"]} | {f":{name}": after[name] for name in changed},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
