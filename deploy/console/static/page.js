// Small helpers of the page: elements, words for numbers, lists that keep their elements.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  if (tag === "button") element.type = tag; // not one that submits, unless an attribute says so
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const panel = (...parts) => h("div", { class: "panel" }, ...parts);
export const byId = (id) => document.getElementById(id);

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// A text in which no date is broken at its hyphens.
export function setWords(element, text) {
  if (element.textContent !== text) element.replaceChildren(...text.split(/(\d{4}-\d\d-\d\d)/).map((part, i) => (i % 2 ? h("span", { class: "moment" }, part) : part)));
}

export function setAttribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// Make the children of a parent those of the items, in their order. An item keeps its element, and with it the focus.
export function reconcile(parent, items, keyOf, create, update) {
  const views = parent.views || (parent.views = new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, view] of views) {
    if (!wanted.has(key)) {
      view.close?.();
      view.root.remove();
      views.delete(key);
    }
  }
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let view = views.get(key);
    if (!view) {
      view = create(item);
      views.set(key, view);
    }
    update(view, item);
    if (view.root === place) place = place.nextElementSibling;
    else parent.insertBefore(view.root, place);
  }
}

const numbers = new Intl.NumberFormat("en");
export const count = (value) => numbers.format(Math.round(value));

// Bytes with three digits, as the terminal has them.
export function amount(bytes) {
  let i = 0;
  for (; bytes >= 1024 && i < 4; i++) bytes /= 1024;
  return i ? `${numbers.format(bytes < 999.5 ? Number(bytes.toPrecision(3)) : Math.round(bytes))} ${["KB", "MB", "GB", "TB"][i - 1]}` : `${count(bytes)} bytes`;
}

export const isFullNow = (times) => times.p50 < 1;

// A time left: the two largest units at most, since nobody acts on seconds of an hour.
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "none";
  if (seconds < 1) return "now";
  const unit = unitOf(seconds);
  return unit === "h" ? hours(seconds) : `${Math.round(seconds / SECONDS[unit])} ${unit}`;
}

// The interval of an estimate, in the units of its median: 22 to 114 min around 58 min, 1 h 21 min to 1 h 54 min around
// 1 h 48 min. No p90: beyond the horizon.
export function range({ p10, p50, p90 }) {
  const unit = unitOf(p50);
  const number = (seconds) => (unit === "h" ? hours(seconds) : String(Math.round(seconds / SECONDS[unit])));
  const withUnit = (seconds) => (unit === "h" ? hours(seconds) : `${number(seconds)} ${unit}`);
  if (p90 === null) return `${withUnit(p10)} to later`;
  return number(p10) === number(p90) ? withUnit(p90) : `${number(p10)} to ${withUnit(p90)}`;
}

const SECONDS = { s: 1, min: 60 };
const unitOf = (seconds) => (seconds < 90 ? "s" : Math.round(seconds / 60) < 90 ? "min" : "h");

