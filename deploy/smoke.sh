#!/usr/bin/env bash
# Tries a deployment: charges a test customer, waits for the receipt and, with all parts, for the event, refunds the payment and cancels the
# subscription.
# Fails at the first step that is not as it should be. No real money moves: a stack that charges real money is refused.
#
#     deploy/smoke.sh --stack NAME      a stack on AWS
#     deploy/smoke.sh --api URL         the server on this machine (`cargo run`), whose data folder is DUEDAY_DATA or .dueday
#
# Needs curl, and for a stack the AWS CLI with its credentials and region. On one machine, DUEDAY names the command (target/debug/dueday).
#
# A stack, and a server with `--auth`, need a token of an operator in the environment:
#     DUEDAY_TOKEN                                                  the token, or
#     DUEDAY_TOKEN_URL, DUEDAY_CLIENT_ID, DUEDAY_CLIENT_SECRET      an OAuth client with the grant client_credentials, such as one of Cognito
#
# Options:
#     --customer ID, --payment-method ID    what is charged; with Stripe, a customer of the test account and its card. By default a card of the
#                                           sandbox gateway
#     --email ADDRESS                       who gets the mails; by default an address of Amazon SES's mailbox simulator
#     --minutes N                           how long to wait for the event; 20 by default, since events are kept in files of five minutes
#     --result FILE                         where the result is written as JSON; by default deploy/smoke-result.json for a stack, and no file for the
#                                           server on this machine. It contains no id, no address and no name, so it can be committed
set -euo pipefail

stack="" parts="" api="" customer="" payment_method="" email="success@simulator.amazonses.com" minutes=20 token="" step=0 result="" steps=()

fail() {
    printf 'FAILED at step %d: %s\n' "$step" "$1" >&2
    exit 1
}

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
}

# Prints the number and the name of the next step.
begin() {
    step=$((step + 1))
    steps+=("$1")
    printf '%2d. %s\n' "$step" "$1"
}

while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case "$1" in
        --stack) stack=$2 ;;
        --api) api=${2%/} ;;
        --customer) customer=$2 ;;
        --payment-method) payment_method=$2 ;;
        --email) email=$2 ;;
        --minutes) minutes=$2 ;;
        --result) result=$2 ;;
        *) usage ;;
    esac
    shift 2
done
if [ -n "$stack" ] && [ -n "$api" ] || [ -z "$stack$api" ]; then usage; fi
[[ "$minutes" =~ ^[0-9]+$ ]] || { echo "--minutes must be a whole number, not $minutes" >&2; exit 2; }
case "$api" in
    "" | http://127.0.0.1:* | http://localhost:* | "http://[::1]:"*) ;;
    *) echo "--api must be an address of this machine, such as http://127.0.0.1:7878; a stack is named with --stack" >&2; exit 2 ;;
esac

folder=$(cd "$(dirname "$0")" && pwd)
[ -n "$result" ] || [ -z "$stack" ] || result="$folder/smoke-result.json"

