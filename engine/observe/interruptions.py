"""The SQS queue that EventBridge's rules send AWS's interruption messages to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from attrs import frozen

from engine.model.interruption import Interruption
from engine.observe.aws_client import aws_client, is_loopback, told_as_observation
from engine.observe.failure import ObservationFailed
from engine.observe.interruption_messages import read_message
from engine.observe.json_fields import BrokenObject

# Whoever else reads the queue does not see a message for this long once we have; then it comes again.
HIDDEN_SECONDS = 30
# SQS's own limits: messages in one answer, and seconds that it waits for one.
_A_CALL = 10
_LONGEST_WAIT = 20
_MOST_CALLS = 50

IsMaking = Callable[[], bool]


@frozen
class Message:
    """One message: ``id`` is its own, ``receipt`` lets it be deleted. ``problem`` says why nobody can read it."""

    id: str
    receipt: str
    interruptions: tuple[Interruption, ...] = ()
    problem: str = ""


class InterruptionQueue:
    """A queue by its name or URL. A message comes at least once, until it is deleted."""

    def __init__(
        self,
        endpoint_url: str | None,
        region: str,
        queue: str,
        sleep: Callable[[float], None] = time.sleep,
        is_making: IsMaking | None = None,
    ) -> None:
        """``is_making`` is for a queue that the environment makes: whether it is on the way yet, so that there may be
        none, and no message either."""
        self._endpoint_url, self._region, self.name, self._sleep = endpoint_url, region, queue, sleep
        self._is_making = is_making
        self._client: Any = None
        self._url = queue if queue.startswith(("https://", "http://")) else ""

    def receive(self, wait_seconds: int = 0) -> tuple[Message, ...]:
        """All that is there, in the order of their ids; where nothing is, what comes within ``wait_seconds``.

        Raises ObservationFailed.
        """
        found: dict[str, Message] = {}
        wait_seconds = min(wait_seconds, _LONGEST_WAIT)
        with self._asking():
            try:
                for answer in self._answers(wait_seconds):
                    found |= {raw["MessageId"]: _message(raw) for raw in answer}
            except self._sqs.exceptions.QueueDoesNotExist:
                if self._is_making is None:
                    raise
                self._refuse_a_loss(self._is_making)
                # It may be long in coming, and is asked for no more often than one that is there.
                self._sleep(wait_seconds)
        return tuple(found[each] for each in sorted(found))

    def _refuse_a_loss(self, is_making: IsMaking) -> None:
        if not is_making():
            raise ObservationFailed(
                f"the environment's queue {self.name} is there no more: nobody hears of interruptions",
                "`pulumi refresh` (see `nodewright env`) finds what is gone, and `nodewright up` makes it anew",
            )

    def delete(self, messages: Iterable[Message]) -> None:
        """Each of them, for good. One that is gone already, or whose receipt is too old, is passed over: if it is still
        there it comes again. Raises ObservationFailed."""
        entries = [{"Id": str(number), "ReceiptHandle": each.receipt} for number, each in enumerate(messages)]
        with self._asking():
            for start in range(0, len(entries), _A_CALL):
                self._sqs.delete_message_batch(QueueUrl=self._queue_url(), Entries=entries[start : start + _A_CALL])

    def _answers(self, wait_seconds: int) -> Iterable[list[Any]]:
        for _ in range(_MOST_CALLS):
            answer = self._ask(wait_seconds)
            if not answer:
                return
            wait_seconds = 0
            yield answer

    def _ask(self, wait_seconds: int) -> list[Any]:
        if not is_loopback(self._endpoint_url):
            return self._ask_once(wait_seconds)
        # An emulator that waits answers nobody else meanwhile.
        for _ in range(wait_seconds):
            if answer := self._ask_once(0):
                return answer
            self._sleep(1)
        return self._ask_once(0)

    def _ask_once(self, wait_seconds: int) -> list[Any]:
        answer = self._sqs.receive_message(
            QueueUrl=self._queue_url(),
            MaxNumberOfMessages=_A_CALL,
            WaitTimeSeconds=wait_seconds,
            VisibilityTimeout=HIDDEN_SECONDS,
        )
        return list(answer.get("Messages", []))

    def _queue_url(self) -> str:
        if not self._url:
            self._url = self._sqs.get_queue_url(QueueName=self.name)["QueueUrl"]
        return self._url

    def _asking(self) -> AbstractContextManager[None]:
        return told_as_observation("sqs", self._endpoint_url, self._region, f"the messages of queue {self.name}")

    @property
    def _sqs(self) -> Any:
        if self._client is None:
            self._client = aws_client("sqs", self._endpoint_url, self._region, read_seconds=_LONGEST_WAIT + 10)
        return self._client


def _message(raw: Any) -> Message:
    receipt = raw["ReceiptHandle"]
    try:
        return Message(raw["MessageId"], receipt, read_message(raw.get("Body", "")))
    except BrokenObject as broken:
        return Message(raw["MessageId"], receipt, problem=str(broken))