function hours(seconds) {
  const minutes = Math.round(seconds / 60), rest = minutes % 60;
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h${rest ? ` ${rest} min` : ""}`;
  return `${Math.round(minutes / 1440)} days`;
}

// The periods of the zone of the site: [begin, seconds ahead of UTC, abbreviation].
let zone = [[0, 0, "UTC"]];
export const setZone = (periods) => { zone = periods; };
const periodOf = (ms) => zone.findLast(([begin]) => 1000 * begin <= ms) || zone[0];
const local = (ms) => new Date(ms + 1000 * periodOf(ms)[1]).toISOString();
const dayOf = (text) => local(Date.parse(text)).slice(0, 10);
const clockOf = (text) => `${local(Date.parse(text)).slice(11, 19)} ${periodOf(Date.parse(text))[2]}`;
// With the date, unless it is that of a reference: today, or a time beside it.
export const moment = (text, reference = new Date().toISOString()) => (dayOf(text) === dayOf(reference) ? clockOf(text) : dayAndClock(text));
export const momentOf = (seconds) => moment(new Date(seconds * 1000).toISOString());
export const clock = (seconds) => local(seconds * 1000).slice(11, 16);
export const dayAndClock = (text) => `${dayOf(text)} ${clockOf(text)}`;
const shares = [1, 2].map((digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
export const percent = (value, digits = 1) => (value === null || value === undefined ? "" : `${shares[digits - 1].format(value)} %`);
// Entries, elements, pages and blocks run out; anything else is full.
export const runsOut = (label) => (["entries", "elements", "pages", "blocks"].includes(label) ? "run out" : "is full");
export const kindOf = (kind) => kind.replace("_", " ");

export const GLYPHS = { cleared: "\u2713", full: "\u25a0", critical: "\u25b2", warning: "\u25b3", info: "\u25cb", steady: "\u2013" };
const WORDS = { info: "watch" };

// A severity as shape, word and colour: none of them alone.
export function chip() {
  const glyph = h("span", { "aria-hidden": "true" }), word = h("span");
  const root = h("span", { class: "chip" }, glyph, word);
  return { root, set(severity, text) {
    root.hidden = !severity;
    setAttribute(root, "data-severity", severity || null);
    setText(glyph, GLYPHS[severity] || "\u25cf");
    setText(word, text || WORDS[severity] || severity || "");
  } };
}

export function announce(text) {
  setText(byId("announce"), text);
}

// A command, with a button that copies it.
export function commandBlock(text) {
  const button = h("button", { "aria-label": `Copy ${text}` }, "Copy");
  const code = h("code", { tabindex: "0" }, text);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    announce(`${button.textContent}: ${text}`);
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  return h("div", { class: "command" }, code, button);
}

// An action in its order: sentences, and each command as a block that can be copied.
export function actionParts(action) {
  const parts = [];
  let rest = action.text;
  const say = (text) => {
    const words = text.replace(/^[\s,;.)]+|[\s,;]+$/g, "");
    if (words) parts.push(h("p", {}, words));
  };
  for (const command of action.commands) {
    const at = rest.indexOf(command);
    if (at < 0) continue;
    say(rest.slice(0, at));
    parts.push(commandBlock(command));
    rest = rest.slice(at + command.length);
  }
  say(rest);
  return parts;
}

// Returns a function that asks one question at a time: of those that come meanwhile the last, and only its answer is taken.
export function newest(ask, take) {
  let next = null, open = "";
  return async (question) => {
    const key = JSON.stringify(question);
    next = key === open ? null : { question, key };
    if (open) return;
    while (next !== null) {
      const asked = next;
      next = null;
      open = asked.key;
      const answer = await ask(asked.question);
      open = "";
      if (next === null) take(answer);
    }
  };
}

// The answer to a question: {ok, content}; of a refusal `detail` says why.
export async function get(path, options) {
  const answer = await fetch(path, options).catch(() => null);
  if (answer?.status === 401) dispatchEvent(new Event("refused"));
  return { ok: !!answer?.ok, content: answer ? await answer.json().catch(() => ({})) : { detail: "The console does not answer." } };
}

export function post(path, body) {
  return get(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

// done: called once the token is known.
export function askForToken(done) {
  const dialog = byId("login"), field = byId("token"), wrong = byId("login-wrong");
  if (dialog.open) return;
  byId("login-form").onsubmit = async (event) => {
    event.preventDefault();
    const answer = await fetch("api/session", { method: "POST", headers: { Authorization: `Bearer ${field.value.trim()}` } }).catch(() => null);
    setText(wrong, answer?.ok ? "" : answer ? "That is not the token." : "The console does not answer.");
    if (!answer?.ok) return;
    field.value = "";
    dialog.close();
    done();
  };
  dialog.oncancel = (event) => event.preventDefault();
  dialog.showModal();
}