# Writes the result: what was tried and when, the steps that passed, and the step that failed. The code that is checked out may differ from the deployed
# code, so the commit is that of this script.
write_result() {
    local passed=true done=${#steps[@]} names="" name failed=null
    if [ "$1" != 0 ]; then
        passed=false done=$((${#steps[@]} > 0 ? ${#steps[@]} - 1 : 0))
        failed="\"${steps[*]: -1}\""
    fi
    for name in "${steps[@]:0:$done}"; do names+="${names:+, }\"$name\""; done
    printf '{\n  "tried": "%s",\n  "at": "%s",\n  "script_of_commit": "%s",\n  "parts": "%s",\n  "gateway": "%s",\n  "passed": %s,\n  "failed_step": %s,\n  "passed_steps": [%s]\n}\n' \
        "$([ -n "$stack" ] && echo "a stack on AWS" || echo "one machine")" "$(date -u +%FT%TZ)" \
        "$(git -C "$folder" rev-parse HEAD 2>/dev/null || echo unknown)" "${parts:-one machine}" "${gateway_kind:-unknown}" "$passed" "$failed" "$names" > "$result"
    printf 'The result is in %s.\n' "$result"
}
gateway_kind=""
# A failure before the trap below, such as a refused stack, is a result, too.
trap 'code=$?; [ -z "$result" ] || write_result "$code"' EXIT

# Print the value of a parameter of the stack, and of an output.
parameter() { aws cloudformation describe-stacks --stack-name "$stack" --query "Stacks[0].Parameters[?ParameterKey=='$1'].ParameterValue" --output text; }
output() { aws cloudformation describe-stacks --stack-name "$stack" --query "Stacks[0].Outputs[?OutputKey=='$1'].OutputValue" --output text; }

# Prints the first value of the text field $1 in the JSON $2. Fails if there is none.
field() { [[ "$2" =~ \"$1\":[[:space:]]?\"([^\"]*)\" ]] && printf '%s\n' "${BASH_REMATCH[1]}"; }

# Sends a request: METHOD PATH [BODY]. Sets `status` and `body`. The token is not an argument of curl, which other users could see.
request() {
    local method=$1 path=$2 data=${3-} answer
    local arguments=(--silent --show-error --max-time 40 --request "$method" --header 'Content-Type: application/json')
    [ -z "$data" ] || arguments+=(--data "$data")
    [ "$method" != POST ] || arguments+=(--header "Idempotency-Key: $account$path")
    answer=$(curl "${arguments[@]}" --write-out '\n%{http_code}' --config <([ -z "$token" ] || printf 'header = "Authorization: Bearer %s"\n' "$token") "$api$path") ||
        fail "$method $path got no response"
    status=${answer##*$'\n'} body=${answer%$'\n'*}
}

# Fails unless the last request had the status $1 or, if it is given, $2.
expect() {
    [ "$status" = "$1" ] || [ "$status" = "${2-}" ] || fail "the response has the status $status instead of $1: $body"
}

is_test_key() { case "$1" in sk_test_* | rk_test_*) true ;; *) false ;; esac; }

begin "The gateway moves no real money"
if [ -n "$stack" ]; then
    gateway=$(parameter Gateway) zone=$(parameter TimeZone) parts=$(parameter Parts)
    case "$gateway" in sandbox | stripe) gateway_kind=$gateway ;; *) gateway_kind="own gateway" ;; esac
    case "$gateway" in
        sandbox) ;;
        stripe)
            is_test_key "$(aws secretsmanager get-secret-value --secret-id "$(parameter StripeSecret)" --query SecretString --output text)" ||
                fail "the stack $stack charges with a key of Stripe that is not a test key"
            [ -n "$customer" ] && [ -n "$payment_method" ] || fail "with Stripe, --customer and --payment-method are needed"
            ;;
        *) fail "the stack $stack charges at $gateway, which may move real money" ;;
    esac
    api=$(output ApiUrl)
else
    zone=${DUEDAY_TIME_ZONE:-UTC} token=${DUEDAY_TOKEN-}
    running="${DUEDAY_DATA:-.dueday}/running.json"
    gateway=$(field gateway "$(cat "$running")") || fail "no server uses the data folder of $running"
    case "$gateway" in stripe) gateway_kind=stripe ;; *) gateway_kind="sandbox or own gateway" ;; esac
    case "$gateway" in
        stripe) is_test_key "${STRIPE_SECRET_KEY-}" || fail "STRIPE_SECRET_KEY is not a test key of Stripe" ;;
        *) curl --silent --fail "$gateway/v1/account" | grep -q '"Live":false' || fail "the gateway $gateway moves real money, or does not respond" ;;
    esac
fi

# The random part lets several of these tests run at the same time. It has only letters, since digits could look like a card number, which the
# API refuses.
account="smoke-$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n' | tr '0-9' 'g-p')" subscription=""
started=$(date -u +%FT%TZ) today=$(TZ="$zone" date +%F)
customer=${customer:-cus_$account} payment_method=${payment_method:-pm_card_visa}

# After a failure, the subscription must not be charged each month.
cleanup() {
    local code=$?
    if [ -n "$subscription" ]; then
        (request POST "/accounts/$account/subscriptions/$subscription/cancel" '{}' && expect 200) ||
            echo "the subscription $subscription of the account $account is not cancelled" >&2
    fi
    [ -z "$result" ] || write_result "$code"
    exit $code
}
trap cleanup EXIT

begin "The API responds"
printf '    %s\n' "$api"
request GET /health
expect 200
if [ -n "$stack" ]; then
    begin "A request without a token is refused"
    request GET "/accounts/$account"
    expect 401
    if [ "$gateway" = sandbox ]; then
        begin "A request to the sandbox gateway without a signature of IAM is refused"
        url=$(output SandboxUrl)
        refused=$(curl --silent --output /dev/null --max-time 40 --write-out '%{http_code}' "${url}v1/account") || fail "the function URL does not respond"
        [ "$refused" = 403 ] || fail "the response has the status $refused instead of 403"
    fi
    begin "The token is that of an operator"
    token=${DUEDAY_TOKEN-}
    if [ -z "$token" ]; then
        [ -n "${DUEDAY_CLIENT_ID-}" ] && [ -n "${DUEDAY_CLIENT_SECRET-}" ] && [ -n "${DUEDAY_TOKEN_URL-}" ] ||
            fail "set DUEDAY_TOKEN, or DUEDAY_TOKEN_URL, DUEDAY_CLIENT_ID and DUEDAY_CLIENT_SECRET"
        prefix=$(parameter ScopePrefix)
        [ "$prefix" != none ] || prefix=
        # A user pool of the stack gives programs no scope of admins.
        scope=${prefix}admin
        [ "$(parameter UserPoolDomain)" = none ] || scope=${prefix}operator
        issued=$(curl --silent --show-error --fail --max-time 40 --config <(printf 'user = "%s:%s"\n' "$DUEDAY_CLIENT_ID" "$DUEDAY_CLIENT_SECRET") \
            --data grant_type=client_credentials --data-urlencode "scope=$scope" "$DUEDAY_TOKEN_URL" ) ||
            fail "$DUEDAY_TOKEN_URL issues no token with the scope $scope"
        token=$(field access_token "$issued") || fail "the response of $DUEDAY_TOKEN_URL contains no token"
    fi
    request GET "/due/payments?limit=1"
    expect 200
