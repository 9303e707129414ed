"""Checks that AWS SAM reads the answers of `dueday deploy init` as they were given.

    python .ci/profiles.py PATH_OF_DUEDAY
"""

import pathlib
import subprocess
import sys
import tempfile

from samcli.cli.types import CfnParameterOverridesType
from samcli.lib.config.samconfig import SamConfig

answers = {
    "name": 'Café "Zürich" & Co, 100% #1',
    "sender": "Shop <billing@example.com>",
    "charge-with": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-a1b2c3",
    "zone": "Europe/Vienna",
    "tokens": "https://issuer.example.com/ dueday",
    "alarms": "ops@example.com",
    "parts": "core",
}
expected = {
    "Merchant": answers["name"],
    "MailFrom": answers["sender"],
    "TimeZone": answers["zone"],
    "JwtIssuer": "https://issuer.example.com/",
    "JwtAudience": "dueday",
    "AlarmEmail": answers["alarms"],
    "Parts": "core",
}
gateways = {
    "dev": {"Gateway": "sandbox"},
    "prod": {"Gateway": "stripe", "StripeSecret": answers["charge-with"]},
}
without_issuer = {**answers, "tokens": "none"}
with_pool = {name: value for name, value in expected.items() if not name.startswith("Jwt")}
for given, parameters in ((answers, expected), (without_issuer, with_pool)):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("template.yaml", "samconfig.toml"):
            pathlib.Path(folder, name).write_text(pathlib.Path(name).read_text(encoding="utf-8"), encoding="utf-8")
        options = [word for name, value in given.items() for word in (f"--{name}", value)]
        subprocess.run([sys.argv[1], "deploy", "init", "--folder", folder, *options], check=True, capture_output=True)
        config = SamConfig(folder)
        for profile, stage in (("default", "dev"), ("dev", "dev"), ("prod", "prod")):
            deploy = config.get_all(["deploy"], "parameters", env=profile)
            read = CfnParameterOverridesType().convert(tuple(deploy["parameter_overrides"]), None, None)
            domain = read.pop("UserPoolDomain", None)
            assert (domain is not None) == (given is without_issuer), read
            assert read == {**parameters, **gateways[stage], "Stage": stage, "MailUrl": "ses:"}, read
            assert deploy["confirm_changeset"] is False, deploy
print("AWS SAM reads the profiles as they were written")
