// A recorded night in the page itself: answers what the console asks a server for. docs/make_demo.py makes the night.
"use strict";

(() => {
  const packed = () => Uint8Array.from(atob(document.getElementById("night").textContent), (letter) => letter.charCodeAt(0));
  const unpacked = () => new Response(new Blob([packed()]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  const night = Promise.resolve().then(unpacked);
  const answer = (content, status = 200) => ({ ok: status === 200, status, json: async () => content });
  const refuse = (detail) => answer({ detail }, 422);
  const OWN = "mqtwin console answers for every moment and any change.";

  // The last of some ascending times until a time; the first where it is earlier.
  const until = (times, time) => times.findLast((own) => own <= time) ?? times[0];

  function moment(own, time) {
    const { meta, letters, stores, incidents } = own.shown[own.moments.times.indexOf(until(own.moments.times, time))];
    const parts = (places) => places.map((place) => own.parts[place]);
    return { version: 1, full: true, meta, stores: parts(stores), incidents: parts(incidents), forgotten: [], ...(letters ? { letters } : {}) };
  }

  // The answer that is nearest to a question, and how it differs from it in words.
  function asked(own, { store, time, traffic = {}, set = {} }) {
    const times = own.asked[store];
    if (!times) return refuse(`This page has answers about ${Object.keys(own.asked).join(", ")}. ${OWN}`);
    const near = until(times, time), key = `${store}|${near.toFixed(0)}`, before = own.what_if[key];
    const scales = Object.fromEntries(before.attributes.map((item) => [item.name, item]));
    const changes = [
      ...Object.entries(traffic).filter(([, value]) => value !== 1),
      ...Object.entries(set).map(([name, value]) => [name, value / scales[name].scale]).filter(([name, value]) => value !== scales[name].value),
    ];
    const when = near === time ? "" : ` Of ${new Date(1000 * near).toISOString().slice(11, 16)} UTC, the nearest moment that this page has.`;
    if (!changes.length) return answer({ ...before, note: before.note + when });
    if (changes.length > 1) return refuse(`This page has answers to one change at a time. ${OWN}`);
    const [[name, value]] = changes, head = `${key}|${name}|`;
    const has = Object.keys(own.what_if).filter((other) => other.startsWith(head)).map((other) => Number(other.slice(head.length)));
    if (!has.length) return refuse(`This page has no answer to that change. ${OWN}`);
    const nearest = has.reduce((best, other) => (Math.abs(other - value) < Math.abs(best - value) ? other : best));
    const found = own.what_if[Object.keys(own.what_if).find((other) => other.startsWith(head) && Number(other.slice(head.length)) === nearest)];
    const label = scales[name] ? `${scales[name].label} ${nearest} ${scales[name].unit}` : `${name} x ${nearest}`;
    return answer({ ...found, note: `${found.note} With ${label}${nearest === value ? "" : ", the nearest that this page has"}.${when}` });
  }

  const questions = {
    "api/session": () => answer({ token_needed: false }),
    "api/moments": (own) => answer(own.moments),
    "api/at": (own, query) => answer(moment(own, Number(query.get("t")))),
    "api/history": (own, query) => (own.history[query.get("store")] ? answer(own.history[query.get("store")]) : refuse("no such store")),
    whatif: (own, _, body) => asked(own, body),
    advise: (own, _, { store, time }) => {
      const times = own.asked[store];
      return times ? answer(own.advice[`${store}|${until(times, time).toFixed(0)}`]) : refuse(`This page has advice on ${Object.keys(own.asked).join(", ")}. ${OWN}`);
    },
  };

  window.fetch = async (path, options = {}) => {
    const [name, query] = path.split("?");
    const ask = questions[name];
    return ask ? ask(await night, new URLSearchParams(query), options.body ? JSON.parse(options.body) : {}) : refuse(`This page is a recording. ${OWN}`);
  };

  window.EventSource = class extends EventTarget {
    static CLOSED = 2;
    readyState = 1;

    constructor() {
      super();
      const send = async () => this.dispatchEvent(new MessageEvent("changes", { data: JSON.stringify(moment(await night, 0)) }));
      send();
      this.timer = setInterval(send, 2000);
    }

    close() {
      clearInterval(this.timer);
    }
  };
})();
