// Receives changes, keeps the latest of each store and incident, shows one view of it.

import { UsageChart } from "./chart.js";
import { actionParts, amount, announce, askForToken, byId, chip, commandBlock, count, dayAndClock, get, h, isFullNow, kindOf, moment, newest, panel, percent, range, reconcile, runsOut, setAttribute, setText, setWords, setZone, span } from "./page.js";
import { bandOf, StoreMap } from "./map.js";
import { acknowledgementOf, byWhom, Notes } from "./notes.js";
import { Past, timeInAddress } from "./past.js";
import { WhatIf } from "./whatif.js";

const MAX_POINTS = 2000; // of a chart, until its history is asked for again
const LOST_S = 8; // without any event from the server
const LATE_S = 20; // since the job has written
const BEHIND_S = 600; // from which the age of the event time is said
const MAX_CHARTS = 12; // of the cards of the overview
const MAX_PARTS = 50; // of an incident that are shown
const PATIENCE = 10; // draws after which a row out of sight is written, too

const state = { stores: new Map(), incidents: new Map(), ofStore: new Map(), letters: { reasons: {}, latest: [] }, meta: null, past: null, heard: 0, drawn: 0, started: Date.now(), isBroken: false, isOut: false };
let view = null;
let source = null;
let drawing = false;

// --- what is urgent ---

// That of the root of the incident, or amber of a likely forecast that calls for nobody yet.
const hasPage = (store) => !!store.severity && store.severity !== "info";
const toneOf = (store) => (!hasPage(store) && isFilling(store) ? "warning" : store.severity);
const wordOf = (store) => (hasPage(store) || !isFilling(store) ? null : "forecast");

const isFilling = (store) => store.is_filling === true; // the server leaves out what is not so
const isUrgent = (store) => isFilling(store) || hasPage(store) || store.full.length > 0;

// Incidents: those that call for somebody, the worst, the one that opened first; closed ones last, the latest first.
const weightOf = (incident) => (incident.is_open ? (incident.is_page ? 10 + incident.urgency : 5) : 0);
const byWeight = (a, b) => weightOf(b) - weightOf(a) || (a.is_open ? (a.opened < b.opened ? -1 : 1) : (a.time < b.time ? 1 : -1));
const incidentsOf = (name) => state.ofStore.get(name) || [];
const openOf = (store) => incidentsOf(store.store).filter((incident) => incident.is_open);
const pageOf = (store) => openOf(store).find((incident) => incident.is_page);
// True for a forecast that is likely, or that an alert has, and that nothing contradicts: others are a few words.
const isForeseen = (store) => store.is_foreseen === true;
// When a resource was last fullest, in seconds since 1970; undefined: it does not fall.
const fallingSince = (store, resource) => (store.falling || {})[resource];
const byUrgency = (a, b) => b.urgency - a.urgency || (a.store < b.store ? -1 : 1);
const fullest = (store) => store.resources.reduce((top, next) => (next.pct !== null && (!top || next.maximum_pct > top.maximum_pct) ? next : top), null);
const resourceOf = (store, name) => store.resources.find((item) => item.name === name);
const labelOf = (store, name) => resourceOf(store, name)?.label ?? name;
// The resource of a store's card: that of the forecast, else of its incident, else the fullest.
function mainResource(store) {
  const page = pageOf(store);
  return (isForeseen(store) && resourceOf(store, store.first.resource)) || (page && resourceOf(store, page.root.resource)) || fullest(store);
}
const linkOf = (store) => `#/store/${encodeURIComponent(store)}`;

function toneOfUsage(store, resource) {
  if (resource.maximum_pct >= 100) return "full";
  const page = pageOf(store);
  if (page && page.root.resources.includes(resource.name)) return page.severity;
  return store.first && store.first.resource === resource.name && isFilling(store) ? toneOf(store) : null;
}

// --- parts ---

// A bar is moved into its track, not made wider: that needs no layout.
function fillTo(bar, pct) {
  bar.style.transform = `translateX(${Math.min(100, pct) - 100}%)`;
}

function meter() {
  const name = h("span", { class: "name" }), value = h("span", { class: "number" });
  const fill = h("div", { class: "fill" }), more = h("span", { class: "amount" }), room = h("div", { class: "room" });
  const track = h("div", { class: "track", "aria-hidden": "true" }, room, fill);
  return { root: h("div", { class: "meter" }, name, value, track, more), set(store, resource, isShort) {
    setText(name, resource.label + (resource.note && resource.pct !== null ? `, ${resource.note}` : ""));
    setText(value, resource.usage);
    setAttribute(fill, "data-severity", toneOfUsage(store, resource));
    fillTo(fill, resource.maximum_pct ?? 0);
    room.style.left = `${resource.maximum > resource.total ? (100 * resource.total) / resource.maximum : 100}%`; // what it is not yet
    more.hidden = isShort || resource.pct === null;
    if (!more.hidden) setText(more, resource.amount);
  } };
}

// Of a resource whose time is not said: since when it falls, or how unlikely full is.
function ahead(store, top) {
  const first = store.first, since = fallingSince(store, top.name);
  if (since !== undefined) return `, falling since ${moment(new Date(1000 * since).toISOString(), store.time)}`;
  if (!first && store.not_known) return `, time to full ${store.not_known}`;
  if (!first) return pageOf(store) ? "" : ", nothing predicted to fill";
  const what = first.resource === top.name ? "" : labelOf(store, first.resource) + " ";
  return store.rises ? `, ${what}${store.rises}` : "";
}

const failing = (store) => `puts fail with ${store.full_reason}`;

function timeLeft() {
  const big = h("span", { class: "big" }), rest = h("span", { class: "soft" });
  return { root: h("p", { class: "left" }, big, rest), set(store) {
    const first = store.first, tone = toneOf(store), top = mainResource(store), page = pageOf(store);
    if (store.full.length || (first && isFullNow(first.time_to_full_s))) {
      setText(big, "Full now");
      setText(rest, `${store.full.join(", ") || labelOf(store, first.resource)}: ${failing(store)}`);
    } else if (page && page.root.condition === "queue-full") {
      setText(big, "Queue full");
      setText(rest, `${page.root.label}: puts fail with 2053${top && top.pct !== null ? `; ${percent(top.pct)} ${top.in_use}` : ""}`);
    } else if (first && isForeseen(store)) {
      const times = first.time_to_full_s;
      setText(big, span(times.p50));
      setText(rest, `until ${labelOf(store, first.resource)} ${runsOut(labelOf(store, first.resource))} (${range(times)}, probability ${Math.round(100 * first.full_probability)} %)`);
    } else {
      setText(big, top && top.pct !== null ? percent(top.pct) : store.resources.length ? "not measured" : "no usage");
      setText(rest, top && top.pct !== null ? `${top.in_use}${wasFull(page) ? ", was full, puts succeed again" : ahead(store, top)}` : "");
    }
    setAttribute(big, "class", `big${tone && tone !== "info" ? ` tone-${tone}` : ""}`);
  } };
}

