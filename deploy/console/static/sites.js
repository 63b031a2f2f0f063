// The page about several sites: how each is, and what is full first. The console of a site is below its name.

import { announce, askForToken, byId, chip, count, h, kindOf, percent, reconcile, setAttribute, setText, span } from "./page.js";

const LOST_S = 8; // without any event from the server
const MAX_CALM = 12; // cards where nothing needs attention
let source = null, heard = Date.now(), isOut = false, worst = "";

const storeLink = (line) => `${line.site}/#/store/${encodeURIComponent(line.store)}`;
const isUrgent = (line) => line.is_full || line.full_in_s !== null || !["", "info"].includes(line.severity);

function siteCard() {
  const name = h("a"), word = h("span", { class: "soft" }), problem = h("p", { class: "wrong" }), counts = h("p", { class: "soft" });
  const root = h("article", { class: "card" }, h("div", { class: "title" }, h("h3", {}, name), word), problem, counts);
  return { root: h("li", {}, root), set(site) {
    const own = site.severities, number = Object.values(own).reduce((sum, each) => sum + each, 0);
    const parts = ["full", "critical", "warning"].filter((severity) => own[severity]).map((severity) => `${count(own[severity])} ${severity}`);
    setText(name, site.name);
    setAttribute(name, "href", `${site.name}/`);
    setAttribute(root, "data-severity", site.problem ? "critical" : null);
    setText(problem, site.problem);
    problem.hidden = !site.problem;
    setText(word, site.age_s === null ? "" : `written ${span(Math.max(1, site.age_s))} ago`);
    const waits = site.waits_for.length && !site.problem ? `waiting for ${site.waits_for.join(", ")}` : site.is_ready || site.problem ? "no store" : "reading its topics";
    const stale = site.problem && number ? ", as last heard" : "";
    setText(counts, number ? `${count(number)} ${number === 1 ? "store" : "stores"}: ${parts.join(", ") || "nothing calls"}${stale}` : waits);
  } };
}

function storeCard() {
  const severity = chip(), name = h("a"), site = h("span", { class: "soft" }), words = h("b", { class: "big" }), usage = h("p", { class: "soft" });
  const root = h("article", { class: "card" }, h("div", { class: "title" }, h("h3", {}, name), site, severity.root), h("div", { class: "left" }, words), usage);
  return { root: h("li", {}, root), set(line) {
    const tone = line.severity === "info" ? "" : line.severity || (line.is_full ? "full" : line.full_in_s === null ? "" : "warning");
    setText(name, `${line.site} ${line.store}`);
    setAttribute(name, "href", storeLink(line));
    setText(site, kindOf(line.kind));
    severity.set(tone, line.severity || line.is_full ? null : "forecast");
    setAttribute(root, "data-severity", tone || null);
    setText(words, line.is_full ? "Full now" : line.full_in_s === null ? "" : `Full in ${span(line.full_in_s)}`);
    words.hidden = !words.textContent;
    setText(usage, line.resource ? `${line.resource}: ${percent(line.pct)}` : line.not_known || "no usage known");
  } };
}

function take({ meta, sites, stores }) {
  heard = Date.now();
  const lines = stores.filter(isUrgent), lost = sites.filter((site) => site.problem), full = lines.filter((line) => line.is_full);
  setText(byId("who"), meta.who ? `${meta.who}, ${meta.role}` : "");
  byId("sign-out").hidden = !meta.who || meta.sign_in !== "login";
  reconcile(byId("sites"), sites, (site) => site.name, siteCard, (view, site) => view.set(site));
  reconcile(byId("stores"), lines.length ? lines : stores.slice(0, MAX_CALM), (line) => `${line.site} ${line.store}`, storeCard, (view, line) => view.set(line));
  setText(byId("stores-title"), lines.length ? "What needs attention, what is full first" : stores.length ? "Fullest stores" : "");
  const [first] = lines, next = first && first.full_in_s !== null ? `${first.site} ${first.store} is full in ${span(first.full_in_s)}` : "";
  const heading = full.length ? `${full.length === 1 ? `${full[0].site} ${full[0].store} is` : `${full.length} stores are`} full` : next || (lines.length ? `${count(lines.length)} stores need attention` : `Nothing is filling in ${sites.length} sites`);
  setText(byId("heading"), heading);
  if (heading !== worst && (full.length || next)) announce(heading);
  worst = heading;
  document.title = `${full.length ? "Full: " : ""}Sites - mqtwin`;
  setText(byId("banner"), lost.map((site) => `${site.name}: ${site.problem}`).join(". "));
  byId("banner").hidden = !lost.length;
  draw();
}

function draw() {
  if (isOut || byId("login").open) return;
  const silent = (Date.now() - heard) / 1000, isLost = silent > LOST_S || source?.readyState === EventSource.CLOSED;
  setAttribute(byId("fresh"), "data-state", isLost ? "lost" : "live");
  setText(byId("fresh-text"), isLost ? `No answer from the console for ${span(Math.max(1, silent))}` : "All sites");
}

function connect() {
  source?.close();
  source = new EventSource("api/events");
  for (const name of ["changes", "beat"]) source.addEventListener(name, (event) => take(JSON.parse(event.data)));
  source.addEventListener("again", connect);
  source.addEventListener("error", () => (source.readyState === EventSource.CLOSED ? checkSession() : draw()));
}

async function checkSession() {
  const answer = await fetch("api/session", { method: "POST" }).catch(() => null);
  if (answer?.ok) return setTimeout(connect, 2000);
  if ([401, 403].includes(answer?.status)) return signedOut(await answer.json());
  draw();
  setTimeout(checkSession, 2000);
}

function signedOut({ detail, who, sign_in: way }) {
  if (way === "token") return askForToken(connect);
  const isHere = way === "login";
  isOut = true;
  byId("sign-out").hidden = !who || !isHere;
  byId("fresh-text").replaceChildren(who ? detail : "Signed out: ", who ? "" : h("button", { onclick: () => (isHere ? location.assign("login") : location.reload()) }, isHere ? "Sign in" : "Reload"));
  setAttribute(byId("fresh"), "data-state", "waiting");
  byId("main").hidden = true;
}

byId("sign-out").addEventListener("click", () => fetch("logout", { method: "POST" }).finally(() => location.reload()));
setInterval(draw, 1000);
connect();
