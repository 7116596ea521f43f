"""aws:iam/rolePolicyAttachment:RolePolicyAttachment"""

from engine.sandbox.aws.deleting import delete
from engine.sandbox.aws.iam import NO_SUCH_ENTITY, pages
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.schema import Input
from engine.sandbox.aws.session import Region, has_code
from engine.sandbox.aws.waiting import patiently
from engine.sandbox.aws.wire import Properties, Value

PATIENCE_SECONDS = 2 * MINUTE_SECONDS


def says_wrong_arn(value: Value) -> str:
    return "" if str(value).startswith("arn:") else f"({value}) is an invalid ARN: arn: invalid prefix"


class RolePolicyAttachment(Resource):
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    noun = "IAM Role Policy Attachment"
    tagged = False
    regional = False
    deletes_before_replacing = True
    inputs = (
        Input("role", required=True, replaces=True),
        Input("policyArn", required=True, replaces=True, says_wrong=says_wrong_arn),
    )

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        role, policy = inputs["role"], inputs["policyArn"]
        patiently(
            aws.pace,
            PATIENCE_SECONDS,
            lambda error: has_code(error, "ConcurrentModification"),
            lambda: aws.iam("AttachRolePolicy", RoleName=role, PolicyArn=policy),
        )
        return f"{role}/{policy}"

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        role, policy = identity.split("/", 1)
        attached = pages(aws, "ListAttachedRolePolicies", "AttachedPolicies", RoleName=role)
        if not any(one["PolicyArn"] == policy for one in attached):
            return None
        return {"role": role, "policyArn": policy}

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(
            aws,
            "DetachRolePolicy",
            NO_SUCH_ENTITY,
            PATIENCE_SECONDS,
            while_in_use=("ConcurrentModification",),
            service="iam",
            RoleName=known["role"],
            PolicyArn=known["policyArn"],
        )