// True while `full` is open and the store is not full any more.
const wasFull = (incident) => !!incident && incident.root.condition === "full";

// The time left of an alert, by the latest forecast; empty where there is none.
function leftOfAlert(alert) {
  const store = state.stores.get(alert.store);
  if (!store || !alert.is_open) return "";
  if (alert.condition === "full") return store.full.length ? "full now" : "was full, puts succeed again";
  const ahead = store.forecasts.find((item) => item.resource === alert.resource && item.time_to_full_s);
  if (!ahead || ahead.full_probability < (alert.condition === "full-forecast" ? state.meta.possible : state.meta.likely)) return "";
  if (fallingSince(store, alert.resource) !== undefined && !isFullNow(ahead.time_to_full_s)) return "falling";
  return isFullNow(ahead.time_to_full_s) ? "full now" : `${span(ahead.time_to_full_s.p50)} left`;
}

// An action as a runbook: what it does, what has to be so, its steps, and the way back.
function runbookParts(action) {
  const lines = [["Effect", action.effect], ["Only if", action.precondition], ["Risk", action.risk], ["Way back", action.undo]].filter(([, text]) => text);
  const labelled = (names) => lines.filter(([name]) => names.includes(name)).map(([name, text]) => h("p", {}, h("b", {}, `${name}: `), text));
  const steps = action.steps.map((step) => h("li", {}, h("p", {}, step.text), step.statement ? commandBlock(step.statement) : null));
  return [h("p", { class: "summary" }, action.summary), ...labelled(["Effect", "Only if"]), h("ol", { class: "steps" }, ...steps), ...labelled(["Risk", "Way back"])];
}

// What to do about an alert, less what is to do about the root of its incident.
const actionsOf = (alert) => (!alert.is_open ? [] : alert.runbook && alert.runbook.length ? alert.runbook : alert.actions);
const statementsOf = (action) => (action.steps ? action.steps.map((step) => step.statement) : action.commands).filter(Boolean).join("\n") || action.text || action.summary;
function ownActions(alert, root) {
  const known = new Set(alert === root ? [] : actionsOf(root).map(statementsOf));
  return actionsOf(alert).filter((action) => !known.has(statementsOf(action)));
}

// Whether notes can be written here, by whom: a name, or true where nobody has verified one.
const takesNotes = () => !!(state.meta && state.meta.takes_notes && !state.past) && (state.meta.who || true);

// Under the heading of an alert. Elements that a reader may have opened or selected stay while what they say does.
function alertBody(hasActions) {
  const notes = hasActions ? new Notes() : null;
  const at = h("span", { class: "soft" }), cause = h("span"), facts = h("p", { class: "soft" }), actions = h("ul", { class: "actions" }), lines = h("ul");
  const evidence = h("details", {}, h("summary", {}, "Evidence"), lines);
  let before = "";
  return { parts: [h("p", { class: "cause" }, at, cause), facts, evidence, ...(notes ? [actions, notes.root] : [])], set(alert, incident) {
    setText(at, alert.time === incident.opened ? "" : `At ${moment(alert.time, incident.opened)}: `);
    setText(cause, alert.cause);
    const fillers = alert.fillers.filter((filler) => filler.share >= 0.005).map((filler) => `${filler.queue} ${Math.round(100 * filler.share)} %`);
    setText(facts, `Filled by ${fillers.join(", ")}`);
    facts.hidden = fillers.length < 2; // the cause names a single queue
    evidence.hidden = alert.evidence.length === 0;
    const todo = hasActions ? ownActions(alert, incident.root) : [], isOffered = takesNotes();
    if (notes) notes.set(alert, isOffered);
    const now = JSON.stringify([alert.evidence, todo, isOffered, alert.notes.filter((note) => note.action)]);
    if (now === before) return;
    before = now;
    lines.replaceChildren(...alert.evidence.map((sentence) => h("li", {}, sentence)));
    actions.replaceChildren(...todo.map((action) => h("li", {}, ...(action.steps ? [...runbookParts(action), notes.done(action, isOffered) || ""] : actionParts(action)))));
    actions.hidden = todo.length === 0;
  } };
}

const wordOfAlert = (alert) => (alert.is_open ? (alert.level === "watch" ? "info" : alert.severity) : "cleared");
const titleOf = (alert) => `${alert.label}: ${alert.condition}`;

// A part of an incident, on a line with its cause; isShort: in a card.
function partView(isShort) {
  const severity = chip(), title = h("b"), when = h("span", { class: "when" }), body = isShort ? null : alertBody(true);
  return { root: h("li", { class: "part" }, h("div", { class: "line" }, severity.root, title, when), ...(body ? body.parts : [])), set(alert, incident) {
    severity.set(wordOfAlert(alert));
    setText(title, titleOf(alert));
    setText(when, alert.is_open ? `since ${moment(alert.opened, incident.opened)}` : `cleared ${moment(alert.time, incident.opened)}`);
    if (body) body.set(alert, incident);
  } };
}

// The other alerts of an incident: open ones, then cleared ones.
function partsView(isShort) {
  const summary = h("summary"), list = h("ul", { class: "parts" }), root = h("details", { class: "others" }, summary, list);
  return { root, set(incident) {
    const parts = [...incident.parts, ...(isShort ? [] : incident.cleared)], number = parts.length;
    root.hidden = number === 0;
    setText(summary, `${number} more alert${number === 1 ? "" : "s"}`);
    reconcile(list, parts.slice(0, MAX_PARTS), (alert) => alert.alert_id, () => partView(isShort), (part, alert) => part.set(alert, incident));
  } };
}

// An incident: what its root says, the others folded below.
function incidentView() {
  const severity = chip(), title = h("h3"), left = h("b"), when = h("span", { class: "when" }), body = alertBody(true), others = partsView(false);
  const root = h("article", { class: "panel alert" }, h("div", { class: "line" }, severity.root, title, left, when), ...body.parts, others.root);
  let shown = null, offered = false;
  return { root, set(incident, hasLink = true) {
    const alert = incident.root;
    setText(left, leftOfAlert(alert));
    setAttribute(left, "class", incident.is_page ? `tone-${incident.severity}` : null);
    if (shown === incident && offered === takesNotes()) return;
    shown = incident;
    offered = takesNotes();
    setAttribute(root, "data-severity", incident.is_open ? incident.severity : null);
    setAttribute(root, "data-open", incident.is_open);
    severity.set(incident.is_open ? incident.severity : "cleared");
    title.replaceChildren(...(hasLink ? [h("a", { href: linkOf(incident.store) }, incident.store), ` ${titleOf(alert)}`] : [titleOf(alert)]));
    const first = alert.opened === incident.opened ? "" : ` (incident since ${moment(incident.opened, alert.opened)})`;
    setText(when, `since ${moment(alert.opened)}${first}${incident.is_open ? "" : `, cleared ${moment(incident.time, alert.opened)}`}`);
    body.set(alert, incident);
    others.set(incident);
  } };
}

