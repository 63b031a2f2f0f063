"""A check of every executor before the query starts.

A failing import in the worker of a stateful operator kills the whole JVM of the executor and hides the cause. A tiny
job therefore runs first. It imports the packages and loads the compiled kernels on every executor, and reports on one
line what is missing.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from streams.errors import one_line
from streams.query.session import is_local
from twin.errors import MqtwinError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ROUNDS = 5  # Spark does not promise a task on every executor, so the probe is repeated until all have answered
PACKAGES = ("pyarrow", "pandas", "numpy", "numba", "msgspec")


def check_executors(session: SparkSession) -> dict[str, Path]:
    """Check every executor and return their local directories, by host and process id of the Python daemon.

    Raises:
        MqtwinError: an executor lacks something, or has other versions than the driver; the message has the cause.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    context = session.sparkContext
    probe = _make_probe(_versions())
    answers: dict[str, Path] = {}
    for _ in range(ROUNDS):
        executors = _count_executors(context)
        tasks = max(context.defaultParallelism, executors) * 2
        try:
            results = context.parallelize(range(tasks), tasks).mapPartitions(probe).collect()
        except (PySparkException, Py4JError) as error:
            raise MqtwinError(f"the executors cannot run Python: {one_line(error)}") from error
        for executor, local, problem in results:
            if problem:
                raise MqtwinError(f"executor {executor}: {problem}")
            answers[executor] = Path(local)
        if len(answers) >= executors:
            break
    return answers


def _count_executors(context: SparkContext) -> int:
    """Return the current number of executors, at least 1."""
    known = int(context._jsc.sc().getExecutorMemoryStatus().size())  # noqa: SLF001 -- PySpark has no name for it
    return max(1, known if is_local(context.master or "") else known - 1)  # a cluster counts the driver too


def _versions() -> dict[str, str]:
    import importlib.metadata

    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}


def _make_probe(expected: dict[str, str]) -> Callable[[Iterable[int]], Iterator[tuple[str, str, str]]]:
    """Return the function that runs on executors.

    It is defined inside a function so that it is pickled by value: whether an executor can import `streams` at all is
    part of the check.
    """

    def probe(_: Iterable[int]) -> Iterator[tuple[str, str, str]]:
        import os
        import socket

        # The parent of a worker is the Python daemon of its executor, which has one.
        executor, problem = f"{socket.gethostname()}/{os.getppid()}", examine(expected)
        yield executor, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0], problem

    def examine(expected: dict[str, str]) -> str:
        try:
            import importlib.metadata
            import platform as executor_platform

            if executor_platform.python_version_tuple()[:2] != tuple(expected["python"].split(".")[:2]):
                version = executor_platform.python_version()
                return f"Python {version}; the driver has {expected['python']}: install the same"
            for name, version in expected.items():
                if name != "python" and importlib.metadata.version(name) != version:
                    return f"{name} {importlib.metadata.version(name)}; the driver has {version}: install the same"
            import google.protobuf  # noqa: F401 -- without it the operator dies silently

            import streams.query.decode_stage
            import streams.query.processor  # noqa: F401
            from twin.warm import warm

            warm()
        except ImportError as error:
            return f"{error}; install mqtwin there, as on the driver"
        except Exception as error:  # noqa: BLE001 -- the driver raises it
            return f"{type(error).__name__}: {error}"
        return ""

    return probe
