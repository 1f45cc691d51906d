// The page: two editors, the samples, files to share, and the question to the server. result.js shows the answer.
import {
  EditorState, EditorView, HighlightStyle, bracketMatching, defaultKeymap, foldGutter, history, historyKeymap,
  indentOnInput, keymap, lineNumbers, syntaxHighlighting, tags, yaml,
} from "./editor.js";
import { clear, showAnswer, showErrors } from "./result.js";

const MOST_CHARACTERS = 4 << 20;
const TIMEOUT_MS = 30000;
const byId = (id) => document.getElementById(id);
const nonce = document.querySelector("meta[name=csp-nonce]").content;

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
  { tag: [tags.string, tags.content], color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--number)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--comment)" },
  { tag: [tags.meta, tags.separator, tags.punctuation], color: "var(--quiet)" },
]);
const theme = EditorView.theme({
  "&": { backgroundColor: "var(--back)", color: "var(--text)", fontSize: "13px" },
  ".cm-content": { fontFamily: "ui-monospace, monospace", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-collapsedLines": { background: "var(--raised)", color: "var(--quiet)" },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: '"·"' },
  "&.cm-focused": { outline: "3px solid var(--accent)", outlineOffset: "-3px" },
  "&.cm-focused .cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, ::selection": {
    backgroundColor: "var(--select)",
  },
});

export function extensions(label, options = []) {
  return [
    lineNumbers(), bracketMatching(), yaml(), syntaxHighlighting(colours), theme, EditorView.lineWrapping,
    EditorView.cspNonce.of(nonce), EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }), ...options,
  ];
}

function editor(id, label) {
  const options = [
    foldGutter(), history(), indentOnInput(), keymap.of([
      { key: "Mod-Enter", run: () => { evaluate(); return true; } }, ...defaultKeymap, ...historyKeymap,
    ]),
  ];
  return new EditorView({ parent: byId(id), state: EditorState.create({ extensions: extensions(label, options) }) });
}

const editors = {
  object: editor("object", "Object or AdmissionReview, in YAML or JSON"),
  cluster: editor("cluster", "Policies, params and objects of the cluster, in YAML or JSON"),
};
let samples = [];
let running = 0;

const text = (name) => editors[name].state.doc.toString();

function write(name, value) {
  const view = editors[name];
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value || "" }, selection: { anchor: 0 } });
  view.scrollDOM.scrollTop = 0;
}

function say(message, isBad = false) {
  byId("state").textContent = message;
  byId("state").className = isBad ? "bad" : "";
}

export function goTo(name, line) {
  const view = editors[name];
  if (!view) return;
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines)).from;
  view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
  view.focus();
}

function question() {
  return { object: text("object"), cluster: text("cluster"), phase: byId("phase").value, isWhole: byId("whole").checked };
}

async function evaluate() {
  const asked = question();
  const mine = ++running;
  clear();
  if (asked.object.length + asked.cluster.length > MOST_CHARACTERS) {
    say("Not evaluated: the texts have more than 4 MiB together. Shorten them.", true);
    return;
  }
  say("Evaluating …");
  try {
    const response = await fetch("evaluate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(asked),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const answer = await response.json();
    if (mine !== running) return;
    if (!response.ok) say(`Not evaluated: ${answer.message}`, true);
    else if (answer.errors) {
      say(`Not evaluated: ${answer.errors.length === 1 ? "1 error" : `${answer.errors.length} errors`}.`, true);
      showErrors(answer.errors, goTo);
    } else {
      const denied = answer.reviews.filter((review) => !review.allowed).length;
      say(`${answer.reviews.length - denied} allowed, ${denied} denied.`);
      showAnswer(answer, { extensions, goTo, isOpen: answer.ownPolicies });
    }
  } catch (error) {
    if (mine === running) say(`Not evaluated: the server did not answer (${error.name}). Is it still running?`, true);
  }
}

function load(value) {
  write("object", value.object);
  write("cluster", value.cluster);
  byId("phase").value = ["auto", "mutate", "validate"].includes(value.phase) ? value.phase : "auto";
  byId("whole").checked = value.isWhole === true;
  byId("about").textContent = typeof value.about === "string" ? value.about : "";
  clear();
  say("");
}

async function open(file) {
  if (file.size > MOST_CHARACTERS) { say("The file is larger than 4 MiB.", true); return; }
  const content = await file.text();
  try {
    const value = JSON.parse(content);
    if (typeof value.object === "string" && value.playground === "claimgate") { load(value); return; }
  } catch { /* a manifest, which is an object to review */ }
  write("object", content);
  clear();
  say(`Opened ${file.name} as the object.`);
}

function save() {
  const content = JSON.stringify({ playground: "claimgate", ...question() }, null, 2);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
  link.download = "claimgate-playground.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  say("Saved. Whoever opens the file in a playground sees the same.");
}

async function begin() {
  samples = await (await fetch("samples")).json();
  for (const [index, sample] of samples.entries()) byId("sample").add(new Option(sample.title, String(index)));
  byId("sample").addEventListener("change", () => load(samples[Number(byId("sample").value)]));
  byId("file").addEventListener("change", (event) => {
    if (event.target.files[0]) open(event.target.files[0]);
    event.target.value = "";
  });
  byId("save").addEventListener("click", save);
  byId("evaluate").addEventListener("submit", (event) => { event.preventDefault(); evaluate(); });
  load(samples[0]);
  document.body.dataset.ready = "true";
}

begin().catch((error) => say(`The samples could not be loaded (${error.name}).`, true));
