// What-if: sliders over a store, answered by the server.

import { actionParts, announce, count, h, isFullNow, newest, post, range, runsOut, setText, span } from "./page.js";

const TRAFFIC = [["puts", "puts", 0, 4, 0.1], ["gets", "gets", 0, 2, 0.1], ["lengths", "message lengths", 0.25, 4, 0.25]];
const WAIT_MS = 120;

export class WhatIf {
  // onAnswer: called with {resource, times} of what would be, or null where that is what is.
  constructor(store, onAnswer) {
    this.store = store;
    this.onAnswer = onAnswer;
    this.values = { traffic: {}, set: {} };
    this.sliders = h("div", { class: "sliders" });
    this.before = outcome("now");
    this.after = outcome("then");
    this.note = h("p", { class: "soft", role: "status" });
    this.reset = h("button", {}, "Reset");
    this.reset.addEventListener("click", () => {
      this.build(this.attributes);
      this.ask();
    });
    this.plans = h("div");
    this.advice = h("section", { class: "panel", hidden: true }, h("h2", {}, "What would help"), this.plans);
    this.help = h("button", {}, "What would help");
    this.help.addEventListener("click", () => this.advise());
    this.held = h("button", { hidden: true }, "Would it have held?");
    this.held.addEventListener("click", () => this.lookBack());
    this.since = h("p", { role: "status" });
    this.time = null;
    this.root = h("section", { class: "panel whatif", hidden: true, "aria-label": "What if" }, h("h2", {}, "What if"),
      h("p", { class: "soft" }, "Nothing is changed: the twin is rolled forward with these values."),
      this.sliders, h("div", { class: "compare" }, this.before.root, this.after.root), this.note, this.since,
      h("div", { class: "line" }, this.reset, this.help, this.held));
    this.isBuilt = false;
    this.askNewest = newest((question) => post("whatif", question), (answer) => this.take(answer));
  }

  // time: moment of a recording, seconds since 1970; null: the present.
  show(isOffered, time) {
    this.root.hidden = !isOffered;
    const isElsewhen = time !== this.time;
    this.time = time;
    this.held.hidden = time === null;
    if (isElsewhen) this.advice.hidden = true;
    if (isElsewhen) setText(this.since, "");
    if (isOffered && (!this.isBuilt || isElsewhen)) {
      this.isBuilt = true;
      this.ask();
    }
  }

  // The smallest changes with which it is not full, each with its statement.
  async advise() {
    this.help.disabled = true;
    const time = this.time, { ok, content } = await post("advise", { store: this.store, traffic: this.values.traffic, time });
    this.help.disabled = false;
    if (time !== this.time) return;
    const note = h("p", { class: "soft" }, ok ? content.note : content.detail || "No answer.");
    const plans = ok ? content.plans.map((plan) => h("li", {}, h("h3", {}, plan.title), h("ol", { class: "steps" }, ...plan.steps.map((step) => h("li", {}, ...actionParts(step)))))) : [];
    const others = ok && content.left_out.length ? [h("details", {}, h("summary", {}, "Left out"), h("ul", {}, ...content.left_out.map((text) => h("li", {}, text))))] : [];
    this.advice.hidden = false;
    this.plans.replaceChildren(note, h("ul", { class: "plans" }, ...plans), ...others);
    announce(note.textContent);
  }

  // What the settings would have changed in what has happened since.
  async lookBack() {
    this.held.disabled = true;
    const { time } = this, { content } = await post("hindsight", { store: this.store, set: this.values.set, time });
    this.held.disabled = false;
    if (time === this.time) setText(this.since, content.note || content.detail || "No answer.");
  }

  build(attributes) {
    this.attributes = attributes;
    this.values = { traffic: {}, set: {} };
    const traffic = TRAFFIC.map(([name, label, low, high, step]) => this.slider(label, low, high, step, 1, (value) => `x ${value}`, (value) => { this.values.traffic[name] = value; }));
    const settings = attributes.map((item) => this.slider(item.label, item.min, item.max, item.step, item.value, (value) => (value || item.unit !== "MB" ? `${count(value)} ${item.unit}` : "none"),
      (value) => { this.values.set[item.name] = value * (item.scale || 1); }));
    this.sliders.replaceChildren(...traffic, ...settings);
  }

  slider(label, low, high, step, value, textOf, onValue) {
    const id = `whatif-${label.replaceAll(/[^A-Za-z0-9]/g, "-")}`;
    const output = h("output", { for: id }, textOf(value));
    const input = h("input", { type: "range", id, min: low, max: high, step });
    input.value = value;
    input.addEventListener("input", () => {
      setText(output, textOf(Number(input.value)));
      onValue(Number(input.value));
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), WAIT_MS);
    });
    return h("div", {}, h("label", { for: id }, label, output), input);
  }

  ask() {
    this.askNewest({ store: this.store, ...this.values, time: this.time });
  }

  take({ ok, content }) {
    if (!ok) {
      setText(this.note, content.detail || "No answer.");
      return;
    }
    if (!this.attributes) this.build(content.attributes);
    this.before.set(content.before);
    this.after.set(content.after);
    setText(this.note, content.note || "");
    const times = content.after.time_to_full_s, isSame = JSON.stringify(content.after) === JSON.stringify(content.before);
    this.onAnswer(times === null || isSame || isFullNow(times) ? null : { resource: content.after.resource, times });
    announce(`What if: ${this.after.text()}`);
  }
}

function outcome(title) {
  const big = h("dd", { class: "big" }), more = h("dd", { class: "soft" }), fits = h("dd", { class: "soft" });
  return { root: h("dl", {}, h("dt", {}, title), big, more, fits), text: () => `${big.textContent}, ${more.textContent}`, set(result) {
    const times = result.time_to_full_s;
    if (times === null) {
      setText(big, "not full");
      setText(more, `within ${span(result.horizon_s)}`);
    } else if (isFullNow(times)) {
      setText(big, "full now");
      setText(more, `${result.label}: puts fail`);
    } else {
      setText(big, span(times.p50));
      setText(more, `until ${result.label} ${runsOut(result.label)} (${range(times)}, probability ${Math.round(100 * result.probability)} %)`);
    }
    setText(fits, result.messages_that_fit === null ? "" : `${count(result.messages_that_fit)} messages fit without gets`);
  } };
}