// How many incidents are open, in words.
function countText(incidents) {
  const open = incidents.filter((incident) => incident.is_open), pages = open.filter((incident) => incident.is_page).length, watches = open.length - pages;
  const words = [[pages, "page"], [watches, "watch"]].filter(([number]) => number).map(([number, word]) => `${number} ${word}${number === 1 ? "" : word === "page" ? "s" : "es"}`);
  return open.length ? `${open.length} open incident${open.length === 1 ? "" : "s"}: ${words.join(", ")}` : "No open incident";
}

function facts() {
  const root = h("dl", { class: "facts" });
  return { root, set(pairs) {
    reconcile(root, pairs, (pair) => pair[0], ([name]) => {
      const value = h("dd");
      return { root: h("div", {}, h("dt", {}, name), value), value };
    }, (part, [, text]) => setText(part.value, text));
  } };
}

// isFixed: widths do not follow from the cells, which a long table would measure with each change.
function table(headings, isFixed = false) {
  const body = h("tbody");
  const cells = headings.map(([text, kind]) => h("th", { scope: "col", class: kind || null }, text));
  return { root: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": headings[0][0] }, h("table", { class: isFixed ? "rows fixed" : "rows" }, h("thead", {}, h("tr", {}, ...cells)), body)), body };
}

// Its history is asked for once, and continued with what comes in.
class StoreChart {
  constructor(title) {
    this.chart = new UsageChart(title);
    this.root = this.chart.root;
    this.columns = null;
    this.then = null;
    this.load = newest((path) => get(path), ({ ok, content }) => {
      if (ok) this.columns = content;
      if (this.columns) this.show();
    });
  }

  // then: {resource, times} of a what-if that is to be drawn over the forecast, or null.
  compare(then) {
    this.then = then;
    if (this.columns && this.store) this.show();
  }

  draw(store) {
    this.store = store;
    const columns = this.columns, at = Date.parse(store.time) / 1000, path = `api/history?store=${encodeURIComponent(store.store)}`;
    if (state.past) {
      const t = state.past.time;
      if (columns && columns.span && columns.span.begin <= t && t <= columns.span.end) this.show();
      else this.load(`${path}&t=${t}`);
      return;
    }
    const last = columns ? columns.times[columns.times.length - 1] : undefined;
    if (last === undefined || at < last || columns.times.length > MAX_POINTS) {
      this.load(path); // also where another recording or a new job began
      return;
    }
    if (at > last) {
      columns.times.push(at);
      for (const item of store.resources) {
        columns.pct[item.name] ||= columns.times.slice(1).map(() => null);
        columns.pct[item.name].push(item.maximum_pct);
      }
      for (const values of Object.values(columns.pct)) while (values.length < columns.times.length) values.push(null);
    }
    this.show();
  }

  show() {
    const { store } = this;
    // Of what each can grow to, as the forecast is: a curve that falls at each expansion would not meet it.
    const labels = Object.fromEntries(store.resources.map((item) => [item.name, item.maximum_label || item.label]));
    const names = Object.fromEntries(store.resources.map((item) => [item.name, item.label]));
    const first = isForeseen(store) ? store.first : null, resource = first && store.resources.find((item) => item.name === first.resource);
    const isAhead = resource && !isFullNow(first.time_to_full_s) && resource.maximum_pct < 100;
    const now = isAhead ? { resource: first.resource, pct: resource.maximum_pct, times: first.time_to_full_s } : null;
    const other = this.then && store.resources.find((item) => item.name === this.then.resource);
    const then = other && other.maximum_pct !== null && other.maximum_pct < 100 ? { resource: other.name, pct: other.maximum_pct, times: this.then.times } : null;
    const columns = state.past ? { ...this.columns, now: state.past.time } : this.columns;
    this.chart.set(columns, labels, names, now, (mainResource(store) || {}).name, then, resource ? first.resource : null, store.rises,
      (store.plans || []).map((plan) => [plan.begins, plan.ends].map((time) => Date.parse(time) / 1000)));
  }

  close() {
    this.chart.close();
  }
}

// --- views ---

const names = new Intl.Collator("en", { numeric: true }); // APP2 before APP10
const SORTS = {
  urgency: ["most urgent first", byUrgency],
  time: ["first to be full", (a, b) => leftOf(a) - leftOf(b) || byUrgency(a, b)],
  usage: ["fullest", (a, b) => ((fullest(b) || {}).maximum_pct ?? -1) - ((fullest(a) || {}).maximum_pct ?? -1) || byUrgency(a, b)],
  name: ["name", (a, b) => names.compare(a.store, b.store)],
};
const leftOf = (store) => (isForeseen(store) ? store.first.time_to_full_s.p50 : Infinity);
const FEW = 8; // stores without a filter and a sort

// The severity by which a store is counted.
const toneToCount = (store) => (isUrgent(store) ? toneOf(store) || "warning" : "steady");

// Who acknowledged an incident last, in words; empty: nobody.
function takenText(incident) {
  const notes = incident ? [incident.root, ...incident.parts].map(acknowledgementOf).filter(Boolean) : [];
  return notes.length ? byWhom(notes.reduce((last, note) => (note.time > last.time ? note : last))) : "";
}

// What the map shows of a store: the time left, else its usage.
function cellOf(store) {
  const top = mainResource(store), isFull = store.full.length > 0, seconds = isFull ? 0 : leftOf(store), incident = openOf(store)[0], taken = takenText(incident);
  const band = seconds < Infinity ? bandOf(seconds) : hasPage(store) ? "call" : "steady", usage = top && top.pct !== null ? percent(top.pct) : "", severity = toneOf(store);
  const value = band === "steady" || band === "call" ? usage || "-" : seconds < 5400 ? span(seconds) : `${(seconds / 3600).toFixed(1)} h`;
  const ahead = isFull ? "full now" : band === "steady" || band === "call" ? store.rises || store.not_known || "nothing predicted to fill" : `${labelOf(store, store.first.resource)} full in ${value}`;
  const parts = [store.store, severity ? wordOf(store) || (severity === "info" ? "watch" : severity) : "", ahead, usage && `${top.label} ${usage}`, taken];
  return { href: linkOf(store.store), band, severity, value, pct: top ? top.maximum_pct ?? 0 : 0, label: parts.filter(Boolean).join(", "), isTaken: taken !== "" };
}

// The share of the last 24 hours' measurements that the twin matched; nothing where too few tested it.
const shareText = (share) => share == null ? "" : `${Math.floor(100 * share)} %`;

function fidelity() {
  const root = h("span", { class: "soft fidelity", title: "Measurements of the last 24 hours that the twin matched within its tolerance" });
  return { root, set: (store) => setWords(root, store.fields.fidelity == null ? "" : `${shareText(store.fields.fidelity)} matched`) };
}

class Overview {
  constructor() {
    this.title = "Overview";
    this.inSight = new InSight();
    this.heading = h("h1");
    this.filter = h("input", { type: "search", placeholder: "Filter stores", "aria-label": "Filter stores" });
    this.filter.addEventListener("input", () => this.draw());
    this.sort = h("select", { "aria-label": "Sort stores" }, ...Object.entries(SORTS).map(([value, [text]]) => h("option", { value }, text)));
    this.sort.addEventListener("change", () => this.draw());
    this.tools = h("div", { class: "field" }, this.sort, this.filter);
    this.counts = h("ul", { class: "counts", "aria-label": "Stores by severity" });
    this.tone = null; // of the stores that are shown; null: all
    this.map = new StoreMap(cellOf);
    this.cards = h("ul", { class: "cards" });
    this.urgent = h("section", { "aria-label": "Stores that need attention" }, this.cards);
    this.steady = table([["Store"], ["Fullest resource", "usage"], ["Time to full", "number wide"], ["Messages", "number wide"], ["Kind", "wide"]], true);
    this.steadyTitle = h("h2");
    this.rest = h("section", { class: "rest" }, this.steadyTitle, panel(this.steady.root));
    this.empty = h("p", { class: "empty" });
    this.start = startPanel();
    this.both = h("div", { class: "overview" }, this.urgent, this.rest);
    this.incidents = h("span", { class: "soft" });
    this.root = h("div", {}, h("div", { class: "head" }, this.heading, this.incidents, this.tools), this.counts, this.empty, this.start, this.map.root, this.both);
    this.narrow = matchMedia("(max-width: 640px)"); // there the map has the stores that need attention, if any do
  }

  draw() {
    const all = [...state.stores.values()].sort(byUrgency), word = this.filter.value.trim().toLowerCase();
    if (all.length < FEW || !all.some((store) => toneToCount(store) === this.tone)) this.tone = null;
    const named = all.filter((store) => store.store.toLowerCase().includes(word) && (this.tone === null || toneToCount(store) === this.tone));
    const chosen = named.sort(SORTS[this.sort.value][1]);
    const urgent = chosen.filter(isUrgent), steady = chosen.filter((store) => !isUrgent(store));
    setText(this.heading, (jobProblem() ? "The job has stopped" : headline(all)) + ageText());
    setText(this.incidents, countText([...state.incidents.values()]));
    this.incidents.hidden = all.length === 0;
    this.tools.hidden = all.length < FEW;
    setText(this.empty, all.length ? (chosen.length ? "" : "No store has that in its name.") : waitingText());
    this.empty.hidden = this.empty.textContent === "";
    this.start.hidden = all.length > 0 || !state.meta || !state.meta.connected;
    setText(this.steadyTitle, urgent.length ? "Steady" : "Stores");
    this.countStores(all);
    this.map.root.hidden = all.length < FEW || chosen.length === 0;
    if (!this.map.root.hidden) {
      const isShort = this.narrow.matches && urgent.length > 0;
      // Those that are steady keep their places: usages change with each record.
      this.map.draw(isShort ? urgent : this.sort.value === "urgency" ? [...urgent, ...[...steady].sort(SORTS.name[1])] : chosen);
    }
    if (this.isDrawn || this.map.root.hidden) this.drawRest(urgent, steady);
    else this.drawLater();
  }

  // The map is on the screen before the rest is made, also if records come meanwhile.
  drawLater() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => setTimeout(() => {
      this.isDrawn = true;
      if (view === this) this.draw();
    }));
  }

  drawRest(urgent, steady) {
    this.urgent.hidden = urgent.length === 0;
    this.rest.hidden = steady.length === 0;
    setAttribute(this.both, "data-both", urgent.length > 0 && steady.length > 0 ? "" : null);
    this.charted = new Set(urgent.slice(0, MAX_CHARTS));
    reconcile(this.cards, urgent, (store) => store.store, () => this.card(), (card, store) => card.set(store, this.charted.has(store)));
    reconcile(this.steady.body, steady, (store) => store.store, () => this.row(), (row, store) => row.set(store));
  }

  countStores(all) {
    const numbers = new Map();
    for (const store of all) {
      const tone = toneToCount(store);
      numbers.set(tone, (numbers.get(tone) || 0) + 1);
    }
    this.counts.hidden = all.length < FEW;
    const tones = ["full", "critical", "warning", "steady"].filter((tone) => numbers.has(tone));
    reconcile(this.counts, tones, (tone) => tone, (tone) => {
      const word = chip(), button = h("button", { title: "Show only these" }, word.root);
      button.addEventListener("click", () => { this.tone = this.tone === tone ? null : tone; this.draw(); });
      return { root: h("li", {}, button), word, button };
    }, (part, tone) => {
      setAttribute(part.button, "aria-pressed", this.tone === tone);
      part.word.set(tone, `${numbers.get(tone)} ${tone}`);
    });
  }

  close() {
    for (const card of (this.cards.views || new Map()).values()) card.close();
    this.inSight.close();
  }

  card() {
    const severity = chip(), name = h("a"), kind = h("span", { class: "soft" }), match = fidelity(), left = timeLeft(), bar = meter(), more = h("p", { class: "soft" });
    const title = h("b"), since = h("span", { class: "soft moment" }), taken = h("p", { class: "done" }), body = alertBody(false), others = partsView(true);
    const reason = h("div", { class: "reason" }, h("p", {}, title, " ", since), taken, body.parts[0], others.root);
    const chart = new StoreChart(null), words = h("div", { class: "words" }, left.root, bar.root, reason, more);
    const root = h("article", { class: "card" }, h("div", { class: "title" }, h("h3", {}, name), kind, match.root, severity.root), words, chart.root);
    return { root: h("li", {}, root), close: () => chart.close(), set(store, hasChart) {
      chart.root.hidden = !hasChart;
      if (hasChart) chart.draw(store);
      const resource = mainResource(store), incident = openOf(store)[0];
      setAttribute(name, "href", linkOf(store.store));
      setAttribute(root, "data-severity", toneOf(store));
      severity.set(toneOf(store), wordOf(store));
      setText(name, store.store);
      setText(kind, kindOf(store.kind));
      match.set(store);
      left.set(store);
      bar.root.hidden = !resource;
      if (resource) bar.set(store, resource, true);
      reason.hidden = !incident;
      if (incident) {
        setText(title, titleOf(incident.root));
        setText(since, `since ${moment(incident.root.opened)}`);
        const note = takenText(incident);
        setText(taken, note && `\u2713 ${note}`);
        taken.hidden = !note;
        body.set(incident.root, incident);
        others.set(incident);
      }
      setText(more, store.fields.full_puts ? `${count(store.fields.full_puts)} puts refused` : "");
      more.hidden = !store.fields.full_puts;
    } };
  }

  row() {
    const link = h("a"), watch = h("span", { class: "soft watch" }), match = fidelity(), fill = h("div", { class: "fill" }), value = h("span", { class: "number usage-pct" }), label = h("span", { class: "soft" });
    const left = h("td", { class: "number wide" }), messages = h("td", { class: "number wide" }), kind = h("td", { class: "wide soft" });
    const usage = h("td", { class: "usage" }, h("div", { class: "inline" }, label, h("div", { class: "track", "aria-hidden": "true" }, fill), value));
    const root = h("tr", {}, h("th", { scope: "row" }, link, " ", match.root, watch), usage, left, messages, kind);
    return this.inSight.watch(root, (store) => {
      const top = fullest(store);
      setText(link, store.store);
      setAttribute(link, "href", linkOf(store.store));
      match.set(store);
      const incident = openOf(store)[0];
      setWords(watch, incident ? `watch: ${titleOf(incident.root)} since ${moment(incident.root.opened)}` : "");
      setText(label, top ? top.label : "");
      setText(value, top ? percent(top.pct) : store.resources.length ? "not measured" : "");
      fillTo(fill, top ? top.maximum_pct : 0);
      setText(left, store.rises ? `${span(store.first.time_to_full_s.p50)} (${Math.round(100 * store.first.full_probability)} %)` : store.not_known || "none");
      setText(messages, store.fields.messages == null ? "" : count(store.fields.messages));
      setText(kind, kindOf(store.kind));
    });
  }
}

