"""Separation of the four packages, and versions that must agree."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from packaging.version import Version

from deploy.cli import _new_app
from deploy.console.server import Listen, read_token
from deploy.metrics.catalogue import CATALOGUE
from deploy.options.common import parse_address
from streams.kafka.settings import read_kafka_file
from tests.support.compose import compose_services
from tests.support.profile import CPU_LIMIT_S
from twin.base.errors import UsageError
from twin.stores.headers import STATE_FORMAT

ROOT = Path(__file__).resolve().parents[1]
# Format of state -> the first version that writes it; a row is added, never changed.
STATE_FORMATS = {"10.3": "0.1.0", "11.4": "0.2.0"}


def imported_by(statement: str) -> set[str]:
    """Return the top-level modules that a new Python process has loaded after a statement."""
    program = f"{statement}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def jar_versions(name: str) -> dict[str, str]:
    jars = tomllib.loads((ROOT / "deploy" / "java" / "jars.lock.toml").read_text(encoding="utf-8"))[name]
    return {artifact: version for _group, artifact, version in (coordinate.split(":") for coordinate in jars)}


def test_a_test_of_the_day_has_a_limit_that_contributors_and_the_marker_know():
    """Nothing is timed here: each run of `make test` names the tests that exceed it."""
    limit = {4.0: "four seconds of CPU"}[CPU_LIMIT_S]
    assert f"at most {limit}" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["markers"]
    assert any(marker.startswith("nightly: ") and f"more than {limit}" in marker for marker in markers)


@pytest.mark.parametrize(
    "module",
    [
        "twin",
        "twin.stores.open",
        "twin.playback.replays",
        "twin.estate",
        "twin.events",
        "twin.testing",
        "twin.testing.pytest_plugin",
    ],
)
def test_a_planner_needs_neither_spark_nor_kafka(module):
    assert not imported_by(f"import {module}") & {"pyspark", "py4j", "confluent_kafka", "kafka"}


def test_the_pins_name_versions_and_no_addresses():
    assert len(pins()) > 50
    assert all(
        re.fullmatch(r"[A-Za-z0-9._-]+==(\d+!)?[A-Za-z0-9._]+", f"{name}=={pin}") for name, pin in pins().items()
    )


def test_a_state_format_has_a_version_of_its_own():
    """A refused checkpoint names the version to install for it, so two formats are never of one version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    firsts = [Version(version) for version in STATE_FORMATS.values()]
    assert firsts == sorted(set(firsts)), "a format needs a higher version than that of the format before"
    assert list(STATE_FORMATS)[-1] == STATE_FORMAT, "add its row, with a version that no release has had"
    assert firsts[-1] <= Version(project["version"]), "raise the version in pyproject.toml"


def test_spark_and_its_connector_are_of_one_minor_version():
    """A connector is published later than its Spark, and one of an earlier patch release works with it."""
    connector = jar_versions("spark-connector")["spark-sql-kafka-0-10_2.13"].split(".")
    assert connector[:2] == pins()["pyspark"].split(".")[:2]


def test_the_container_runs_the_broker_that_the_tests_run(services):
    version = services["kafka"]["image"].partition(":")[2].partition("@")[0]
    assert version == jar_versions("kafka-broker")["kafka_2.13"]


def test_compose_file_keeps_the_compose_specification():
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        "docker-compose.yml",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_compose_file_mounts_is_there(services):
    mounts = [volume for service in services.values() for volume in service.get("volumes", [])]
    mounted = [source for source in (volume.partition(":")[0] for volume in mounts) if source.startswith("./")]
    assert len(mounted) >= 5
    assert not [source for source in mounted if not (ROOT / source).exists()]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return compose_services()


@pytest.fixture(scope="module")
def own(services: dict[str, Any]) -> dict[str, Any]:
    return {name: service for name, service in services.items() if service["image"] == "mqtwin"}


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (ROOT / "deploy" / "images" / "Dockerfile").read_text(encoding="utf-8")


