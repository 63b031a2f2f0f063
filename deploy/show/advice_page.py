"""Advice as a report to hand on: one HTML file with its pictures, without a link to anything outside."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from deploy.show.html_page import RIGHT, WIDTH, Curve, draw_curves, page, table
from deploy.show.planning import HEADINGS, cells, expected, futures, proof_text, question, required_text, settings_text
from twin.conditions import STORAGE_MEDIUM_FULL
from twin.planning.advise import ALONE, Advice
from twin.planning.proof import AS_IT_IS, Proof
from twin.planning.whatif import Answer, FillOutcome
from twin.units import as_span

_LEFT = 200  # what labels take of a picture
_ROW = 44
_BOTTOM = 34
_LEFT_OUT = "Changes that bring a new warning about the estate, or with which too much is refused in the recording."


def report(advice: Advice, proofs: Sequence[Proof] = (), recording: str = "", reason: int = STORAGE_MEDIUM_FULL) -> str:
    """Return the report as HTML.

    Args:
        advice: the advice.
        proofs: as of `Proven`; none where there is no recording.
        recording: name of the recording of the proofs.
        reason: MQRC of puts for which the store has no room.
    """
    title = f"Advice for {advice.store}"
    parts = [
        f"<p>{escape(_summary(advice))}</p>",
        _outcomes(advice),
        *(_plan(advice, number, proofs, recording) for number in range(len(advice.plans))),
    ]
    if advice.left_out:
        items = "".join(f"<li>{escape(text)}</li>" for text in advice.left_out)
        parts.append(f"<h2>Left out</h2><p>{_LEFT_OUT}</p><ul>{items}</ul>")
    if advice.smaller:
        parts.append(_smaller(advice, proofs, recording))
    if proofs:
        parts.append(_proofs(advice, proofs, recording, reason))
    parts.append(_method(advice))
    return page(title, parts)


def _summary(advice: Advice) -> str:
    promise, outcome = advice.promise, advice.outcome
    asked = question(_answer(advice))
    condition = "" if asked == "unchanged" else f", with {asked}"
    verdict = (
        "The promise is kept as it is."
        if advice.is_kept and not advice.required
        else f"{len(advice.plans)} change{'s' if len(advice.plans) != 1 else ''} would keep it."
        if advice.plans
        else "No change of its settings keeps it."
    )
    return (
        f"As of {advice.time[:16].replace('T', ' ')} UTC. Promise: not full within {as_span(promise.hours * 3600)}"
        f"{condition}, in {100 * promise.confidence:.0f} % of all futures. {_beginning(advice)}, it is"
        f" {expected(outcome, promise)}. {verdict}"
    )


def _answer(advice: Advice) -> Answer:
    """Return the advice's question in the form of a what-if."""
    return Answer(
        store=advice.store,
        time=advice.time,
        horizon_s=advice.promise.hours * 3600,
        settings={},
        traffic=advice.traffic,
        before=advice.outcome,
        after=advice.outcome,
    )


def _beginning(advice: Advice) -> str:
    """Return what plans are compared with."""
    return f"With {required_text(advice)}" if advice.required else "As it is"


def _options(advice: Advice) -> list[tuple[str, FillOutcome]]:
    plans = [(f"Plan {number}: {plan.title}", plan.outcome) for number, plan in enumerate(advice.plans, 1)]
    return [(_beginning(advice), advice.outcome), *plans]


# --- sections --------------------------------------------------------------------------------------------------------


def _outcomes(advice: Advice) -> str:
    options = _options(advice)
    rows = [(name, *cells(outcome)) for name, outcome in options]
    span = as_span(advice.promise.hours * 3600)
    caption = f"Time until full, if nothing is changed and with each plan: p10 to p90, the bar marks p50. Axis: {span}."
    return (
        f"<h2>What would happen</h2><figure tabindex=0>{_bars(options, advice.promise.hours)}"
        f"<figcaption>{escape(caption)}</figcaption></figure>{table(HEADINGS, rows, right=4)}"
    )


def _plan(advice: Advice, number: int, proofs: Sequence[Proof], recording: str) -> str:
    plan = advice.plans[number]
    steps = "".join(f"<li>{escape(step)}</li>" for step in plan.steps)
    texts = [("MQSC", plan.mqsc), ("CFRM policy", plan.cfrm)]
    blocks = "".join(f"<p class=dim>{name}</p><pre>{escape(text.strip())}</pre>" for name, text in texts if text)
    claimed = futures(plan.outcome, advice.promise)
    proven = f"<p>{escape(f'Then {claimed}; {proof_text(proofs, plan.title, recording)}.')}</p>"
    return f"<h2>Plan {number + 1}: {escape(plan.title)}</h2>{proven}<ol>{steps}</ol>{blocks}"


def _smaller(advice: Advice, proofs: Sequence[Proof], recording: str) -> str:
    items = "".join(
        f"<li>{escape(f'{settings_text(settings)}; {proof_text(proofs, name, recording)}')}</li>"
        for name, settings in advice.smaller.items()
    )
    text = "Each of these sizes alone could be this small, and the promise would still be kept."
    return f"<h2>What could be smaller</h2><p>{text}</p><ul>{items}</ul>"


