"""Prints template.yaml as CloudFormation sees it, after the SAM transform.

    python .ci/transform.py > transformed.json
"""

import json
import pathlib

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class ManagedPolicies:
    """The managed policies that the transform attaches to the roles of functions."""

    def load(self):
        folder = "arn:aws:iam::aws:policy/service-role"
        names = ["AWSLambdaBasicExecutionRole", "AWSLambdaVPCAccessExecutionRole"]
        return {name: f"{folder}/{name}" for name in names}


template = yaml_parse(pathlib.Path("template.yaml").read_text(encoding="utf-8"))
for resource in template["Resources"].values():
    # Local files are uploaded before the transform.
    for name in ("CodeUri", "DefinitionUri"):
        if name in resource.get("Properties", {}):
            resource["Properties"][name] = "s3://bucket/key"
print(json.dumps(transform(template, {}, ManagedPolicies()), indent=1))
