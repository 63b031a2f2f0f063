"""Checkpoints for tests: Spark's files in their format, with Hadoop's checksums, written without Spark."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa
import xxhash

from streams.checkpoint.files import PARTITIONS
from streams.checkpoint.local_files import CheckpointFiles

SETTINGS = {PARTITIONS: "2", "spark.sql.streaming.stateStore.compression.codec": "lz4"}


def with_crc(path: Path, data: bytes) -> Path:
    """Write a file and its checksum file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sums = b"".join(struct.pack(">I", zlib.crc32(data[start : start + 512])) for start in range(0, len(data), 512))
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + struct.pack(">I", 512) + sums)
    return path


def changelog(content: bytes) -> bytes:
    """Return content in the format of lz4-java's LZ4BlockOutputStream."""
    blocks = []
    for start in range(0, len(content), 32768):
        raw = content[start : start + 32768]
        packed = pa.Codec("lz4_raw").compress(raw).to_pybytes()
        checksum = xxhash.xxh32_intdigest(raw, 0x9747B28C)
        blocks.append(struct.pack("<8sBIII", b"LZ4Block", 0x25, len(packed), len(raw), checksum & 0x0FFFFFFF) + packed)
    return b"".join(blocks) + struct.pack("<8sBIII", b"LZ4Block", 0x15, 0, 0, 0)


def snapshot(folder: Path, version: int) -> None:
    """Write a snapshot of a state partition that names one file."""
    sst = with_crc(folder / "SSTs" / f"000010-{version}.sst", b"sorted" * 300)
    metadata = {"sstFiles": [{"localFileName": "000010.sst", "dfsSstFileName": sst.name, "sizeBytes": 1800}]}
    archive = folder / f"{version}.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("metadata", "v1\n" + json.dumps(metadata))
        file.writestr("CURRENT", "MANIFEST-000005\n")
    with_crc(archive, archive.read_bytes())


def write_offsets(directory: Path, batch: int, offsets: object, settings: dict[str, str]) -> None:
    """Write the offsets file of a batch."""
    lines = "v1", json.dumps({"batchWatermarkMs": 0, "conf": settings}), json.dumps(offsets)
    with_crc(directory / f"offsets/{batch}", "\n".join(lines).encode())


def begin_repartition(directory: Path, partitions: int) -> int:
    """Leave a checkpoint as a repartition that was killed before it wrote state; return its batch."""
    files = CheckpointFiles(directory)
    batch = files.commits[-1] + 1
    last = files.read_offsets(batch - 1)
    write_offsets(directory, batch, last.offsets, {**last.settings, PARTITIONS: str(partitions)})
    return batch


def write_checkpoint(
    directory: Path,
    *,
    prefix: str = "mqtwin",
    batches: int = 6,
    committed: int | None = None,
    snapshots: tuple[int, ...] = (3,),
) -> Path:
    """Write a checkpoint of batches with ten events and five reports each.

    Args:
        directory: the checkpoint.
        prefix: prefix of the topics.
        batches: their number.
        committed: number of committed batches; None: all.
        snapshots: versions of the state with a snapshot.
    """
    committed = batches if committed is None else committed
    with_crc(directory / "metadata", b'{"id":"790de494-d645-494b-b7fa-ca5b3fddc9a7"}')
    names = f"{prefix}.events", f"{prefix}.reports"
    with_crc(directory / "sources/0/0", b"\0v1\n" + json.dumps({name: {"0": 0} for name in names}).encode())
    for batch in range(batches):
        offsets = {names[0]: {"0": 10 * (batch + 1)}, names[1]: {"0": 5 * (batch + 1)}}
        write_offsets(directory, batch, offsets, SETTINGS)
    for batch in range(committed):
        with_crc(directory / f"commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}')
    schema = with_crc(directory / "state/0/_stateSchema/default/0_x", b"schema")
    store = {"storeName": "default", "numPartitions": 2, "stateSchemaFilePaths": [schema.as_uri()]}
    operator = {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [store]}
    with_crc(directory / "state/0/_metadata/v2/0", b"v2\n" + json.dumps(operator).encode())
    for partition in range(2):
        folder = directory / f"state/0/{partition}"
        for version in range(1, committed + 1):
            content = bytes(range(256)) * (10 * version) + f"partition {partition}".encode()
            with_crc(folder / f"{version}.changelog", changelog(content))
            if version in snapshots:
                snapshot(folder, version)
    return directory