def _proofs(advice: Advice, proofs: Sequence[Proof], recording: str, reason: int) -> str:
    heads = ("", f"refused with {reason}", "first", "peak usage")
    rows = [
        (
            _name(advice, proof),
            f"{proof.refused:,}",
            "none" if proof.first_full is None else f"{proof.first_full[:16].replace('T', ' ')}",
            f"{proof.peak_pct:.1f} %",
        )
        for proof in proofs
    ]
    what = "smaller size" if advice.smaller else "plan"
    recorded = f"The recording has {proofs[0].recorded:,} refused messages."
    text = (
        f"{recording}, replayed as requests on the estate as it is and with each {what}, as if it had been in effect"
        f" from the beginning of the recording to its end. {recorded} Gets happen as recorded: messages that the"
        " recording refused and are stored here are not got in it."
    )
    caption = f"The fullest resource of {advice.store} in the recording, percent of its maximum."
    return (
        f"<h2>The recording with each {what}</h2><p>{escape(text)}</p>"
        f"<figure tabindex=0>{_course(advice, proofs)}<figcaption>{escape(caption)}</figcaption></figure>"
        f"{table(heads, rows, right=1)}"
    )


def _name(advice: Advice, proof: Proof) -> str:
    if proof.title == AS_IT_IS:
        return "As it is"
    if proof.title == ALONE:
        return _beginning(advice)
    if proof.title in advice.smaller:
        return settings_text(advice.smaller[proof.title])
    number = next(number for number, plan in enumerate(advice.plans, 1) if plan.title == proof.title)
    return f"Plan {number}: {proof.title}"


def _method(advice: Advice) -> str:
    text = (
        "The twin of the store was rolled forward over futures drawn from its own traffic, as it is and with each plan;"
        " a plan that fills something else is none. Sizes are the least that keep the promise, in steps of a 32nd. That"
        " the traffic goes on as given is assumed. Nothing was changed."
    )
    fit = advice.outcome.messages_that_fit
    more = "" if fit is None else f" As it is, {fit:,} further messages of this mix fit if nobody gets any."
    return f"<h2>How this was found</h2><p class=dim>{escape(text + more)}</p>"


# --- pictures --------------------------------------------------------------------------------------------------------


def _bars(options: Sequence[tuple[str, FillOutcome]], hours: float) -> str:
    """Return a picture of the time to full of each option."""
    horizon_s = hours * 3600
    scale = (WIDTH - _LEFT - RIGHT) / horizon_s
    height = _ROW * len(options) + _BOTTOM
    parts = []
    for row, (name, outcome) in enumerate(options):
        middle = _ROW * row + _ROW / 2
        colour = row % 4
        short, _, rest = name.partition(": ")
        parts.append(f'<text x="0" y="{middle - (3 if rest else -4)}">{escape(short)}</text>')
        if rest:
            parts.append(f'<text class="dim" x="0" y="{middle + 13}">{escape(_cut(rest))}</text>')
        if outcome.p10 is None:
            text = f"not full in {100 * (1 - outcome.probability):.0f} % of all futures"
            parts.append(f'<text class="dim" x="{_LEFT + 6}" y="{middle + 4}">{text}</text>')
            continue
        low = _LEFT + outcome.p10 * scale
        high = _LEFT + (horizon_s if outcome.p90 is None else outcome.p90) * scale
        parts.append(
            f'<rect class="f{colour}" opacity=".4" x="{low:.1f}" y="{middle - 10}" width="{max(2, high - low):.1f}"'
            ' height="20" rx="3"/>'
        )
        if outcome.p50 is not None:
            x = _LEFT + outcome.p50 * scale
            parts.append(f'<rect class="f{colour}" x="{x - 2:.1f}" y="{middle - 14}" width="4" height="28"/>')
    parts += _hours(horizon_s, height - _BOTTOM)
    label = "; ".join(f"{name}: {', '.join(text for text in cells(outcome)[:4] if text)}" for name, outcome in options)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _hours(horizon_s: float, y: float) -> list[str]:
    step = next((s for s in (600, 900, 1800, 3600, 7200, 14_400) if horizon_s / s <= 6), 14_400)
    parts = [f'<line class="axis" x1="{_LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>']
    for second in range(0, int(horizon_s) + 1, step):
        x = _LEFT + second / horizon_s * (WIDTH - _LEFT - RIGHT)
        text = f"{second / 3600:g} h" if step >= 1800 else f"{second // 60} min"
        parts.append(f'<line class="axis" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 5}"/>')
        parts.append(f'<text class="dim" x="{x:.1f}" y="{y + 20}" text-anchor="middle">{text}</text>')
    return parts


def _course(advice: Advice, proofs: Sequence[Proof]) -> str:
    """Return a picture of the usage over the recording, as it is and with each plan."""
    curves = [Curve(_name(advice, proof), proof.times, proof.usage_pct) for proof in proofs]
    label = "; ".join(f"{_name(advice, proof)}: up to {max(proof.usage_pct):.0f} %" for proof in proofs)
    return draw_curves(curves, label, top=max(105.0, *(max(proof.usage_pct) for proof in proofs)))


def _cut(text: str) -> str:
    return text if len(text) <= 27 else f"{text[:26]}…"