def test_the_commands_of_the_compose_file_are_read_by_the_command_line(own):
    assert set(own) == {"job", "exporter", "bridge", "console"}
    for service in own.values():
        here = [word.replace("/kafka/", f"{ROOT}/deploy/images/") for word in service["command"]]
        _, bound, _ = _new_app().parse_args(here, exit_on_error=False, print_error=False)
        assert bound.arguments["kafka"].bootstrap_servers == "kafka:9092"


def test_the_job_runs_without_a_profile_and_each_other_service_with_one_of_its_own(services):
    profiles = {name: service.get("profiles") for name, service in services.items()}
    assert profiles == {
        "kafka": ["broker"],
        "job": None,
        "exporter": ["prometheus", "grafana"],
        "bridge": ["alerts"],
        "console": ["console"],
        "prometheus": ["prometheus", "grafana"],
        "alertmanager": ["alerts"],
        "grafana": ["grafana"],
    }
    assert services["job"]["depends_on"]["kafka"]["required"] is False, "or the job would need the profile broker"


def test_each_service_of_the_compose_file_has_limits_of_memory_and_log_and_starts_again(services):
    for service in services.values():
        assert "mem_limit" in service
        assert service["logging"] == {"driver": "json-file", "options": {"max-size": "10m", "max-file": "5"}}
        assert service["restart"] == "unless-stopped"


def test_no_service_of_the_compose_file_gains_privileges_or_is_in_the_network_of_this_machine(services):
    for service in services.values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not service.keys() & {"network_mode", "privileged", "pid", "cap_add"}
    assert [name for name, service in services.items() if not service.get("read_only")] == ["kafka"]


def test_nobody_looks_at_grafana_of_the_compose_file_without_login(services):
    assert services["grafana"]["environment"]["GF_AUTH_ANONYMOUS_ENABLED"] == "false"


def test_own_services_of_the_compose_file_take_the_kafka_file_that_a_variable_names(own):
    for service in own.values():
        assert "./deploy/images/client.properties:/kafka/client.properties:ro" in service["volumes"]
        assert "--kafka-file=/kafka/client.properties" in service["command"]
    assert read_kafka_file(ROOT / "deploy" / "images" / "client.properties") == {}


def test_own_services_of_the_compose_file_with_health_are_checked(own, dockerfile):
    assert {name for name, service in own.items() if "healthcheck" in service} == {"exporter", "console"}
    [status_file] = [part for part in own["job"]["command"] if part.startswith("--status-file=")]
    health = dockerfile.partition("HEALTHCHECK")[2].partition("ENTRYPOINT")[0]
    assert f"find {status_file.partition('=')[2]} -mmin" in health, "the image's health is the job's"


def test_own_services_of_the_compose_file_write_to_volumes_only(own):
    for service in own.values():
        assert service["read_only"] is True
        mounts = [volume.split(":")[1] for volume in service.get("volumes", [])]
        assert "/tmp" in [*mounts, *service.get("tmpfs", [])]


