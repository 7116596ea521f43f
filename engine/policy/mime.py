"""MIME multipart user data, as cloud-init and nodeadm read it: parts in order, the same bytes for the same parts."""

from __future__ import annotations

import email
import hashlib
from collections.abc import Iterator, Sequence
from email.errors import MessageError
from email.message import Message

from attrs import frozen

SHELL = "text/x-shellscript"
NODE_CONFIG = "application/node.eks.aws"
_CLOUD_CONFIG = "text/cloud-config"


class MalformedUserData(ValueError):
    """User data says that it is MIME and is not."""


@frozen
class MimePart:
    """``content_type`` with its parameters, as it was written."""

    content_type: str
    content: str


def parts_of(user_data: str) -> tuple[MimePart, ...]:
    """What a person wrote, as parts: MIME multipart, a nodeadm NodeConfig, a cloud-config or a script.

    Raises MalformedUserData.
    """
    if not user_data.strip():
        return ()
    if _is_mime(user_data):
        return tuple(_parts_of_mime(user_data))
    if user_data.lstrip().startswith("#cloud-config"):
        return (MimePart(_CLOUD_CONFIG, user_data),)
    if _is_node_config(user_data):
        return (MimePart(NODE_CONFIG, user_data),)
    return (MimePart(SHELL, user_data),)


def _is_mime(user_data: str) -> bool:
    first = user_data.lstrip().partition("\n")[0].lower()
    return first.startswith(("mime-version:", "content-type: multipart"))


def _is_node_config(user_data: str) -> bool:
    lines = [line.strip() for line in user_data.splitlines()]
    return "kind: NodeConfig" in lines and any(line.startswith("apiVersion: node.eks.aws/") for line in lines)


def _parts_of_mime(user_data: str) -> Iterator[MimePart]:
    try:
        message: Message = email.message_from_bytes(user_data.lstrip().encode())
    except MessageError as error:
        raise MalformedUserData(str(error)) from None
    if not message.is_multipart() or message.defects:
        raise MalformedUserData("its boundary opens no part, or the last part is not closed")
    for part in message.walk():
        if part.is_multipart():
            continue
        content = part.get_payload(decode=True)
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
        yield MimePart(part.get("Content-Type", "text/plain").replace("\n", " "), text)


def multipart(parts: Sequence[MimePart]) -> str:
    """The parts as one document. The boundary is of their content, so that no part can hold it by chance."""
    content = "\n".join(f"{part.content_type}\n{part.content}" for part in parts)
    boundary = f"=={hashlib.sha256(content.encode()).hexdigest()[:24]}=="
    lines = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', ""]
    for part in parts:
        content_type = part.content_type if "charset" in part.content_type else f'{part.content_type}; charset="utf-8"'
        lines += [f"--{boundary}", f"Content-Type: {content_type}", "", part.content.rstrip("\n"), ""]
    return "\n".join([*lines, f"--{boundary}--", ""])
