"""The renewals of django-flexible-subscriptions, made by its own manager, with one charge over HTTP for each renewal."""
import datetime
import os
import sys

import django
import urllib3
from django.conf import settings

ROWS = int(os.environ["ROWS"])

settings.configure(
    # libpq's own variables, such as PGHOST and PGUSER, select the server.
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "subscriptions"],
    USE_TZ=True,
)
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from subscriptions import models  # noqa: E402
from subscriptions.management.commands._manager import Manager  # noqa: E402

http = urllib3.PoolManager()


class Payments(Manager):
    def process_payment(self, *, user, cost):
        key = str(user.pk)
        charge = {
            "idempotency_key": key,
            "account": user.username,
            "subscription": "01JZ0000000000000000000000",
            "sku": "gold",
            "due_on": "2026-01-01",
            "attempt_no": 1,
            "amount": int(cost.cost * 100),
            "currency": "EUR",
            "customer": "cus_1",
            "payment_method": "pm_card_visa",
        }
        response = http.request("POST", os.environ["GATEWAY"] + "/v1/payments", json=charge, timeout=30)
        return "succeeded" in response.json()


def create_due_subscriptions():
    call_command("flush", interactive=False, verbosity=0)
    plan = models.SubscriptionPlan.objects.create(plan_name="Gold", plan_description="Gold plan")
    cost = models.PlanCost.objects.create(plan=plan, recurrence_unit=models.MONTH, cost="12.99")
    users = get_user_model().objects.bulk_create(get_user_model()(username=f"account-{n:06}") for n in range(ROWS))
    begun = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=31)
    due = begun + datetime.timedelta(days=31, minutes=-1)
    models.UserSubscription.objects.bulk_create(
        models.UserSubscription(
            user=user, subscription=cost, active=True, date_billing_start=begun, date_billing_next=due
        )
        for user in users
    )


call_command("migrate", verbosity=0)
create_due_subscriptions()
print("ready", flush=True)
sys.stdin.readline()
Payments().process_subscriptions()
print("done", flush=True)
sys.stdin.readline()
now = datetime.datetime.now(datetime.timezone.utc)
renewed = models.UserSubscription.objects.filter(date_billing_next__gt=now).count()
print(renewed, models.SubscriptionTransaction.objects.count(), flush=True)
