"""Rights on Kafka's topics and groups: checked before the job starts, and named if one is missing.

A broker that has no authorizer, or cannot report rights (before Kafka 2.3), counts as one that allows everything.

Sources: Kafka documentation, "Authorization and ACLs" (READ and WRITE imply DESCRIBE); KIP-430.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from twin.errors import MqtwinError, UsageError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

READ, WRITE, CREATE = "READ", "WRITE", "CREATE"
TIMEOUT_SECONDS = 30.0
_REFUSED_TOPICS = re.compile(r"TopicAuthorizationException: .*?\[(?P<names>[^\]]*)\]")
_REFUSED_GROUP = re.compile(r"GroupAuthorizationException: .*?(?P<name>[\w.-]+)\s*$", re.MULTILINE)


def missing_right(operation: str, topic: str) -> UsageError:
    """Return the error that names the right on a topic that the user lacks."""
    return UsageError(
        f"topic {topic}: Kafka does not allow this user to {operation}; expected: an ACL that allows {operation} on "
        f"topic {topic}"
    )


def existing_topics(admin: AdminClient, required: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the topics among those required that exist, once the user's rights on them are checked.

    Args:
        admin: a client for topics.
        required: topic -> operations that the user needs there, READ or WRITE.

    Raises:
        UsageError: a right is missing.
        KafkaException: no broker answers.
    """
    from confluent_kafka import KafkaError, KafkaException, TopicCollection

    existing = set()
    futures = admin.describe_topics(
        TopicCollection(list(required)), include_authorized_operations=True, request_timeout=TIMEOUT_SECONDS
    )
    for topic, future in futures.items():
        try:
            allowed = future.result().authorized_operations
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:  # Kafka does not tell if the topic exists
                raise missing_right(required[topic][0], topic) from None
            raise
        existing.add(topic)
        allowed_names = {operation.name for operation in allowed or ()}
        for operation in required[topic]:
            if allowed_names and operation not in allowed_names:
                raise missing_right(operation, topic)
    return existing


def explain_refusal(failure: str, required: Mapping[str, Sequence[str]]) -> MqtwinError | None:
    """Return the error for a failure inside Spark that is a missing right; None for any other failure.

    Args:
        failure: Spark's message, with the exceptions of Kafka's Java client in it.
        required: topic -> operations that the job needs there.
    """
    topics = _REFUSED_TOPICS.search(failure)
    if topics is not None:
        rights = [
            f"{operation} on topic {name}"
            for name in sorted(name.strip() for name in topics["names"].split(","))
            for operation in required.get(name, ("DESCRIBE",))
        ]
        return MqtwinError(f"Kafka refuses the job a topic; expected: ACLs that allow {', '.join(rights)}")
    group = _REFUSED_GROUP.search(failure)
    if group is not None:
        return MqtwinError(f"Kafka refuses the job the group {group['name']}; expected: an ACL that allows READ on it")
    return None
