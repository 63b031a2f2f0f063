// Usage over time with the fan of the forecast: from the last point to 100 % at p10, p50 and p90.

import { announce, clock, h, momentOf, percent, range, span } from "./page.js";

const DASHES = [[], [7, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 2, 1, 2]];
const SVG = "http://www.w3.org/2000/svg";

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), soft: of("--soft"), line: of("--line"), warning: of("--warning"), fan: of("--fan"), then: of("--fan-then"),
    critical: of("--critical-edge"), touch: of("--touch"), veil: of("--veil"), bar: of("--bar"), main: of("--curve") };
}

const coloursOf = (names, main, tone) => Object.fromEntries(names.map((name) => [name, name === main ? tone.main : tone.bar]));

function swatch(colour, dash) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 28 8");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of [["x1", 0], ["x2", 28], ["y1", 4], ["y2", 4], ["stroke", colour], ["stroke-width", 2.5],
    ["stroke-dasharray", dash.join(" ")]]) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

export class UsageChart {
  // title: null makes a small picture beside the same facts in words.
  constructor(title) {
    this.isSmall = title === null;
    this.box = this.isSmall ? h("div", { class: "chart small", "aria-hidden": "true" })
      : h("div", { class: "chart", tabindex: "0", role: "img", "aria-label": `${title}. Arrow keys move the cursor.` });
    this.caption = h("figcaption");
    this.legend = h("ul", { class: "legend" });
    this.body = h("tbody");
    this.headings = h("tr");
    this.table = h("div", { class: "unseen" }, h("table", {}, h("caption", {}, title || ""), h("thead", {}, this.headings), this.body));
    this.root = this.isSmall ? h("div", { class: "small", "aria-hidden": "true" }, this.box, this.legend) : h("figure", {}, this.box, this.legend, this.caption, this.table);
    this.plot = null;
    this.names = "";
    this.forecast = null;
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.box);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.onScheme = () => { this.drop(); this.draw(); };
    this.scheme.addEventListener("change", this.onScheme);
  }

  // columns: times, pct by resource; of a recording now, behind which the curve is what came later. labels: with what percentages are of; plain: without. forecast: {resource, pct, times: {p10, p50, p90}} or null. main: the resource that matters.
  // then: forecast of a what-if. full: the resource that is full, or null. rises: words of a rise. bands: [begin, end] of planned work.
  set(columns, labels, plain, forecast, main, then = null, full = null, rises = "", bands = []) {
    this.bands = bands;
    this.main = main;
    this.full = full;
    this.rises = rises;
    this.then = then;
    this.columns = columns;
    this.labels = labels;
    this.plain = plain;
    this.forecast = forecast;
    this.draw();
  }

  // The place of the present.
  get last() {
    const { times, now } = this.columns;
    return now ? Math.max(0, times.findLastIndex((time) => time <= now)) : times.length - 1;
  }

  draw() {
    if (!this.columns) return;
    if (!window.uPlot) { // what needs no chart does not wait for it
      document.getElementById("chart-library").addEventListener("load", () => this.draw(), { once: true });
      return;
    }
    this.box.hidden = this.columns.times.length < 2; // one point is no line
    if (this.box.hidden) this.caption.textContent = "The curve begins with the second sample.";
    if (!this.plot && this.box.clientWidth === 0) return; // not asked again: it needs a layout
    const names = Object.keys(this.columns.pct);
    const key = [this.main || "", ...names].join("|");
    if (key !== this.names) this.drop();
    const data = [this.columns.times, ...names.map((name) => this.columns.pct[name])];
    if (!this.plot) this.make(names, data);
    else this.plot.setData(data, true);
    this.names = key;
    if (!this.isSmall) this.describe(names);
  }

  make(names, data) {
    const tone = this.tone = colours(), rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const first = this.main;
    const own = coloursOf(names, first, tone);
    const axis = { stroke: tone.soft, grid: { stroke: tone.line, width: 1 }, ticks: { show: false },
      font: `${Math.round(0.75 * rem)}px system-ui, sans-serif` };
    const others = names.filter((name) => name !== first);
    const dashOf = (name) => (name === first ? [] : DASHES[(others.indexOf(name) + (first ? 1 : 0)) % DASHES.length]);
    this.legend.replaceChildren(...names.map((name) => h("li", {}, swatch(own[name], dashOf(name)), this.labels[name] || name)));
    this.plot = new uPlot({
      width: this.box.clientWidth, height: this.box.clientHeight, legend: { show: false }, tzDate: (s) => uPlot.tzDate(new Date(s * 1e3), "Etc/UTC"),
      cursor: { show: !this.isSmall, y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: true, range: (_, low, high) => this.rangeX(low, high) },
        y: { range: (_, low, high) => [0, Math.max(105, (high || 0) * 1.03)] } },
      axes: [{ ...axis, size: 1.5 * rem, space: 3.5 * rem, values: (_, ticks) => ticks.map((s) => clock(s)) }, { ...axis, size: 3.3 * rem, space: 2 * rem, values: (_, ticks) => ticks.map((v) => `${v} %`) }],
      series: [{}, ...names.map((name) => ({ label: name, stroke: own[name], width: (name === first ? 0.2 : 0.09) * rem,
        dash: dashOf(name), points: { show: false }, spanGaps: true }))],
      hooks: { draw: [(u) => this.fan(u)], setCursor: this.isSmall ? [] : [(u) => this.readOut(u)] },
    }, data, this.box);
  }

  rangeX(low, high) {
    if (low === null || high === null) return [0, 1];
    const ends = [this.forecast, this.then].filter(Boolean).map((item) => item.times.p90 ?? 2 * item.times.p50);
    for (const [begin, end] of this.bands) if (begin < high + (high - low) / 2) ends.push(end - high);
    const ahead = Math.min(Math.max(0, ...ends), 4 * Math.max(600, high - low));
    return [low, Math.max((this.columns.now || high) + ahead * 1.04, high, low + 60)];
  }

  fan(u) {
    const tone = this.tone, context = u.ctx, ratio = devicePixelRatio || 1;
    const x = (s) => u.valToPos(s, "x", true), y = (v) => u.valToPos(v, "y", true);
    const { left, top, width, height } = u.bbox;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.fillStyle = tone.then;
    for (const [begin, end] of this.bands) context.fillRect(x(begin), top, x(end) - x(begin), height);
    context.lineWidth = 1.5 * ratio;
    context.setLineDash([]);
    context.strokeStyle = tone.critical;
    context.beginPath();
    context.moveTo(left, y(100));
    context.lineTo(left + width, y(100));
    context.stroke();
    const now = this.columns.times[this.last];
    if (this.columns.now) {
      context.fillStyle = tone.veil;
      context.fillRect(x(now), top, width, height);
      context.strokeStyle = tone.soft;
      context.beginPath();
      context.moveTo(x(now), top);
      context.lineTo(x(now), top + height);
      context.stroke();
    }
    const draw = ({ pct, times: { p10, p50, p90 } }, fill, edge, dash) => {
      const start = [x(now), y(pct)], late = p90 ?? 1e9;
      context.setLineDash([]);
      context.beginPath();
      context.moveTo(...start);
      context.lineTo(x(now + p10), y(100));
      context.lineTo(x(now + late), y(100));
      context.closePath();
      context.fillStyle = fill;
      context.fill();
      context.strokeStyle = edge;
      context.lineWidth = 2.5 * ratio;
      context.setLineDash(dash.map((length) => length * ratio));
      context.beginPath();
      context.moveTo(...start);
      context.lineTo(x(now + p50), y(100));
      context.stroke();
    };
    if (this.forecast) draw(this.forecast, tone.fan, tone.warning, [3, 4]);
    if (this.then) draw(this.then, tone.then, tone.touch, [9, 4]);
    context.restore();
  }

  describe(names) {
    const times = this.columns.times, last = this.last;
    if (last < 0) return;
    const parts = names.filter((name) => this.columns.pct[name][last] != null).map((name) => `${this.labels[name] || name} ${percent(this.columns.pct[name][last])}`);
    const then = this.then ? ` With the values of What if (blue): ${span(this.then.times.p50)} (${range(this.then.times)}).` : "";
    const ahead = this.forecast ? `. ${this.plain[this.forecast.resource] || this.forecast.resource} is full in ${span(this.forecast.times.p50)}`
      + ` (${range(this.forecast.times)}): the fan reaches the 100 % line.`
      : this.full ? `. ${this.plain[this.full] || this.full} is full.` : this.rises ? `. It ${this.rises}.` : ". No resource is likely to fill.";
    this.sentence = `At ${momentOf(times[last])}: ${parts.join(", ")}${ahead}${then}`;
    if (!this.plot || this.plot.cursor.idx == null) this.caption.textContent = this.sentence;
    this.headings.replaceChildren(h("th", { scope: "col" }, "time"), ...names.map((name) => h("th", { scope: "col" }, this.labels[name] || name)));
    const rows = [];
    for (let i = 0; i <= 10; i++) {
      const at = Math.round((last * i) / 10);
      if (rows.length && rows[rows.length - 1] === at) continue;
      rows.push(at);
    }
    this.body.replaceChildren(...rows.map((at) => h("tr", {}, h("th", { scope: "row" }, momentOf(times[at])),
      ...names.map((name) => h("td", {}, this.columns.pct[name][at] == null ? "" : percent(this.columns.pct[name][at]))))));
  }

  readOut(u) {
    const at = u.cursor.idx;
    if (at == null || !this.columns) {
      if (this.sentence) this.caption.textContent = this.sentence;
      return;
    }
    const names = Object.keys(this.columns.pct);
    const values = names.filter((name) => this.columns.pct[name][at] != null).map((name) => `${this.labels[name] || name} ${percent(this.columns.pct[name][at])}`);
    this.caption.textContent = `${momentOf(this.columns.times[at])}: ${values.join(", ")}`;
  }

  onKey(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 };
    if (!this.plot || !(event.key in moves)) return;
    event.preventDefault();
    const times = this.columns.times, at = this.plot.cursor.idx ?? this.last;
    const next = Math.min(times.length - 1, Math.max(0, at + moves[event.key]));
    this.plot.setCursor({ left: this.plot.valToPos(times[next], "x"), top: 10 });
    announce(this.caption.textContent);
  }

  resize() {
    if (!this.plot) this.draw();
    else this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
  }

  drop() {
    if (this.plot) this.plot.destroy();
    this.plot = null;
  }

  close() {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.onScheme);
    this.drop();
  }
}
