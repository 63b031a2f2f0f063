// A recording: a slider over its moments, in the address as ?t=, and play.

import { announce, byId, dayAndClock, get, h, momentOf, newest, setAttribute, setText } from "./page.js";

const SPEEDS = [60, 300, 1800]; // seconds of the recording in a second
const FRAME_MS = 250;
const WAIT_MS = 700; // for an answer, until it is said that it takes longer
const STALE_MS = 150; // for an answer, until what is shown, of another moment, is greyed
const STEP_KEYS = { PageUp: -10, PageDown: 10 };

// The time in the address, seconds since 1970; null: none.
export function timeInAddress() {
  const text = new URLSearchParams(location.hash.split("?")[1] || "").get("t");
  const seconds = text === null ? NaN : Date.parse(text) / 1000;
  return Number.isNaN(seconds) ? null : seconds;
}

// The address of a moment; whole seconds are enough to find it again.
const textOf = (seconds) => new Date(Math.ceil(seconds) * 1000).toISOString().replace(".000", "");

export class Past {
  // moments: the answer of api/moments. onMoment: called with all that the page shows of a moment.
  constructor(moments, onMoment) {
    this.moments = moments;
    this.onMoment = onMoment;
    this.at = -1; // place in the times
    this.ask = newest((time) => this.fetchMoment(time), (answer) => this.take(answer));
    this.input = h("input", { type: "range", min: 0, max: moments.times.length - 1, step: 1, "aria-label": "Moment of the recording" });
    this.input.addEventListener("input", () => { this.stop(); this.go(Number(this.input.value)); });
    this.input.addEventListener("keydown", (event) => {
      if (!(event.key in STEP_KEYS)) return;
      event.preventDefault();
      this.stop();
      this.go(this.at + STEP_KEYS[event.key]);
    });
    this.clock = h("output");
    this.play = h("button", {}, "Play");
    this.play.addEventListener("click", () => (this.timer ? this.stop() : this.start()));
    this.speed = h("select", { "aria-label": "Speed" }, ...SPEEDS.map((speed) => h("option", { value: speed }, `x ${speed}`)));
    this.speed.value = SPEEDS[1];
    const first = moments.times[0], span = Math.max(1, moments.times[moments.times.length - 1] - first);
    this.marks = h("div", { class: "marks" }, ...moments.marks.map((mark) => {
      const text = `${momentOf(mark.time)} ${mark.store}, ${mark.change}: ${mark.cause}`;
      const button = h("button", { title: text, "aria-label": text, "data-severity": mark.severity });
      button.style.left = `${(100 * (mark.time - first)) / span}%`;
      button.addEventListener("click", () => { this.stop(); this.go(this.placeFrom(mark.time)); });
      return button;
    }));
    this.note = h("span", { class: "soft", role: "status" });
    this.live = h("button", { hidden: !moments.is_live }, "Back to now");
    this.live.addEventListener("click", () => {
      history.replaceState(null, "", location.hash.split("?")[0] || "#/");
      location.reload();
    });
    this.root = h("section", { class: "past", "aria-label": "Recording" }, h("div", { class: "line" }, this.play, this.speed, this.clock, this.live, this.note),
      h("div", { class: "slide" }, this.marks, this.input));
  }

  // The place of the last moment until a time, and of the first from it on.
  placeOf(seconds) {
    const { times } = this.moments;
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (times[middle] <= seconds) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  placeFrom(seconds) {
    const place = this.placeOf(seconds), { times } = this.moments;
    return times[place] >= seconds ? place : Math.min(place + 1, times.length - 1);
  }

  get time() {
    return this.moments.times[Math.max(0, this.at)];
  }

  // Goes to the moment of the address; where it has none, stays and puts it there.
  follow() {
    const asked = timeInAddress(), place = asked === null ? this.at : this.placeOf(asked);
    if (this.at < 0 || place !== this.at) this.go(place < 0 ? this.placeOf(this.moments.first) : place);
    else this.write();
  }

  write() {
    history.replaceState(null, "", `#${location.hash.slice(1).split("?")[0] || "/"}?t=${textOf(this.time)}`);
  }

  go(place) {
    this.at = Math.min(Math.max(0, place), this.moments.times.length - 1);
    this.input.value = this.at;
    setText(this.clock, dayAndClock(textOf(this.time)));
    setAttribute(this.input, "aria-valuetext", this.clock.textContent);
    this.write();
    this.isAwaited = true;
    this.ask(this.time);
  }

  // Of another moment while an answer is awaited: greyed, after a while with a note.
  async fetchMoment(time) {
    const wait = setTimeout(() => setText(this.note, "reading the events of then"), WAIT_MS);
    const stale = setTimeout(() => setAttribute(byId("main"), "data-stale", "true"), STALE_MS);
    const answer = await get(`api/at?t=${time}`);
    clearTimeout(wait);
    clearTimeout(stale);
    return answer;
  }

  take({ ok, content }) {
    this.isAwaited = false;
    setText(this.note, ok ? "" : content.detail || "The console does not answer.");
    setAttribute(byId("main"), "data-stale", ok ? null : "true");
    if (ok) this.onMoment(content);
  }

  start() {
    if (this.at >= this.moments.times.length - 1) this.go(0);
    let time = this.time;
    setText(this.play, "Pause");
    this.timer = setInterval(() => {
      time += (Number(this.speed.value) * FRAME_MS) / 1000;
      const place = this.placeOf(time);
      if (place !== this.at && !this.isAwaited) this.go(place); // a slow server shows fewer moments, at the same speed
      if (this.at >= this.moments.times.length - 1) this.stop();
    }, FRAME_MS);
  }

  stop() {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    setText(this.play, "Play");
    announce(`Stopped at ${this.clock.textContent}`);
  }
}