// Rows out of sight are written once in sight, else every ten draws.
class InSight {
  constructor() {
    this.views = new Map();
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const view = this.views.get(entry.target);
        if (!view) continue;
        view.isSeen = entry.isIntersecting;
        if (view.isSeen && view.waiting) view.write(view.waiting);
      }
    }, { rootMargin: "10%" });
  }

  // Return a view for `reconcile` written by a function of its item.
  watch(root, write) {
    const view = { root, isSeen: true, age: this.views.size % PATIENCE, waiting: null, write(item) {
      view.waiting = null;
      view.age = 0;
      write(item);
    }, set(item) {
      view.age += 1;
      if (view.isSeen || view.age >= PATIENCE) view.write(item);
      else view.waiting = item;
    }, close: () => {
      this.observer.unobserve(root);
      this.views.delete(root);
    } };
    this.views.set(root, view);
    this.observer.observe(root);
    return view;
  }

  close() {
    this.observer.disconnect();
  }
}

function headline(stores) {
  if (!stores.length) return "Overview";
  const isFull = (store) => store.full.length > 0 || (isFilling(store) && isFullNow(store.first.time_to_full_s));
  const full = stores.filter(isFull), calling = stores.filter(hasPage);
  const filling = stores.filter((store) => isFilling(store) && !isFull(store)).sort((a, b) => a.first.time_to_full_s.p50 - b.first.time_to_full_s.p50);
  const of = stores.length === 1 ? "the store" : `${stores.length} stores`, [next] = filling;
  const soon = next ? `${next.store} is full in ${span(next.first.time_to_full_s.p50)}` : "";
  const rising = stores.filter((store) => store.rises).sort((a, b) => b.first.full_probability - a.first.full_probability), [top] = rising;
  const rises = top ? `${rising.length > 1 ? `${rising.length} of ${of} rise: ` : ""}${top.store} ${top.rises}` : "";
  const waiting = stores.filter((store) => store.not_known), [first] = waiting;
  const unknown = waiting.length > 1 ? `${waiting.length} of ${of} not known yet` : first ? `${first.store}: ${first.not_known}` : "";
  if (full.length) return `${full.length === 1 ? `${full[0].store} is full` : `${full.length} stores are full`}${soon ? `, ${soon}` : ""}`;
  if (filling.length) return filling.length === 1 ? soon : `${filling.length} of ${of} are filling, ${soon}`;
  if (calling.length) return `${calling.length === 1 ? `${calling[0].store} needs` : `${calling.length} of ${of} need`} attention, ${rises || unknown || "nothing is filling"}`;
  if (rises || unknown) return [rises, unknown].filter(Boolean).join(", ");
  return stores.length === 1 ? "Nothing is filling" : `Nothing is filling in ${of}`;
}

