"""Checks the resources of the stack after the transform of AWS SAM.

    python .ci/stack_resources.py             # checks them
    python .ci/stack_resources.py --update    # adds new resources to the list

No resource of an earlier version may get another name or another type, because CloudFormation would replace it: a table
would be empty. The list is local/dueday/tests/commands/stack_resources.txt. A stack with Parts=core must stay small.
"""

import json
import pathlib
import subprocess
import sys

LIST = pathlib.Path("local/dueday/tests/commands/stack_resources.txt")

# The parameters of a stack, and the number of its resources with Parts=core.
STRIPE = {"Gateway": "stripe", "StripeSecret": "arn", "MailUrl": "ses:", "AlarmEmail": "ops@example.com"}
CORE = [
    ("Stripe, without its webhooks", STRIPE, 39),
    ("Stripe, with its webhooks", {**STRIPE, "StripeWebhookSecret": "arn"}, 48),
    ("the sandbox gateway", {**STRIPE, "Gateway": "sandbox", "StripeSecret": ""}, 47),
]


def is_true(template, parameters, condition):
    """Returns whether a condition is true ("Condition functions" in the user guide of CloudFormation)."""

    def text(value):
        if not isinstance(value, dict):
            return str(value)
        ((name, argument),) = value.items()
        if name == "Ref":
            return str(parameters[argument])
        assert name == "Fn::Join", name
        return text(argument[1])

    ((name, argument),) = condition.items()
    if name == "Condition":
        return is_true(template, parameters, template["Conditions"][argument])
    if name == "Fn::Equals":
        return text(argument[0]) == text(argument[1])
    results = [is_true(template, parameters, one) for one in argument]
    return {"Fn::And": all, "Fn::Or": any, "Fn::Not": lambda values: not values[0]}[name](results)


def main():
    template = json.loads(subprocess.run([sys.executable, ".ci/transform.py"], check=True, capture_output=True).stdout)
    present = {name: resource["Type"] for name, resource in template["Resources"].items()}
    stored = dict(line.split() for line in LIST.read_text(encoding="utf-8").splitlines()) if LIST.exists() else {}
    changed = [name for name, kind in stored.items() if present.get(name) != kind]
    if changed:
        sys.exit(f"these resources have another name or another type than before: {', '.join(changed)}")
    if "--update" in sys.argv[1:]:
        lines = [f"{name} {kind}\n" for name, kind in sorted(present.items())]
        LIST.write_text("".join(lines), encoding="utf-8")
    elif present.keys() - stored.keys():
        sys.exit(f"run .ci/stack_resources.py --update for: {', '.join(present.keys() - stored.keys())}")
    defaults = {name: parameter.get("Default", "") for name, parameter in template["Parameters"].items()}
    for description, given, expected in CORE:
        parameters = {**defaults, **given, "Parts": "core"}
        deployed = [
            name
            for name, resource in template["Resources"].items()
            if "Condition" not in resource or is_true(template, parameters, {"Condition": resource["Condition"]})
        ]
        assert len(deployed) == expected, f"core with {description}: {len(deployed)} resources, not {expected}: {deployed}"
    print(f"{len(present)} resources have their names and types; the core has {', '.join(str(one[2]) for one in CORE)}")


if __name__ == "__main__":
    main()
