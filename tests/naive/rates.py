"""Experts on the puts of a store in a slow and obvious way: lists of half hours, a loop for every day and span."""

from __future__ import annotations

import math
from collections.abc import Sequence

DAY, WEEK = 48, 336
SPANS = (1, 2, 4, 8, 16)
SCORED = 144  # half hours
MIN_SCORED = 8

Counts = Sequence[int | None]  # None: not known
Says = list[float | None]  # logarithms of the puts a half hour, by expert


def mean_of(counts: Counts, start: int, span: int) -> float | None:
    """Return the mean of the half hours from `start` on; None where not all are known."""
    if start < 0 or start + span > len(counts):
        return None
    chosen = counts[start : start + span]
    known = [count for count in chosen if count is not None]
    return sum(known) / span if len(known) == span else None


def usual(counts: Counts, start: int, span: int) -> float | None:
    """Return the mean over the seven days before of the same half hours, as far as they are known."""
    days = [mean_of(counts, start - DAY * day, span) for day in range(1, 8)]
    known = [day for day in days if day is not None]
    return sum(known) / len(known) if known else None


def least_of(counts: Counts) -> float:
    known = [count for count in counts if count is not None]
    return 0.05 * sum(known) / len(known) + 1.0


def says(counts: Counts, origin: int, span: int, least: float) -> Says:
    """Return each expert's forecast of the half hours from `origin` on, made from those before it."""

    def log(value: float | None) -> float | None:
        return None if value is None else math.log(max(value, least))

    past = counts[:origin]
    now, hour, before = log(mean_of(past, origin - 1, 1)), log(usual(past, origin, span)), None
    before = log(usual(past, origin - 1, 1))
    between = None if now is None or hour is None else (now + hour) / 2
    change = None if now is None or hour is None or before is None else now + hour - before
    return [now, hour, between, change, log(mean_of(past, origin - WEEK, span))]


def errors_of(counts: Counts, span: int) -> list[tuple[float, Says]]:
    """Return (how much they count, errors by expert) of every half hour that is scored, oldest first."""
    least = least_of(counts)
    rows: list[tuple[float, Says]] = []
    last = len(counts) - span
    for origin in range(max(1, len(counts) - SCORED), last + 1):
        came = mean_of(counts, origin, span)
        predicted = says(counts, origin, span, least)
        if came is None:
            rows.append((0.5 ** ((last - origin) / DAY), [None] * 5))
            continue
        log_came = math.log(max(came, least))
        errors = [None if value is None else value - log_came for value in predicted]
        rows.append((0.5 ** ((last - origin) / DAY), errors))
    return rows


def trust(counts: Counts, span: int) -> tuple[list[float], float]:
    """Return (weight of each expert, standard deviation of the error of their mean) for one span."""
    rows = errors_of(counts, span)
    known = [[(fade, errors[expert]) for fade, errors in rows if errors[expert] is not None] for expert in range(5)]
    chosen = [expert for expert in range(5) if expert == 0 or len(known[expert]) >= MIN_SCORED]
    scores = {}
    effective = min(sum(fade for fade, _ in known[expert]) for expert in chosen) / span
    for expert in chosen:
        squares = sum(fade * error**2 for fade, error in known[expert] if error is not None)
        variance = (squares + 0.1) / (sum(fade for fade, _ in known[expert]) + 1)
        scores[expert] = (1.0 if expert == 0 else 0.0) - 0.5 * effective * math.log(variance)
    highest = max(scores.values())
    raw = {expert: math.exp(score - highest) for expert, score in scores.items()}
    weights = [raw.get(expert, 0.0) / sum(raw.values()) for expert in range(5)]
    squares, count = 0.1, 1.0
    for fade, errors in rows:
        some = [errors[expert] for expert in chosen]
        if all(error is not None for error in some):
            mixed = sum(weights[expert] * (errors[expert] or 0.0) for expert in chosen)
            squares, count = squares + fade * mixed**2, count + fade
    return weights, math.sqrt(squares / count)


def wandering(counts: Counts) -> list[float] | None:
    """Return the standard deviation of the error of `as many as now`, by span; None where it is not asked for."""
    known = sum(count is not None for count in counts)
    if not 8 <= known < DAY + MIN_SCORED + SPANS[-1]:
        return None
    least, variances = least_of(counts), list[float]()
    for span in SPANS:
        squares = []
        for origin in range(1, len(counts) - span + 1):
            now, came = mean_of(counts, origin - 1, 1), mean_of(counts, origin, span)
            if now is not None and came is not None:
                squares.append((math.log(max(now, least)) - math.log(max(came, least))) ** 2)
        seen = len(squares) >= span + 4
        variances.append((sum(squares) + 0.02) / (len(squares) + 1) if seen else 1.6 * (variances or [0.0])[-1])
    return [math.sqrt(variance) for variance in variances]
