"""Before the query starts: does every executor have what the query needs?

A failing import in the worker of a stateful operator kills the executor's whole JVM and hides its cause. So a tiny job
goes first: it imports the packages and loads the compiled kernels on every executor, and says in one line what is
missing.
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

ROUNDS = 5  # Spark gives no job a task on every executor for certain: ask until all have answered
PACKAGES = ("pyarrow", "pandas", "numpy", "numba", "msgspec")


def check_executors(session: SparkSession) -> dict[str, Path]:
    """Look at every executor; returns their local directories by host and process id of the Python daemon.

    Raises:
        MqtwinError: an executor lacks something, or has other versions than the driver; the message is its cause.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    context = session.sparkContext
    probe = _probe(_versions())
    answers: dict[str, Path] = {}
    for _ in range(ROUNDS):
        wanted = _executors(context)
        tasks = max(context.defaultParallelism, wanted) * 2
        try:
            found = context.parallelize(range(tasks), tasks).mapPartitions(probe).collect()
        except (PySparkException, Py4JError) as error:
            raise MqtwinError(f"the executors cannot run Python: {one_line(error)}") from error
        for executor, local, problem in found:
            if problem:
                raise MqtwinError(f"executor {executor}: {problem}")
            answers[executor] = Path(local)
        if len(answers) >= wanted:
            break
    return answers


def _executors(context: SparkContext) -> int:
    """How many executors there are now; at least one."""
    known = int(context._jsc.sc().getExecutorMemoryStatus().size())  # noqa: SLF001 -- PySpark has no name for it
    return max(1, known if is_local(context.master or "") else known - 1)  # on a cluster the driver is among them


def _versions() -> dict[str, str]:
    import importlib.metadata

    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}


def _probe(expected: dict[str, str]) -> Callable[[Iterable[int]], Iterator[tuple[str, str, str]]]:
    """The function that runs on executors.

    It is made here, inside a function, so that it travels as a whole: the executor may have no `streams` to import it
    from, which is one of the things to find out.
    """

    def probe(_: Iterable[int]) -> Iterator[tuple[str, str, str]]:
        import os
        import socket

        # The parent of a worker is its executor's Python daemon: one an executor.
        executor, problem = f"{socket.gethostname()}/{os.getppid()}", examine(expected)
        yield executor, os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0], problem

    def examine(expected: dict[str, str]) -> str:
        try:
            import importlib.metadata
            import platform as executor_platform

            if executor_platform.python_version_tuple()[:2] != tuple(expected["python"].split(".")[:2]):
                found = executor_platform.python_version()
                return f"Python {found}; the driver has {expected['python']}: install the same"
            for name, version in expected.items():
                if name != "python" and importlib.metadata.version(name) != version:
                    return f"{name} {importlib.metadata.version(name)}; the driver has {version}: install the same"
            import google.protobuf  # type: ignore[import-untyped]  # noqa: F401 -- without it the operator dies silently

            import streams.query.decode_stage
            import streams.query.processor  # noqa: F401
            from twin.warm import warm

            warm()
        except ImportError as error:
            return f"{error}; install mqtwin there, as on the driver"
        except Exception as error:  # noqa: BLE001 -- it travels back to the driver, which raises it
            return f"{type(error).__name__}: {error}"
        return ""

    return probe