// What to type where nothing was written.
const COMMANDS = [["Start the job", "mqtwin stream --estate estate.toml --bootstrap-servers localhost:9092 --checkpoint checkpoint"],
  ["Simulate a recording, if you have none", "mqtwin simulate getter-outage --estate estate.toml -o friday.arrow"],
  ["Publish it in fast motion", "mqtwin publish friday.arrow --estate estate.toml --bootstrap-servers localhost:9092 --content-type arrow --speed 240"]];

function startPanel() {
  const steps = COMMANDS.map(([text, command]) => h("li", {}, h("p", {}, text), commandBlock(command)));
  return h("section", { class: "panel", hidden: true, "aria-label": "Commands" }, h("h2", {}, "If nothing is running yet"), h("ol", { class: "actions" }, ...steps));
}

function waitingText() {
  const meta = state.meta;
  if (!meta) return "Waiting for the console's first answer.";
  if (meta.problem) return meta.problem;
  if (meta.missing.length) return `Waiting for the topics ${meta.missing.join(", ")}: the job creates them when it starts.`;
  return "No state record yet: the job writes one after its first batch with events.";
}

class StoreView {
  constructor(name) {
    this.name = name;
    this.title = name;
    this.severity = chip();
    this.heading = h("h1", {}, name);
    this.kind = h("span", { class: "soft" });
    this.match = fidelity();
    this.left = timeLeft();
    this.left.root.classList.add("hero");
    this.chart = new StoreChart(`Usage of ${name} over time`);
    this.long = h("p", { class: "soft" });
    this.meters = h("div", { class: "meters" });
    this.alertList = h("div", { class: "alerts" });
    this.clearedTitle = h("summary");
    this.clearedList = h("div", { class: "alerts" });
    this.cleared = h("details", {}, this.clearedTitle, this.clearedList);
    this.alerts = h("section", {}, h("h2", {}, "Incidents"), this.alertList, this.cleared);
    this.queues = table([["Queue"], ["Messages", "number"], ["Size", "number"]]);
    this.held = panel(h("h2", {}, "Deepest queues"), this.queues.root);
    this.plans = table([["Plan"], ...["From", "Until", "Announced", "Seen", "Status"].map((text) => [text, "number"])]);
    this.planned = panel(h("h2", {}, "Planned work"), this.plans.root);
    this.facts = facts();
    this.storage = table([["Structure"], ["Has", "number"], ["SIZE", "number"], ["May still grow by", "number"]]);
    this.promise = h("p", { class: "soft" });
    this.shares = panel(h("h2", {}, "Storage by structure"), this.promise, this.storage.root);
    this.whatIf = new WhatIf(name, (after) => this.chart.compare(after));
    this.missing = h("p", { class: "empty", hidden: true });
    this.body = h("div", {},
      h("div", { class: "columns ahead" }, h("div", { class: "panel usage" }, h("h2", {}, "Usage and forecast"), this.chart.root, this.long), this.whatIf.root,
        panel(h("h2", {}, "Resources"), this.meters)),
      this.whatIf.advice, this.alerts, this.planned,
      h("div", { class: "columns even" }, this.held, this.shares, panel(h("h2", {}, "Counters"), this.facts.root)));
    this.root = h("div", {}, h("div", { class: "head" }, this.heading, this.kind, this.match.root, this.severity.root), this.left.root, this.missing, this.body);
  }

