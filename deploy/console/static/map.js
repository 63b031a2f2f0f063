// The map: a cell a store, grouped, coloured by the time left.

import { GLYPHS, h, kindOf, reconcile, setAttribute, setText } from "./page.js";

const MANY = { coupling_facility: "Coupling facilities", uniform_cluster: "Uniform clusters", queue_manager: "Logs" };
// Of the time until full; the last is for those that nothing is said of.
export const BANDS = { now: ["full now", 1], soon: ["within 15 min", 900], hour: ["within 1 h", 3600], later: ["later", Infinity], call: ["needs attention", 0], steady: ["not likely to fill", 0] };
export const bandOf = (seconds) => Object.keys(BANDS).find((band) => seconds < BANDS[band][1]);

// The queue-sharing group or queue manager of a store, and its name in there.
export function groupOf(store) {
  const slash = store.store.indexOf("/");
  return slash < 0 ? [MANY[store.kind] || kindOf(store.kind), store.store] : [store.store.slice(0, slash), store.store.slice(slash + 1)];
}

// Names of a group often differ in their ends.
const shortOf = (name) => (name.length <= 8 ? name : `${name.slice(0, 2)}\u2026${name.slice(-3)}`);

export class StoreMap {
  // describe: returns {href, band, severity, value, pct, label} of a store.
  constructor(describe) {
    this.describe = describe;
    this.groups = h("div", { class: "groups" });
    this.legend = h("ul", { class: "legend", "aria-label": "Colours" });
    this.root = h("section", { class: "map", "aria-label": "Map of stores. Arrow keys move." }, this.groups, this.legend);
    this.root.addEventListener("keydown", (event) => this.onKey(event));
    this.root.addEventListener("focusin", (event) => this.enter(event.target.closest("a.cell")));
  }

  // stores: in the order in which they are shown; a group stands where its first store does.
  draw(stores) {
    const focused = this.groups.contains(document.activeElement) ? document.activeElement : null;
    const groups = [...Map.groupBy(stores, (store) => groupOf(store)[0])], bands = new Set();
    reconcile(this.groups, groups, ([name]) => name, ([name]) => {
      const number = h("span", { class: "soft" }), cells = h("ul", { class: "cells" });
      return { root: h("section", { class: "group" }, h("h2", { title: name }, h("span", { class: "label" }, name), " ", number), cells), number, cells };
    }, (group, [, own]) => {
      setText(group.number, String(own.length));
      reconcile(group.cells, own, (store) => store.store, (store) => this.cell(store), (cell, store) => bands.add(cell.set(store)));
    });
    reconcile(this.legend, Object.keys(BANDS).filter((band) => bands.has(band)), (band) => band, (band) => ({
      root: h("li", {}, h("span", { class: "swatch", "data-band": band, "aria-hidden": "true" }), BANDS[band][0]) }), () => {});
    const cells = this.cells();
    if (!cells.includes(this.current)) this.enter(cells[0]);
    if (focused && focused.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
  }

  cell(store) {
    const what = h("span", { class: "what" }), link = h("a", { class: "cell", tabindex: "-1" }, what, h("span", {}, shortOf(groupOf(store)[1])));
    return { root: h("li", {}, link), close: () => { if (this.current === link) this.current = null; }, set: (now) => {
      const { href, band, severity, value: text, pct, label, isTaken } = this.describe(now);
      setAttribute(link, "href", href);
      setAttribute(link, "data-band", band);
      setAttribute(link, "data-taken", isTaken ? "" : null);
      setAttribute(link, "aria-label", label);
      setAttribute(link, "title", label);
      setText(what, `${severity ? `${GLYPHS[severity] || "\u25cf"} ` : ""}${text}`);
      link.style.setProperty("--level", `${Math.min(100, pct).toFixed(1)}%`);
      return band;
    } };
  }

  cells() {
    return [...this.groups.querySelectorAll("a.cell")];
  }

  // One cell is reached by Tab; the others by arrow keys from there.
  enter(cell) {
    if (!cell || cell === this.current) return;
    if (this.current) setAttribute(this.current, "tabindex", "-1");
    setAttribute(cell, "tabindex", "0");
    this.current = cell;
  }

  onKey(event) {
    const cells = this.cells(), at = cells.indexOf(document.activeElement), key = event.key;
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: cells.length - 1 }[key] ?? (key === "ArrowDown" || key === "ArrowUp" ? this.beside(cells, at, key === "ArrowDown") : -1);
    if (at < 0 || !cells[next]) return;
    event.preventDefault();
    cells[next].focus();
  }

  // The place of the nearest cell in the row below or above.
  beside(cells, at, isDown) {
    const boxes = cells.map((cell) => cell.getBoundingClientRect()), { top, left } = boxes[at];
    const tops = boxes.map((box) => box.top).filter((own) => (isDown ? own > top + 4 : own < top - 4));
    const row = isDown ? Math.min(...tops) : Math.max(...tops);
    let best = -1;
    boxes.forEach((box, i) => {
      if (Math.abs(box.top - row) < 4 && (best < 0 || Math.abs(box.left - left) < Math.abs(boxes[best].left - left))) best = i;
    });
    return best;
  }
}
