"""Checks the resources of the stack after the transform of AWS SAM.

    python .ci/stack_resources.py             # checks them
    python .ci/stack_resources.py --update    # adds new resources to the list
    python .ci/stack_resources.py --core FILE # also writes the template of a stack with only the core, without its conditions

No resource of an earlier version may get another name or another type, because CloudFormation would replace it: a table
would be empty. The list is local/dueday/tests/commands/stack_resources.txt. A stack with Parts=core must stay small. Services may
assume the roles only for the AWS account of the stack.
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

# The managed policies that roles may have. Both open no data: the first allows writing to the logs, the second creating network
# interfaces in the VPC of a private gateway.
MANAGED_POLICIES = ["AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole"]

# Optional parameters that the security rules demand.
OPTIONS = {
    "KmsKey": "arn:aws:kms:eu-west-1:123456789012:key/1",
    "VpcSubnets": "subnet-1",
    "VpcSecurityGroups": "sg-1",
    "ReservedConcurrency": 10,
}


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


def without_conditions(template, parameters, value):
    """Returns `value` with the chosen branch of each Fn::If; None for AWS::NoValue."""
    if isinstance(value, dict):
        if list(value) == ["Fn::If"]:
            condition, yes, no = value["Fn::If"]
            chosen = yes if is_true(template, parameters, {"Condition": condition}) else no
            return without_conditions(template, parameters, chosen)
        if value == {"Ref": "AWS::NoValue"}:
            return None
        fields = {name: without_conditions(template, parameters, field) for name, field in value.items()}
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, list):
        return [one for one in (without_conditions(template, parameters, one) for one in value) if one is not None]
    return value


def core_template(template, parameters, deployed):
    """Returns the template of the stack with the resources `deployed`, without conditions."""
    resources = {name: resource for name, resource in template["Resources"].items() if name in deployed}
    outputs = {
        name: output
        for name, output in template["Outputs"].items()
        if "Condition" not in output or is_true(template, parameters, {"Condition": output["Condition"]})
    }
    given = {
        name: {**parameter, "Default": OPTIONS[name]} if name in OPTIONS else parameter
        for name, parameter in template["Parameters"].items()
    }
    kept = {"AWSTemplateFormatVersion": "2010-09-09", "Parameters": given}
    for section, entries in (("Resources", resources), ("Outputs", outputs)):
        kept[section] = without_conditions(template, parameters, entries)
        for entry in kept[section].values():
            entry.pop("Condition", None)
    return kept


def check_roles(template):
    """Checks who may assume the roles, and which managed policies they have. AWS SAM creates some of the roles."""
    for name, role in template["Resources"].items():
        if role["Type"] != "AWS::IAM::Role":
            continue
        further = [arn for arn in role["Properties"].get("ManagedPolicyArns", []) if arn.split("/")[-1] not in MANAGED_POLICIES]
        if further:
            sys.exit(f"{name} has managed policies that are not in the list: {', '.join(further)}")
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]:
            services = statement["Principal"]["Service"]
            # Lambda accepts only roles of the account of the function.
            if services in ("lambda.amazonaws.com", ["lambda.amazonaws.com"]):
                continue
            keys = statement.get("Condition", {}).get("StringEquals", {})
            if {"Ref": "AWS::AccountId"} not in [keys.get("aws:SourceAccount"), keys.get("sts:ExternalId")]:
                sys.exit(f"{services} may assume {name} for other AWS accounts: add a condition with aws:SourceAccount")


def main():
    template = json.loads(subprocess.run([sys.executable, ".ci/transform.py"], check=True, capture_output=True).stdout)
    present = {name: resource["Type"] for name, resource in template["Resources"].items()}
    stored = dict(line.split() for line in LIST.read_text(encoding="utf-8").splitlines()) if LIST.exists() else {}
    changed = [name for name, kind in stored.items() if present.get(name) != kind]
    if changed:
        sys.exit(f"these resources have another name or another type than before: {', '.join(changed)}")
    check_roles(template)
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
        if sys.argv[1:2] == ["--core"] and "StripeWebhookSecret" in given:
            core = json.dumps(core_template(template, {**parameters, **OPTIONS}, deployed), indent=1)
            pathlib.Path(sys.argv[2]).write_text(core, encoding="utf-8")
        assert len(deployed) == expected, f"core with {description}: {len(deployed)} resources, not {expected}: {deployed}"
    print(f"{len(present)} resources have their names and types; the core has {', '.join(str(one[2]) for one in CORE)}")


if __name__ == "__main__":
    main()