  draw() {
    const store = state.stores.get(this.name);
    this.body.hidden = this.left.root.hidden = !store;
    this.missing.hidden = !!store;
    if (!store) {
      setText(this.missing, state.stores.size ? "There is no store of this name." : waitingText());
      return;
    }
    setText(this.kind, kindOf(store.kind));
    this.match.set(store);
    this.severity.set(toneOf(store), wordOf(store));
    this.left.set(store);
    setText(this.long, store.long);
    this.chart.draw(store);
    reconcile(this.meters, store.resources, (item) => item.name, meter, (bar, item) => bar.set(store, item, false));
    const incidents = incidentsOf(this.name);
    this.alerts.hidden = incidents.length === 0;
    const open = incidents.filter((incident) => incident.is_open), cleared = incidents.filter((incident) => !incident.is_open);
    for (const [list, own] of [[this.alertList, open], [this.clearedList, cleared]]) {
      reconcile(list, own.slice(0, 20), (incident) => incident.id, incidentView, (part, incident) => part.set(incident, false));
    }
    this.cleared.hidden = cleared.length === 0;
    setText(this.clearedTitle, `${cleared.length} cleared${cleared.length > 20 ? ", the latest 20" : ""}`);
    const fields = store.fields;
    fill(this.queues.body, (fields.queues || []).map((queue) => [queue.name, count(queue.depth), queue.bytes === null ? "" : amount(queue.bytes)]));
    const plans = store.plans || [], number = (value) => (value === null ? "" : count(value));
    this.planned.hidden = plans.length === 0;
    fill(this.plans.body, plans.map((plan) => [plan.queue ? `${plan.id}, ${plan.queue}` : plan.id, moment(plan.begins), moment(plan.ends),
      number(plan.announced), number(plan.seen), plan.getters_away ? `${plan.status}, getters away` : plan.status]), (texts) => texts.slice(0, 2).join());
    this.setStorage(fields);
    this.facts.set(counters(fields));
    this.whatIf.show(!!(state.meta && state.meta.what_if), state.past ? state.past.time : null);
  }

    setStorage(fields) {
    const shares = Object.entries(fields.storage || {});
    this.shares.hidden = shares.length === 0;
    this.held.hidden = shares.length > 0;
    const isPromised = fields.storage_total != null && fields.storage_promised > fields.storage_total;
    setText(this.promise, isPromised ? `Its structures may have ${amount(fields.storage_promised)}, it has ${amount(fields.storage_total)}: not all of them can reach their SIZE.` : "");
    fill(this.storage.body, shares.map(([name, share]) => [name, amount(share.size), amount(share.size_max), share.growth_left == null ? "not known" : amount(share.growth_left)]));
  }

  close() {
    this.chart.close();
  }
}

// Write rows of texts, by the first of each.
function fill(body, rows, keyOf = (texts) => texts[0]) {
  reconcile(body, rows, keyOf, (texts) => {
    const cells = texts.map((_, i) => h(i ? "td" : "th", i ? { class: "number" } : { scope: "row" }));
    return { root: h("tr", {}, ...cells), cells };
  }, (row, texts) => texts.forEach((text, i) => setText(row.cells[i], text)));
}

const AMOUNTS = ["size", "storage_total", "storage_promised", "storage_measured", "storage_free", "augmented"];

function counters(fields) {
  const names = { messages: "messages", uncommitted: "uncommitted", full_puts: "refused as full", overfull_puts: "accepted beyond full",
    offload_rule: "offload rule in force", offloaded_messages: "offloaded messages", size: "size", events: "events", gaps: "gaps",
    duplicates: "duplicates", unmatched_gets: "unmatched gets", refused_alters: "refused alters", drift_pct: "drift", expansions: "expansions",
    pages_unused: "pages unused", storage_total: "storage", storage_promised: "storage promised", storage_free: "storage free",
    storage_measured: "storage measured as free", augmented: "augmented space", members: "members", rate: "messages/s", depth: "waiting" };
  return Object.entries(names).filter(([name]) => fields[name] !== undefined && fields[name] !== null)
    .map(([name, label]) => [label, AMOUNTS.includes(name) ? amount(fields[name]) : name === "drift_pct" ? percent(fields[name]) : count(fields[name])]);
}

class AllIncidents {
  constructor() {
    this.title = "Incidents";
    this.heading = h("h1");
    this.filter = h("input", { type: "search", placeholder: "Filter incidents", title: "By store, resource, condition, severity, cause", "aria-label": "Filter incidents", class: "field" });
    this.filter.addEventListener("input", () => this.draw());
    this.parts = ["Act", "Watch", "Cleared"].map((title) => {
      const list = h("div", { class: "alerts" }), note = h("p", { class: "empty" }), summary = h("summary");
      return { list, note, summary, root: h("section", {}, ...(title === "Cleared" ? [h("details", {}, summary, list)] : [h("h2", {}, title), note, list])) };
    });
    this.root = h("div", {}, h("div", { class: "head" }, this.heading, this.filter), ...this.parts.map((part) => part.root));
  }

  draw() {
    const word = this.filter.value.trim().toLowerCase();
    const all = [...state.incidents.values()].sort(byWeight);
    const textOf = (alert) => `${alert.store} ${alert.label} ${alert.resources.join(" ")} ${alert.condition} ${wordOfAlert(alert)} ${alert.cause}`.toLowerCase();
    const chosen = all.filter((incident) => [incident.root, ...incident.parts, ...incident.cleared].some((alert) => textOf(alert).includes(word)));
    const open = chosen.filter((incident) => incident.is_open);
    const groups = [open.filter((incident) => incident.is_page), open.filter((incident) => !incident.is_page), chosen.filter((incident) => !incident.is_open)];
    setText(this.heading, countText(all));
    this.parts.forEach((part, i) => {
      part.root.hidden = i > 0 && groups[i].length === 0;
      setText(part.summary, `${groups[2].length} cleared`);
      setText(part.note, i === 0 && groups[0].length === 0 ? "Nothing to act on." : "");
      part.note.hidden = part.note.textContent === "";
      reconcile(part.list, groups[i].slice(0, 100), (incident) => incident.id, incidentView, (item, incident) => item.set(incident));
    });
  }
}

class Drift {
  constructor() {
    this.title = "Drift";
    this.note = h("p", { class: "soft" });
    this.table = table([["Store"], ["Drift", "number"], ["Matched", "number"], ["Unmatched gets", "number"], ["Gaps", "number"], ["Baseline", "wide"]]);
    this.panel = panel(this.table.root);
    this.root = h("div", {}, h("div", { class: "head" }, h("h1", {}, "Drift")), this.note, h("section", {}, this.panel));
  }

