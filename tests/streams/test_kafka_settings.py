"""Client settings for both clients, without secrets in logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.kafka.clients import LastError, new_consumer
from streams.kafka.settings import (
    FOR_JAVA,
    REDACTED,
    for_librdkafka,
    for_spark,
    foreign_settings,
    read_kafka_file,
    redact,
)
from twin.base.errors import UsageError

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="twin" password="a\\"b;c";'


def test_plain_settings_pass_to_both() -> None:
    settings = {"bootstrap.servers": "localhost:9092", "security.protocol": "SSL", "client.id": "twin"}
    assert for_spark(settings) == {f"kafka.{key}": value for key, value in settings.items()}
    assert for_librdkafka(settings) == settings


def test_settings_of_consumers_and_producers_are_not_for_the_admin_client() -> None:
    assert for_librdkafka(
        {"bootstrap.servers": "b:1", "max.partition.fetch.bytes": "1", "compression.type": "zstd"}
    ) == {"bootstrap.servers": "b:1"}


def test_a_jaas_login_becomes_user_and_password_for_librdkafka() -> None:
    settings = for_librdkafka({"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": JAAS})
    assert settings == {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "twin", "sasl.password": 'a"b;c'}


def test_a_user_and_password_become_a_jaas_login_for_spark() -> None:
    settings = {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "twin", "sasl.password": 'a"b;c'}
    assert for_spark(settings) == {"kafka.sasl.mechanism": "SCRAM-SHA-256", "kafka.sasl.jaas.config": JAAS}


def test_a_user_without_a_mechanism_is_refused() -> None:
    with pytest.raises(UsageError, match=r"sasl\.mechanism"):
        for_spark({"sasl.username": "twin", "sasl.password": "secret"})


def test_a_password_in_a_file_is_read_for_librdkafka(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text(f"# logins\njaas = {JAAS}\n")
    reference = f"${{file:{secrets}:jaas}}"
    assert for_librdkafka({"sasl.jaas.config": reference, "config.providers": "file"})["sasl.username"] == "twin"
    with pytest.raises(UsageError, match=r"has no other; expected: a line for \$\{file:"):
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


@pytest.mark.parametrize(
    "name",
    [
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.config",
        "schema.registry.basic.auth.user.info",
        "delegation.token.secret.key",
        "ssl.key.pem",
    ],
)
def test_secrets_of_other_mechanisms_are_never_shown(name: str) -> None:
    assert redact({name: "hush"}) == {name: REDACTED}


@pytest.mark.parametrize(
    "name",
    ["sasl.mechanism", "ssl.truststore.location", "sasl.oauthbearer.token.endpoint.url", "ssl.key.location", "acks"],
)
def test_other_settings_are_shown(name: str) -> None:
    assert redact({name: "1"}) == {name: "1"}


class TestSecretsInAFile:
    def settings(self, path: Path, text: str) -> dict[str, str]:
        path.write_text(text, encoding="utf-8")
        return read_kafka_file(path)

    def test_the_secret_stays_in_the_file_for_spark(self, tmp_path: Path) -> None:
        path = tmp_path / "kafka.properties"
        settings = self.settings(
            path, "sasl.mechanism=SCRAM-SHA-512\nsasl.username=twin\nsasl.password=hush;={}\nssl.key.password=hush\n"
        )
        spark = for_spark(settings)
        assert "hush" not in str(settings) + str(spark)
        assert spark == {
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required "
                f'username="twin" password="${{mqtwin:{path}:sasl.password}}";'
            ),
            "kafka.ssl.key.password": f"${{mqtwin:{path}:ssl.key.password}}",
            "kafka.config.providers": "mqtwin",
            "kafka.config.providers.mqtwin.class": ("org.apache.kafka.common.config.provider.FileConfigProvider"),
            "kafka.config.providers.mqtwin.param.allowed.paths": str(path),
        }

    def test_the_secret_is_read_for_librdkafka(self, tmp_path: Path) -> None:
        settings = self.settings(tmp_path / "k", "sasl.mechanism=PLAIN\nsasl.username=twin\nsasl.password=hush;={}\n")
        assert for_librdkafka(settings) == {
            "sasl.mechanism": "PLAIN",
            "sasl.username": "twin",
            "sasl.password": "hush;={}",
        }

    def test_a_jaas_login_in_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "k"
        escaped = JAAS.replace("\\", "\\\\")  # a properties file unescapes backslashes
        settings = self.settings(path, f"kafka.sasl.jaas.config={escaped}\nsasl.mechanism=SCRAM-SHA-256\n")
        assert for_spark(settings)["kafka.sasl.jaas.config"] == f"${{mqtwin:{path}:kafka.sasl.jaas.config}}"
        assert for_librdkafka(settings)["sasl.password"] == 'a"b;c'

    def test_a_password_that_jaas_would_cut_is_refused_without_being_shown(self, tmp_path: Path) -> None:
        settings = self.settings(tmp_path / "k", 'sasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=hu"sh\n')
        with pytest.raises(UsageError, match=r"^--kafka-file: sasl\.password has a quotation mark") as error:
            for_spark(settings)
        assert 'hu"sh' not in str(error.value)

    def test_a_file_without_secrets_needs_no_provider(self, tmp_path: Path) -> None:
        assert self.settings(tmp_path / "k", "client.id=me\n") == {"client.id": "me"}

    def test_providers_of_the_user_stay(self, tmp_path: Path) -> None:
        settings = self.settings(tmp_path / "k", "config.providers=env\nsasl.password=hush\n")
        assert settings["config.providers"] == "env,mqtwin"

    def test_settings_of_other_clients_are_passed_over_with_their_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "client.properties"
        text = (
            "# Confluent Cloud\nclient.dns.lookup=use_all_dns_ips\nschema.registry.url=https://r\nacks=all\n"
            "basic.auth.user.info=KEY:SECRET\nmax.request.size=2000000\nauto.offset.reset=latest\n"
        )
        settings = self.settings(path, text)
        named = ["auto.offset.reset (line 7)", "basic.auth.user.info (line 5)", "max.request.size (line 6)"]
        assert sorted(foreign_settings(path)) == [*named, "schema.registry.url (line 3)"]
        assert {name for name in settings if not name.startswith(("config.", FOR_JAVA))} == {
            "client.dns.lookup",
            "acks",
        }
        spark = for_spark(settings)
        assert spark["kafka.max.request.size"] == "2000000"  # Kafka's own client has it, and warns of the others
        assert "kafka.auto.offset.reset" not in spark
        assert new_consumer({"bootstrap.servers": "localhost:9", **settings}, {}, LastError())

    def test_a_login_in_single_quotes(self, tmp_path: Path) -> None:
        jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username='KEY' password='a b';"
        settings = self.settings(tmp_path / "k", f"sasl.jaas.config={jaas}\nsasl.mechanism=PLAIN\n")
        rd = for_librdkafka(settings)
        assert (rd["sasl.username"], rd["sasl.password"]) == ("KEY", "a b")