fi

begin "Create an account"
printf '    %s\n' "$account"
request PUT "/accounts/$account" "{\"email\": \"$email\", \"name\": \"Smoke test\"}"
expect 201

begin "Create a subscription, and charge its first payment of 1.23 EUR"
new="{\"sku\": \"smoke-test\", \"product_name\": \"Smoke test\", \"amount\": 123, \"currency\": \"EUR\", \"payment_day\": $((10#${today##*-})), \
\"first_payment_date\": \"$today\", \"charge_now\": true, \"payment_method\": {\"customer\": \"$customer\", \"payment_method\": \"$payment_method\"}}"
request POST "/accounts/$account/subscriptions" "$new"
subscription=$(field id "$body") || fail "the response contains no subscription: $body"
expect 201
[ "$(field payment "$body")" = paid ] || fail "the first payment is not paid: $body"

begin "The same request under the same key does not charge again"
first=$body
request POST "/accounts/$account/subscriptions" "$new"
expect 201
[ "$(field gateway_payment_id "$body")" = "$(field gateway_payment_id "$first")" ] || fail "the repeated request made another payment: $body"

begin "The receipt is readable"
receipts=0
for _ in $(seq 10); do
    request GET "/accounts/$account/receipts"
    expect 200
    # The output of wc may begin with spaces.
    receipts=$(($(grep -o '"gateway_payment_id":' <<< "$body" | wc -l))) || true
    [ "$receipts" = 0 ] || break
    sleep 1
done
[ "$receipts" = 1 ] || fail "the account has $receipts receipts instead of 1: $body"
[[ "$body" == *'"amount":123,"currency":"EUR"'* ]] || fail "the receipt has another amount: $body"
receipt=$(field id "$body") || fail "the list contains no receipt: $body"
[[ "$receipt" == "$today."* ]] || fail "the receipt has another due date: $body"
request GET "/accounts/$account/receipts/$receipt"
expect 200

begin "The event payment.succeeded was published and kept"
# Prints the events from the files in the stack's bucket that were written since the start.
kept_events() {
    local bucket key day
    bucket=$(output EventsBucketName)
    for day in "${started%%T*}" "$(date -u +%F)"; do
        for key in $(aws s3api list-objects-v2 --bucket "$bucket" --prefix "events/day=$day/" --query "Contents[?LastModified>='$started'].Key" --output text); do
            [ "$key" = None ] || aws s3 cp --only-show-errors "s3://$bucket/$key" - | gunzip
        done
    done
}
if [ -n "$stack" ] && [ "$parts" = core ]; then
    printf '   not checked: with Parts=core, the stack publishes no events\n'
elif [ -n "$stack" ]; then
    deadline=$((SECONDS + minutes * 60))
    # `grep -q` would end before its input does, and the pipe would count as failed.
    until kept_events | grep -F "\"$account\"" | grep -F '"payment.succeeded"' > /dev/null; do
        [ "$SECONDS" -lt "$deadline" ] || fail "the bucket has no event payment.succeeded of the account after $minutes minutes"
        sleep 30
    done
else
    # The server publishes an event soon after its change is stored.
    deadline=$((SECONDS + 30))
    while
        events=$("${DUEDAY:-target/debug/dueday}" events --account "$account" --type payment.succeeded --json) || fail "dueday events failed"
        [ -z "$events" ] && [ "$SECONDS" -lt "$deadline" ]
    do
        sleep 1
    done
    [ "$(grep -c "\"$subscription\"" <<< "$events")" = 1 ] || fail "there is not exactly one event payment.succeeded: $events"
fi

begin "Refund the payment"
request POST "/accounts/$account/receipts/$receipt/refund" '{"amount": 123, "reason": "Smoke test"}'
expect 201
[ "$(field status "$body")" = succeeded ] || fail "the refund has not succeeded: $body"

begin "Cancel the subscription"
request POST "/accounts/$account/subscriptions/$subscription/cancel" '{}'
expect 200
[ "$(field status "$body")" = cancelled ] || fail "the subscription is not cancelled: $body"
subscription=""

printf 'All %d steps passed. The account %s stays, with a refunded receipt and a cancelled subscription.\n' "$step" "$account"