  draw() {
    const stores = [...state.stores.values()].filter((store) => store.fields.drift_pct != null || store.fields.gaps || store.fields.unmatched_gets || store.fields.baseline)
      .sort((a, b) => Math.abs(b.fields.drift_pct || 0) - Math.abs(a.fields.drift_pct || 0) || byUrgency(a, b));
    const measured = stores.filter((store) => store.fields.drift_pct != null).length;
    setText(this.note, measured ? "The twin less the measurement, in percent of the total, worst resource. It alerts beyond the tolerance three times, or if fewer than 75 % matched in 24 h."
      : "No store was measured yet: send MEASURE events.");
    this.panel.hidden = stores.length === 0;
    reconcile(this.table.body, stores, (store) => store.store, () => {
      const link = h("a"), cells = [1, 2, 3, 4].map(() => h("td", { class: "number" })), base = h("td", { class: "wide soft" });
      return { root: h("tr", {}, h("th", { scope: "row" }, link), ...cells, base), link, cells, base };
    }, (row, store) => {
      const fields = store.fields;
      setText(row.link, store.store);
      setAttribute(row.link, "href", linkOf(store.store));
      [percent(fields.drift_pct, 2), shareText(fields.fidelity), count(fields.unmatched_gets || 0), count(fields.gaps || 0)].forEach((text, i) => setText(row.cells[i], text));
      const base = fields.baseline ? Object.entries(fields.baseline).filter(([, value]) => typeof value === "number").map(([name, value]) => `${name} ${count(value)}`).join(", ") : "none";
      setText(row.base, store.seen ? `${store.seen}; ${base}` : base);
    });
  }
}

class DeadLetters {
  constructor() {
    this.title = "Dead letters";
    this.heading = h("h1");
    this.note = h("p", { class: "soft" });
    this.reasons = table([["Reason"], ["Letters", "number"]]);
    this.latest = h("div");
    this.body = h("div", {}, h("section", {}, panel(this.reasons.root)), h("section", {}, h("h2", {}, "Latest"), this.latest));
    this.root = h("div", {}, h("div", { class: "head" }, this.heading), this.note, this.body);
  }

  draw() {
    const { reasons, latest } = state.letters, all = Object.entries(reasons).sort((a, b) => b[1] - a[1]);
    const total = all.reduce((sum, [, number]) => sum + number, 0);
    setText(this.heading, total ? `${count(total)} dead letter${total === 1 ? "" : "s"}` : "No dead letter");
    setText(this.note, total ? "Events that the job refused, since this console was started and a little before." : "The job has refused no event.");
    this.body.hidden = total === 0;
    reconcile(this.reasons.body, all, ([reason]) => reason, ([reason]) => {
      const value = h("td", { class: "number" });
      return { root: h("tr", {}, h("th", { scope: "row" }, reason), value), value };
    }, (row, [, number]) => setText(row.value, count(number)));
    reconcile(this.latest, latest.slice(0, 50), (letter) => `${letter.topic}/${letter.partition}/${letter.offset}/${letter.index}/${letter.written_s}`, (letter) => ({
      root: h("article", { class: "panel alert" }, h("div", { class: "line" }, h("h3", {}, letter.reason), h("span", { class: "when" }, `${letter.topic}, partition ${letter.partition}, offset ${letter.offset}, index ${letter.index}`)),
        h("p", {}, letter.detail), h("div", { class: "command" }, h("code", { tabindex: "0" }, letter.value))),
    }), () => {});
  }
}

class Job {
  constructor() {
    this.title = "Job";
    this.heading = h("h1");
    this.facts = facts();
    this.root = h("div", {}, h("div", { class: "head" }, this.heading), h("section", {}, panel(this.facts.root)));
  }

  draw() {
    const meta = state.meta;
    if (!meta) {
      setText(this.heading, "Waiting for the console's first answer");
      return;
    }
    const age = ageOf(meta);
    setText(this.heading, state.past ? pastName() : !meta.connected ? "No broker answers" : age === null ? "The job has written nothing yet" : age < LATE_S ? "The job is writing" : `The job has written nothing for ${span(age)}`);
    const sum = (name) => [...state.stores.values()].reduce((total, store) => total + (store.fields[name] || 0), 0);
    this.facts.set([
      ["last record", age === null ? "none" : `${span(Math.max(1, age))} ago`], ["event time", meta.as_of ? dayAndClock(meta.as_of) : "none"],
      ["events/s, last minute", count(meta.events_per_s)], ["state records/s", meta.state_records_per_s.toLocaleString("en")],
      ["events in all", count(meta.events)], ["stores", count(meta.stores)], ["broker", meta.connected ? "answers" : "does not answer"],
      ["topics", meta.missing.length ? `missing: ${meta.missing.join(", ")}` : meta.caught_up ? "read to their ends" : "being read"],
      ["dead letters", count(meta.dead_letters)], ["records that cannot be read", count(meta.unreadable)], ["gaps", count(sum("gaps"))],
      ["duplicates", count(sum("duplicates"))], ["unmatched gets", count(sum("unmatched_gets"))], ["clients of this console", String(meta.clients ?? "")],
    ]);
  }
}

// --- freshness ---

const ageOf = (meta) => (meta.age_s === null ? null : meta.age_s + (Date.now() - state.heard) / 1000);

// What the slider moves in.
function pastName() {
  const { name, events, is_live: isLive } = state.past.moments;
  return isLive ? `The past of ${name}` : `Recording ${name}, ${count(events)} events`;
}

// Why the job writes nothing any more; empty while it runs, and of a recording.
const jobProblem = () => (state.past ? "" : state.meta?.job_problem || "");

// Since when the job has written nothing, in words; empty while it writes.
function ageText() {
  const age = state.meta && state.stores.size && !state.past ? ageOf(state.meta) : null;
  return age === null || age < LATE_S ? "" : `, as of ${span(age)} ago`;
}

function drawFresh() {
  const box = byId("fresh"), text = byId("fresh-text"), banner = byId("banner"), meta = state.meta;
  const silent = (Date.now() - (state.heard || state.started)) / 1000;
  let kind = "waiting", problem = "";
  if (byId("login").open || state.isOut) {
    kind = "waiting"; // for a sign-in: that nothing is heard is no problem of the console
  } else if (state.isBroken || silent > LOST_S) {
    kind = "lost";
    problem = `No answer from the console for ${span(Math.max(1, silent))}: what you see may be out of date.`;
  } else if (meta && !meta.connected) {
    kind = "lost";
    problem = `${meta.problem || "No Kafka answers"}: what you see may be out of date.`;
  } else if (jobProblem()) {
    kind = "lost";
    problem = `${jobProblem()}. What you see is as of then.`;
  } else if (meta && meta.age_s !== null) {
    kind = ageOf(meta) < LATE_S ? "live" : "late";
  }
  setAttribute(box, "data-state", kind);
  if (state.isOut) { // its line stands there
  } else if (meta && meta.recording) {
    if (!problem) kind = "past";
    text.replaceChildren(h("b", {}, state.past && state.past.moments.is_live ? pastName() : `Recording ${meta.recording}`));
    setAttribute(box, "title", "What the console would have shown at the moment of the slider");
  } else if (meta && meta.as_of) {
    const behind = (Date.now() - Date.parse(meta.as_of)) / 1000, written = `written ${span(Math.max(1, ageOf(meta) ?? 1))} ago`;
    text.replaceChildren(h("b", {}, `As of ${dayAndClock(meta.as_of)}`), behind < BEHIND_S ? `, ${written}` : `, ${span(behind)} ago; ${written}`);
    setAttribute(box, "title", "Event time of the latest state record, and when the job wrote something");
  } else {
    setText(text, meta ? "no state record yet" : "connecting");
  }
  setText(banner, problem);
  banner.hidden = !problem;
}

