"""One set of client settings for two clients, and no secret in any log."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.kafka_settings import REDACTED, for_librdkafka, for_spark, redact
from twin.errors import UsageError

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="twin" password="a\\"b;c";'


def test_plain_settings_pass_to_both() -> None:
    settings = {"bootstrap.servers": "localhost:9092", "security.protocol": "SSL", "client.id": "twin"}
    assert for_spark(settings) == {f"kafka.{key}": value for key, value in settings.items()}
    assert for_librdkafka(settings) == settings


def test_settings_of_reading_and_writing_are_not_for_the_administrators_client() -> None:
    assert for_librdkafka(
        {"bootstrap.servers": "b:1", "max.partition.fetch.bytes": "1", "compression.type": "zstd"}
    ) == {"bootstrap.servers": "b:1"}


def test_a_jaas_login_becomes_user_and_password_for_librdkafka() -> None:
    settings = for_librdkafka({"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS})
    assert settings == {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "twin", "sasl.password": 'a"b;c'}


def test_a_user_and_password_become_a_jaas_login_for_spark() -> None:
    given = {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "twin", "sasl.password": 'a"b;c'}
    assert for_spark(given) == {"kafka.sasl.mechanism": "SCRAM-SHA-256", "kafka.sasl.jaas.config": JAAS}


def test_a_user_without_a_mechanism_is_refused() -> None:
    with pytest.raises(UsageError, match=r"sasl\.mechanism"):
        for_spark({"sasl.username": "twin", "sasl.password": "secret"})


def test_a_password_in_a_file_is_read_for_librdkafka(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"# logins\njaas = {JAAS}\n")
    reference = f"${{file:{secrets}:jaas}}"
    assert for_librdkafka({"sasl.jaas.config": reference, "config.providers": "file"})["sasl.username"] == "twin"
    with pytest.raises(UsageError, match="no line other"):
        for_librdkafka({"sasl.jaas.config": f"${{file:{secrets}:other}}"})
    with pytest.raises(UsageError, match="readable properties file"):
        for_librdkafka({"sasl.jaas.config": f"${{file:{tmp_path}/none:jaas}}"})


def test_pem_stores_are_translated_both_ways() -> None:
    java = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}
    assert for_librdkafka(java) == {"ssl.ca.location": "/ca.pem"}
    assert for_spark({"ssl.ca.location": "/ca.pem"}) == {f"kafka.{key}": value for key, value in java.items()}
    key = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/key.pem", "ssl.key.password": "x"}
    assert for_librdkafka(key) == {
        "ssl.certificate.location": "/key.pem",
        "ssl.key.location": "/key.pem",
        "ssl.key.password": "x",
    }


def test_a_store_that_is_not_pem_is_refused() -> None:
    with pytest.raises(UsageError, match="PEM"):
        for_librdkafka({"ssl.truststore.location": "/store.jks"})


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "kafka.sasl.jaas.config",
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.truststore.certificates.password",
        "sasl.oauthbearer.client.secret",
    ],
)
def test_secrets_are_never_shown(name: str) -> None:
    assert redact({name: "hush", "bootstrap.servers": "b:1"}) == {name: REDACTED, "bootstrap.servers": "b:1"}