def test_the_console_of_the_compose_file_asks_for_a_token_and_is_reached_by_this_machine_only(services, tmp_path):
    console = services["console"]
    here = [word.replace("/kafka/", f"{ROOT}/deploy/images/") for word in console["command"]]
    _, bound, _ = _new_app().parse_args(here, exit_on_error=False, print_error=False)
    host, port = parse_address(bound.arguments["listen"])
    assert console["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f":{port}/healthz" in console["healthcheck"]["test"][-1]
    served = bound.arguments["served"]
    assert f"/dev/null:{served.token_file}:ro" in console["volumes"], "who names no token has no console"
    token = tmp_path / "token"
    token.write_text("0123456789abcdef", encoding="utf-8")
    token.chmod(0o600)
    behind_proxy = served.behind_proxy
    assert "localhost" in Listen(host=host, port=port, token=read_token(token), behind_proxy=behind_proxy).hosts
    for other in (Path("/dev/null"), tmp_path):
        with pytest.raises(UsageError):
            read_token(other)


@pytest.fixture(scope="module")
def kubernetes() -> list[dict[str, Any]]:
    text = (ROOT / "deploy" / "kubernetes" / "mqtwin.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """The defaults of the settings that the manifest reads."""
    text = (ROOT / "deploy" / "kubernetes" / "kustomization.yaml").read_text(encoding="utf-8")
    [generator] = yaml.safe_load(text)["configMapGenerator"]
    return dict(literal.split("=", 1) for literal in generator["literals"])


COMPONENTS = ("bridge", "collector", "console", "monitoring", "stores")
CRDS = ROOT / "tests" / "support" / "crds"  # schemas of the Prometheus operator and of KEDA


def resources_of(component: str) -> list[dict[str, Any]]:
    folder = ROOT / "deploy" / "kubernetes" / component
    component_file = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert component_file["kind"] == "Component"
    texts = [(folder / name).read_text(encoding="utf-8") for name in component_file["resources"]]
    return [resource for text in texts for resource in yaml.safe_load_all(text)]


def validate(resource: dict[str, Any]) -> None:
    """Raise where a resource is not one of its schema."""
    if resource["apiVersion"] in ("monitoring.coreos.com/v1", "keda.sh/v1alpha1"):
        schema = json.loads((CRDS / f"{resource['kind']}.json").read_text(encoding="utf-8"))
        jsonschema.validate(resource["spec"], schema)
    else:
        kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def pod_of(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the template of a pod; none of what runs none."""
    template: dict[str, Any] = resource.get("spec", {}).get("template", {})
    return template


def test_the_kubernetes_manifest_keeps_the_schemas_of_kubernetes(kubernetes):
    assert [resource["kind"] for resource in kubernetes] == [
        *("Service", "StatefulSet", "PodDisruptionBudget", "NetworkPolicy"),
    ]
    for resource in kubernetes:
        validate(resource)


@pytest.mark.parametrize(
    ("component", "kinds"),
    [
        ("bridge", "Deployment PodDisruptionBudget NetworkPolicy"),
        ("collector", "StatefulSet PodDisruptionBudget NetworkPolicy"),
        ("console", "Service Deployment PodDisruptionBudget NetworkPolicy"),
        ("monitoring", "ServiceMonitor PrometheusRule"),
        ("stores", "PrometheusRule"),
    ],
)
def test_each_component_keeps_the_schemas(component, kinds):
    resources = resources_of(component)
    assert [resource["kind"] for resource in resources] == kinds.split()
    for resource in resources:
        validate(resource)
    for pod in map(pod_of, resources):
        for container in pod.get("spec", {}).get("containers", []):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
    assert {path.name for path in (ROOT / "deploy" / "kubernetes").iterdir() if path.is_dir()} == set(COMPONENTS)


def test_the_example_for_keda_keeps_its_schema_and_asks_what_promtool_has_answered():
    example = yaml.safe_load((ROOT / "deploy" / "kubernetes" / "keda.yaml").read_text(encoding="utf-8"))
    validate(example)
    with pytest.raises(jsonschema.ValidationError):
        validate(example | {"spec": example["spec"] | {"maxReplicas": 12}})
    [trigger] = example["spec"]["triggers"]
    metadata = trigger["metadata"]
    assert {"serverAddress", "query", "threshold"} == metadata.keys()  # as its scaler for Prometheus needs them
    tests = yaml.safe_load((ROOT / "deploy" / "prometheus" / "mqtwin.test.yml").read_text(encoding="utf-8"))["tests"]
    asked = [check["expr"] for test in tests for check in test.get("promql_expr_test", ())]
    assert metadata["query"] in asked
    assert set(re.findall(r"mqtwin_\w+", metadata["query"])) <= set(CATALOGUE)


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
def test_the_schemas_of_the_prometheus_operator_refuse_what_they_do_not_know(kind):
    [resource] = [own for own in resources_of("monitoring") if own["kind"] == kind]
    for spec in (
        {"endpoints": [{"prt": "metrics"}], "selector": {}},
        {"groups": [{"name": "a", "rules": [{"alrt": 1}]}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validate(resource | {"spec": spec})


def test_the_commands_of_the_kubernetes_manifests_are_read_by_the_command_line(kubernetes, settings, tmp_path):
    (tmp_path / "client.properties").write_text("", encoding="utf-8")
    pods = [pod_of(own)["spec"] for name in COMPONENTS for own in resources_of(name) if pod_of(own)]
    commands = []
    for pod in (kubernetes[1]["spec"]["template"]["spec"], *pods):
        for container in pod["containers"]:
            here = [argument.replace("/kafka/", f"{tmp_path}/") for argument in container["args"]]
            here = [re.sub(r"\$\((\w+)\)", lambda name: settings[name[1]], argument) for argument in here]
            _, bound, _ = _new_app().parse_args(here, exit_on_error=False, print_error=False)
            mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
            values = [argument.partition("=")[2] for argument in container["args"]]
            paths = [value for value in values if value[:1] == "/"]
            assert paths
            assert all(any(Path(path).is_relative_to(mount) for mount in mounts) for path in paths)
            assert bound.arguments["kafka"].bootstrap_servers == "kafka:9092"
            commands.append(here[0])
            if here[0] in ("stream", "export"):
                assert bound.arguments["status_file"] == Path("/state/status.json")
    assert commands == ["stream", "export", "bridge", "collect", "console"]


def test_the_console_of_the_cluster_takes_its_token_as_a_file_of_its_user_alone():
    """A file of a Secret is readable by the group of the pod, which the console refuses."""
    [pod] = [pod_of(own)["spec"] for own in resources_of("console") if pod_of(own)]
    [first], [console] = pod["initContainers"], pod["containers"]
    script = first["command"][-1]
    assert script.startswith("umask 077 && cp /secret/")
    assert f"--token-file={script.split()[-1]}" in console["args"]
    [token] = [volume for volume in pod["volumes"] if volume["name"] == "token"]
    assert token["emptyDir"]["medium"] == "Memory"


def test_containers_of_the_kubernetes_manifest_have_probes_and_limits_and_write_to_volumes_only(kubernetes):
    for container in kubernetes[1]["spec"]["template"]["spec"]["containers"]:
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert security["allowPrivilegeEscalation"] is False
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]
        assert "livenessProbe" in container


def test_only_the_exporter_of_the_kubernetes_manifest_is_reached_and_scratch_has_a_limit(kubernetes):
    pod, policy = kubernetes[1]["spec"]["template"], kubernetes[3]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    [rule] = policy["ingress"]
    exporter = pod["spec"]["containers"][1]
    assert [port["port"] for port in rule["ports"]] == [port["name"] for port in exporter["ports"]] == ["metrics"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    assert all("sizeLimit" in volume["emptyDir"] for volume in pod["spec"]["volumes"] if "emptyDir" in volume)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which has kustomize, is not installed")
def test_the_kustomization_of_the_documentation_makes_what_a_site_applies(tmp_path):
    page = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    example = page.partition('```yaml title="my-site/kustomization.yaml"\n')[2].partition("```")[0]
    (tmp_path / "kustomization.yaml").write_text(example, encoding="utf-8")
    for name in ("estate.toml", "cfrm.txt", "qsg1.mqsc", "client.properties", "token", "password", "ca.pem"):
        (tmp_path / name).write_text("", encoding="utf-8")
    shutil.copytree(ROOT / "deploy" / "kubernetes", tmp_path / "base")
    rendered = subprocess.run(["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=False)
    assert rendered.returncode == 0, rendered.stderr
    resources = list(yaml.safe_load_all(rendered.stdout))
    for resource in resources:
        validate(resource)
        assert resource["metadata"]["namespace"] == "mqtwin"
    named = {(resource["kind"], resource["metadata"]["name"]): resource for resource in resources}
    pods = [pod_of(resource) for resource in resources if pod_of(resource)]
    assert len(pods) == 4
    for pod in pods:
        check_names(pod["spec"], named)
    for resource in resources:
        check_selectors(resource, pods, named)


def check_names(pod: dict[str, Any], named: dict[tuple[str, str], dict[str, Any]]) -> None:
    """Assert that what a pod names is there: settings, volumes, and the files of its arguments."""
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for container in pod["containers"]:
        assert container["image"] == "REGISTRY/mqtwin:VERSION"
        [settings] = container["envFrom"]
        known = named["ConfigMap", settings["configMapRef"]["name"]]["data"]
        assert known["MQTWIN_KAFKA"] == "broker1:9092,broker2:9092"
        assert set(re.findall(r"\$\((\w+)\)", " ".join(container["args"]))) <= known.keys()
        for mount in container["volumeMounts"]:
            volume = volumes.get(mount["name"], {})  # of a claim there is none
            if "secret" in volume:
                files = named["Secret", volume["secret"]["secretName"]]["data"]
            elif "configMap" in volume:
                files = named["ConfigMap", volume["configMap"]["name"]]["data"]
            else:
                continue
            own = [word.partition("=")[2] for word in container["args"] if f"={mount['mountPath']}/" in word]
            assert own
            assert {Path(path).name for path in own} <= files.keys()


def check_selectors(
    resource: dict[str, Any], pods: list[dict[str, Any]], named: dict[tuple[str, str], dict[str, Any]]
) -> None:
    """Assert that what selects pods, or a Service, selects one, and that the ports that it names are there."""
    spec, kind = resource.get("spec", {}), resource["kind"]
    if kind == "ServiceMonitor":
        services = [own for (kind, _), own in named.items() if kind == "Service"]
        labels = spec["selector"]["matchLabels"]
        [service] = [own for own in services if labels.items() <= own["metadata"]["labels"].items()]
        assert {own["port"] for own in spec["endpoints"]} == {port["name"] for port in service["spec"]["ports"]}
        job = service["metadata"]["labels"][spec["jobLabel"]]
        rules = (ROOT / "deploy" / "prometheus" / "mqtwin-job.rules.yml").read_text(encoding="utf-8")
        assert f'up{{job="{job}"}}' in rules
        return
    selector = spec.get("podSelector") or spec.get("selector")
    if selector is None:
        return
    labels = selector.get("matchLabels", selector)
    [pod] = [own for own in pods if labels.items() <= own["metadata"]["labels"].items()]
    ports = {port["name"] for container in pod["spec"]["containers"] for port in container.get("ports", [])}
    asked = [port.get("targetPort", port["port"]) for port in spec.get("ports", [])]
    asked += [port["port"] for rule in spec.get("ingress", []) for port in rule["ports"]]
    assert set(asked) <= ports


def test_the_kubernetes_manifest_runs_one_job_as_the_user_of_the_image(kubernetes, dockerfile):
    user = kubernetes[1]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
    assert f"--uid {user}" in dockerfile
    assert kubernetes[1]["spec"]["replicas"] == 1


def test_only_this_machine_reaches_the_ports_of_the_compose_file(services):
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert not [port for port in ports if not port.startswith("127.0.0.1:")]


def test_prometheus_of_the_compose_file_finds_its_targets(services):
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    jobs = [*config["scrape_configs"], *config["alerting"]["alertmanagers"]]
    targets = {target for job in jobs for static in job["static_configs"] for target in static["targets"]}
    assert targets == {"exporter:9746", "alertmanager:9093"}
    assert {target.partition(":")[0] for target in targets} <= set(services)
    assert "--listen=0.0.0.0:9746" in services["exporter"]["command"]
    assert "--url=http://alertmanager:9093" in services["bridge"]["command"]


def test_the_image_is_built_of_what_is_there(dockerfile):
    copied = [part for line in dockerfile.splitlines() if line[:5] == "COPY " for part in line.split()[1:-1]]
    copied = [source for source in copied if source != "--from=environment" and not source.startswith("/")]
    assert copied
    assert not [source for source in copied if not (ROOT / source).exists()]
    ignored = (ROOT / "deploy" / "images" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied)


def test_the_image_runs_as_a_user_by_number_on_a_python_of_one_version(dockerfile):
    assert re.findall("^USER (.+)$", dockerfile, re.MULTILINE) == ["10001"]
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert re.fullmatch(r"python:3\.1[123]\.\d+-slim-\w+(@sha256:\w{64})?", bases[0])
    assert set(bases[1:]) == {"base"}