function drawCounts() {
  const pages = [...state.incidents.values()].filter((incident) => incident.is_page).length;
  setText(byId("count-alerts"), pages ? count(pages) : "");
  const letters = Object.values(state.letters.reasons).reduce((sum, number) => sum + number, 0);
  setText(byId("count-letters"), letters ? count(letters) : "");
  const soonest = [...state.stores.values()].filter((store) => store.full.length || isFilling(store)).map((store) => (store.full.length ? 0 : store.first.time_to_full_s.p50)).sort((a, b) => a - b)[0];
  document.title = `${pages ? `(${pages}) ` : ""}${soonest === undefined ? "" : soonest < 1 ? "Full: " : `${span(soonest)}: `}${view ? view.title : "mqtwin"} - ${byId("brand").textContent}`;
}

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (view) view.draw();
    drawFresh();
    drawCounts();
    state.drawn = Date.now();
  });
}

// --- changes ---

function take(changes) {
  state.heard = Date.now();
  state.isBroken = false;
  if (changes.full) {
    state.stores.clear();
    state.incidents.clear();
    state.letters = { reasons: {}, latest: [] };
  }
  state.meta = changes.meta;
  setZone(changes.meta.zone);
  for (const store of changes.stores || []) state.stores.set(store.store, store);
  for (const id of changes.forgotten || []) state.incidents.delete(id);
  for (const incident of changes.incidents || []) {
    const before = state.incidents.get(incident.id), isNew = incident.is_page && !(before && before.is_page);
    if (!changes.full && (isNew || (incident.is_page && incident.urgency > before.urgency))) announce(`${isNew ? "New page" : "Worse"}, ${incident.severity}: ${incident.root.cause}`);
    state.incidents.set(incident.id, incident);
  }
  if (changes.full || (changes.forgotten || []).length || (changes.incidents || []).length) {
    state.ofStore = Map.groupBy([...state.incidents.values()].sort(byWeight), (incident) => incident.store);
  }
  if (changes.letters) state.letters = changes.letters;
  draw();
}

// What the server says by itself; of a recording, only that it is there.
function hear(changes) {
  const { who, role, sign_in: way, site, above, recording, has_past: hasPast } = changes.meta, brand = byId("brand");
  if (site) setText(brand, `mqtwin ${site}`);
  if (above) brand.href = above;
  setText(byId("who"), who ? `${who}, ${role}` : "");
  byId("sign-out").hidden = !who || way !== "login";
  if (!state.past) take(changes);
  state.heard = Date.now();
  state.isBroken = false;
  byId("to-past").hidden = !!state.past || !hasPast || !!recording;
  if (!state.past && (recording || (hasPast && timeInAddress() !== null))) openPast();
}

async function openPast() {
  if (state.isOpening) return;
  state.isOpening = true;
  const { ok, content } = await get("api/moments");
  state.isOpening = false;
  if (!ok || state.past) return;
  state.past = new Past(content, take);
  byId("to-past").hidden = true;
  document.querySelector("header.top").append(state.past.root);
  const plays = state.past.moments.plays && timeInAddress() === null && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  state.past.follow();
  if (plays) state.past.start();
}

// wait: milliseconds from a refusal until it is tried again.
function connect(wait = 2000) {
  source?.close();
  source = new EventSource("api/events");
  source.addEventListener("changes", (event) => hear(JSON.parse(event.data)));
  source.addEventListener("beat", (event) => hear(JSON.parse(event.data)));
  source.addEventListener("again", () => connect());
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) return checkSession(wait);
    state.isBroken = true;
    drawFresh();
  });
}

async function checkSession(wait) {
  const answer = await fetch("api/session", { method: "POST" }).catch(() => null);
  if (answer?.ok) return setTimeout(connect, wait);
  if ([401, 403].includes(answer?.status)) return signedOut(await answer.json());
  state.isBroken = true;
  drawFresh();
  setTimeout(checkSession, 2000, wait);
}

// One line in the place of the freshness, and a button; of a token the dialog that asks for it.
function signedOut({ detail, who, sign_in: way }) {
  if (way === "token") return askForToken(() => { state.started = Date.now(); connect(); });
  const isHere = way === "login", go = () => (isHere ? location.assign(`login?next=${encodeURIComponent(location.hash)}`) : location.reload());
  state.isOut = true;
  source.close();
  byId("sign-out").hidden = !who || !isHere;
  byId("fresh-text").replaceChildren(who ? detail : "Signed out: ", who ? "" : h("button", { onclick: go }, isHere ? "Sign in" : "Reload"));
  setAttribute(byId("main"), "data-stale", "true");
  byId("main").hidden = !state.meta;
  drawFresh();
}

// --- routes ---

const VIEWS = { "": Overview, alerts: AllIncidents, drift: Drift, "dead-letters": DeadLetters, job: Job };

function route() {
  const path = location.hash.replace(/^#\/?/, "").split("?")[0], [head, ...rest] = path.split("/");
  if (path === "main") return; // the link to the content
  view?.close?.();
  if (head === "store" && rest.length) view = new StoreView(decodeURIComponent(rest.join("/")));
  else view = new (VIEWS[head] || Overview)();
  const name = head === "store" ? "overview" : head in VIEWS && head ? head : "overview";
  for (const link of document.querySelectorAll("nav a")) setAttribute(link, "aria-current", link.dataset.view === name ? "page" : null);
  byId("main").replaceChildren(view.root);
  scrollTo(0, 0);
  draw();
}

addEventListener("hashchange", () => {
  route();
  if (state.past) state.past.follow();
  byId("main").focus({ preventScroll: true });
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) draw();
});
byId("to-past").addEventListener("click", openPast);
byId("sign-out").addEventListener("click", () => fetch("logout", { method: "POST" }).finally(() => location.reload()));
addEventListener("refused", () => checkSession(2000));
setInterval(() => {
  if (Date.now() - state.drawn > 1500) drawFresh(); // nothing came that would have drawn it
}, 1000);
route();
connect(0);
