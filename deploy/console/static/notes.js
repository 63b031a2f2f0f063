// Notes of people on an alert, and the form for one.

import { announce, h, moment, post, reconcile, setText } from "./page.js";

const NAME = "mqtwin-who"; // in the browser's storage: the name that was given last
const WORDS = { acknowledged: "Acknowledge", useful: "Useful", useless: "Useless", comment: "Comment", acted: "Done" };

export const acknowledgementOf = (alert) => alert.notes.findLast((note) => note.kind === "acknowledged");
const doneOf = (alert, action) => alert.notes.findLast((note) => note.kind === "acted" && note.action === action.id);
export const byWhom = (note) => `${note.kind === "acted" ? "done" : note.kind} by ${note.who} at ${moment(note.time)}`;

export class Notes {
  constructor() {
    this.list = h("ul", { class: "notes", "aria-label": "Notes" });
    const buttons = Object.keys(WORDS).slice(0, 4).map((kind) => h("button", { onclick: () => this.open(kind) }, WORDS[kind]));
    [this.acknowledge, this.useful, this.useless, this.comment] = buttons;
    this.buttons = h("div", { class: "line" }, ...buttons);
    this.place = h("div");
    this.root = h("div", { class: "noted" }, this.list, this.place, this.buttons);
  }

  // isOffered: true where notes can be written, or the verified name of their writer.
  set(alert, isOffered) {
    this.alert = alert;
    this.who = isOffered === true ? "" : isOffered;
    reconcile(this.list, alert.notes, JSON.stringify, (note) => {
      const action = alert.runbook.find((item) => item.id === note.action), what = note.action ? ` (${action?.summary || note.action})` : "";
      const head = note.kind === "comment" ? `${note.who} at ${moment(note.time)}` : `${byWhom(note)}${what}`;
      return { root: h("li", {}, h("b", {}, head), note.text ? `: ${note.text}` : "") };
    }, () => {});
    this.list.hidden = alert.notes.length === 0;
    this.buttons.hidden = !isOffered;
    this.acknowledge.hidden = !alert.is_open || !!acknowledgementOf(alert);
    this.useful.hidden = this.useless.hidden = !alert.is_foreseen;
    if (!isOffered) this.close();
    this.root.hidden = this.list.hidden && this.buttons.hidden;
  }

  // What stands below an action: by whom it was done, or a button to say so.
  done(action, isOffered) {
    const note = doneOf(this.alert, action);
    if (note) return h("p", { class: "done" }, `\u2713 ${byWhom(note)}`);
    return isOffered ? h("button", { "aria-label": `Done: ${action.summary}`, onclick: () => this.open("acted", action) }, WORDS.acted) : null;
  }

  open(kind, action = null) {
    const isComment = kind === "comment", title = action && `Done: ${action.summary}`, problem = h("p", { class: "wrong", role: "alert" });
    const who = h("input", { type: "text", name: "who", maxlength: 64, required: !this.who, autocomplete: "name" });
    const text = h("input", { type: "text", name: "text", maxlength: 500, required: isComment });
    const send = h("button", { type: "submit" }, WORDS[kind]);
    who.value = this.who || localStorage.getItem(NAME) || "";
    const form = h("form", { class: "note", "aria-label": title || WORDS[kind] }, title && h("p", {}, h("b", {}, title)),
      this.who ? null : h("label", {}, "Your name", who), h("label", {}, isComment ? "Comment" : "Comment, if any", text), h("div", { class: "line" }, send, h("button", { onclick: () => this.close() }, "Cancel")), problem);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      send.disabled = true;
      const { ok, content } = await post("note", { alert_id: this.alert.alert_id, kind, action: action && action.id, who: who.value, text: text.value });
      send.disabled = false;
      if (!ok) return setText(problem, content.detail || "No answer.");
      if (!this.who) localStorage.setItem(NAME, who.value);
      announce(byWhom(content));
      this.close();
    });
    form.addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
    this.place.replaceChildren(form);
    (who.value ? text : who).focus();
  }

  close() {
    const hadFocus = this.place.contains(document.activeElement);
    this.place.replaceChildren();
    if (hadFocus) this.comment.focus();
  }
}
