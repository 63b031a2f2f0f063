"""Sites known by levels: a CFRM policy, MQSC and a job log with DISPLAY CFSTATUS, as `mqtwin start` reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from twin.estate import Estate, load_estate
from twin.feeds.protocol import FeedOptions
from twin.feeds.site import SiteFile, recognise, record_site, see_estate

STORE = "MQP1/PAYM"
START = datetime(2026, 11, 26, 1, 0, 0, tzinfo=UTC)
EVERY_S = 300  # between two DISPLAYs
_ENTRY_BYTES = (512 << 20) / 240_641  # of SIZE, at the ratio of the site
_GROWTH = 1.1  # by which z/OS enlarges a structure at FULLTHRESHOLD
_MQSC = "DEFINE QLOCAL(PAY.IN) CFSTRUCT(PAYM) QSGDISP(SHARED)\nDEFINE QLOCAL(PAY.OUT) CFSTRUCT(PAYM) QSGDISP(SHARED)\n"


@dataclass(frozen=True, slots=True)
class Level:
    """Answer of a DISPLAY CFSTATUS: seconds since the start, entries used and in total, size in bytes."""

    seconds: float
    ents_used: int
    ents_max: int
    size: int


@dataclass(frozen=True, slots=True)
class LevelSite:
    """A site whose structure is known by DISPLAYs.

    Attributes:
        levels: what they show.
        size, init_size: SIZE and INITSIZE of the CFRM policy, bytes.
        full_threshold: FULLTHRESHOLD of the policy; None: not set there.
        auto_alter: ALLOWAUTOALT.
        full_s: seconds after the start at which the structure is truly full; None: it never is.
    """

    levels: tuple[Level, ...]
    size: int
    init_size: int
    full_threshold: int | None = 80
    auto_alter: bool = True
    full_s: float | None = None

    @property
    def start_us(self) -> int:
        """Time of the first DISPLAY, microseconds since 1970."""
        return int(START.timestamp()) * 1_000_000

    @property
    def policy(self) -> str:
        """The CFRM policy."""
        threshold = "" if self.full_threshold is None else f" FULLTHRESHOLD({self.full_threshold})"
        sizes = f"SIZE({self.size // 1024}) INITSIZE({self.init_size // 1024})"
        return (
            "DATA TYPE(CFRM) REPORT(YES)\nDEFINE POLICY NAME(POL1) REPLACE(YES)\n"
            "CF NAME(CF01) TYPE(002964) MFG(IBM) PLANT(02) SEQUENCE(000000012345) PARTITION(0E) CPCID(00)\n"
            f"STRUCTURE NAME(MQP1PAYM) {sizes}{threshold} ALLOWAUTOALT({'YES' if self.auto_alter else 'NO'})"
            " PREFLIST(CF01)\n"
        )

    @property
    def job_log(self) -> str:
        """The job log of MQ1A."""
        day = START.strftime("%H.%M.%S STC04711  ---- %A, %d %b %Y ----\n").upper()
        return day + "".join(map(_display, self.levels))

    def write(self, folder: Path) -> tuple[Path, list[SiteFile]]:
        """Write the files of the site; return the folder of its estate, and the files."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "policy.txt").write_text(self.policy, encoding="utf-8")
        (folder / "qsg.mqsc").write_text(_MQSC, encoding="utf-8")
        (folder / "mq1a.joblog").write_text(self.job_log, encoding="utf-8")
        options = FeedOptions(zone=None)
        files = [recognise(folder / name, options) for name in ("policy.txt", "mq1a.joblog")]
        return folder, [*files, SiteFile("mqsc", folder / "qsg.mqsc", "MQP1")]

    def record(self, folder: Path) -> tuple[Estate, Path]:
        """Return the estate and the recording that the product makes of the site's files."""
        folder, files = self.write(folder)
        options = FeedOptions(zone=None)
        seen = see_estate(files, folder, options, {"MQP1": ("MQ1A", "MQ1B")})
        (folder / "estate.toml").write_text(seen.text, encoding="utf-8")
        estate = load_estate(folder / "estate.toml")
        record_site(files, folder / "recording.arrow", estate, options)
        return estate, folder / "recording.arrow"


def _display(level: Level) -> str:
    """Return the lines of a DISPLAY CFSTATUS in a job log."""
    clock = (START + timedelta(seconds=level.seconds)).strftime("%H.%M.%S STC04711 ")
    pairs = (
        "CFSTATUS(PAYM)",
        "TYPE(SUMMARY)",
        "CFTYPE(APPL)",
        "STATUS(ACTIVE)",
        f"SIZEMAX({level.size // 1024})",
        f"ENTSMAX({level.ents_max})",
        f"ENTSUSED({level.ents_used})",
        " END CFSTATUS DETAILS",
    )
    body = "".join(f"   293   {pair}\n" for pair in pairs)
    return f"{clock} +CSQM201I +MQ1A CSQMDRTC  DISPLAY CFSTATUS DETAILS  293\n{body}"


# --- what the structure does -----------------------------------------------------------------------------------------


def tried(ents_max: int = 240_641) -> LevelSite:
    """A structure that is allowed to grow, and does not: 1,000 entries more a minute until it is at 99 %."""
    first = 98_211 if ents_max == 240_641 else ents_max - 2_790 - 28 * 5_000
    levels = tuple(Level(EVERY_S * i, first + 5_000 * i, ents_max, 512 << 20) for i in range(29))
    return LevelSite(levels, 1 << 30, 512 << 20, full_s=(ents_max - first) * 60 / 1_000)


def climbing(alter: str, per_minute: float) -> LevelSite:
    """A structure that climbs by entries a minute, with noise, shown until it is at 98.5 % of what it can become."""
    return _site(alter, lambda seconds: 60_000 + per_minute * seconds / 60, until_pct=98.5)


def calm(alter: str) -> LevelSite:
    """A structure of which 60 % are in use, with noise."""
    return _site(alter, lambda _: 144_000, count=60)


def falling(alter: str) -> LevelSite:
    """A structure that is emptied from 75 %."""
    return _site(alter, lambda seconds: max(0, 180_000 - 400 * seconds / 60), count=60)


def _site(
    alter: str, used_at: Callable[[float], float], *, until_pct: float = 1_000, count: int = 1_000, noise: float = 300
) -> LevelSite:
    """Return a site. alter: seen, unseen (allowed, and z/OS does nothing) or no; used_at: entries by seconds."""
    size, init_size, chance = 1 << 30, 512 << 20, np.random.default_rng(7)
    levels, now, full_s = [], init_size, None
    for second in range(0, count * EVERY_S, 60):
        used, entries = used_at(second), int(now / _ENTRY_BYTES)
        while alter == "seen" and now < size and used * 100 >= 80 * entries:
            now = min(size, int(now * _GROWTH) // 4096 * 4096)
            entries = int(now / _ENTRY_BYTES)
        if used >= entries:
            full_s = float(second)
            break
        is_shown = 100 * used < until_pct * entries or (now < size and alter == "seen")
        if second % EVERY_S == 0 and is_shown:
            levels.append(Level(second, int(np.clip(used + chance.normal(0, noise), 0, entries)), entries, now))
    return LevelSite(tuple(levels), size, init_size, auto_alter=alter != "no", full_s=full_s)
