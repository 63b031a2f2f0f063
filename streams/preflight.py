"""Before the query starts: does every executor have what the query needs?

A failing import in the worker of a stateful operator kills the executor's whole JVM and hides its cause. So a tiny job goes
first: it imports the packages and loads the compiled kernels on every executor, and says in one line what is missing.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from streams.errors import one_line
from twin.errors import MqtwinError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 5  # Spark gives no job a task on every executor for certain: ask until all have answered
PACKAGES = ("pyarrow", "pandas", "numpy", "numba", "msgspec")


def check_executors(session: SparkSession) -> dict[str, str]:
    """Look at every executor; returns what each answered, by host and process id of its Python daemon.

    Raises:
        MqtwinError: an executor lacks something, or has other versions than the driver; the message is its cause.
    """
    context = session.sparkContext
    probe = _probe(_versions())
    answers: dict[str, str] = {}
    for _ in range(ROUNDS):
        executors = int(
            context._jsc.sc().getExecutorMemoryStatus().size()
        )  # the driver counts as one where it is not local
        wanted = max(1, executors - (0 if context.master.startswith("local[") or context.master == "local" else 1))
        tasks = max(context.defaultParallelism, wanted) * 2
        try:
            found = context.parallelize(range(tasks), tasks).mapPartitions(probe).collect()
        except Exception as error:  # whatever Spark raises: its cause is what counts
            raise MqtwinError(f"the executors cannot run Python: {one_line(error)}") from error
        for executor, problem in found:
            if problem:
                raise MqtwinError(f"executor {executor}: {problem}")
            answers[executor] = "ready"
        if len(answers) >= wanted:
            break
    return answers


def _versions() -> dict[str, str]:
    import importlib.metadata

    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}


def _probe(expected: dict[str, str]) -> Callable[[Iterable[int]], Iterator[tuple[str, str]]]:
    """The function that runs on executors. It is made here, inside a function, so that it travels as a whole: the executor may
    have no `streams` to import it from, which is one of the things to find out."""

    def probe(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        import os
        import socket

        # The parent of a worker is its executor's Python daemon: one an executor.
        yield f"{socket.gethostname()}/{os.getppid()}", examine(expected)

    def examine(expected: dict[str, str]) -> str:
        try:
            import importlib.metadata
            import platform as executor_platform

            if executor_platform.python_version_tuple()[:2] != tuple(expected["python"].split(".")[:2]):
                return f"Python {executor_platform.python_version()}; the driver has {expected['python']}: install the same"
            for name, version in expected.items():
                if name != "python" and importlib.metadata.version(name) != version:
                    return f"{name} {importlib.metadata.version(name)}; the driver has {version}: install the same"
            import google.protobuf  # noqa: F401 -- the stateful operator needs it, and dies without a word where it is missing

            import streams.decode_stage
            import streams.processor  # noqa: F401
            from twin.warm import warm

            warm()
        except ImportError as error:
            return f"{error}; install mqtwin there, as on the driver"
        except Exception as error:  # noqa: BLE001 -- it travels back to the driver, which raises it
            return f"{type(error).__name__}: {error}"
        return ""

    return probe
