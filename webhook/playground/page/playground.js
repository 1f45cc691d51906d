// The page: two editors, the samples, files and links to share, and the questions to the server. result.js shows the
// answer, completion.js completes words.
import {
  EditorState, EditorView, HighlightStyle, bracketMatching, defaultKeymap, foldGutter, history, historyKeymap,
  indentOnInput, keymap, lineNumbers, lintGutter, setDiagnostics, syntaxHighlighting, tags, yaml,
} from "./editor.js";
import { completions } from "./completion.js";
import { clear, markStale, showAnswer, showDenial, showErrors, worstColour } from "./result.js";
import { editorFor, linkOf, questionOf, store, stored } from "./sharing.js";

const MOST_CHARACTERS = 4 << 20;
const MOST_WHILE_TYPING = 200000; // characters; a longer text is evaluated when it is asked for
const MOST_LINES_OF_EXPRESSION = 100; // that are searched for the place of an error
const CARET = /\n \| (.*)\n \| ([.．]*)[\^＾]/; // wide below characters that need several bytes, as in cel-go
const PAUSE_MS = 800;
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

function editor(id, label, further = []) {
  const options = [
    ...further, lintGutter(), EditorView.updateListener.of((update) => { if (update.docChanged) changed(); }), foldGutter(), history(), indentOnInput(), keymap.of([
      { key: "Mod-Enter", run: () => { evaluate(); return true; } }, ...defaultKeymap, ...historyKeymap,
    ]),
  ];
  return new EditorView({ parent: byId(id), state: EditorState.create({ extensions: extensions(label, options) }) });
}

const fetched = new Map();

function json(address) {
  if (!fetched.has(address)) fetched.set(address, fetch(address).then((response) => response.json()));
  return fetched.get(address);
}

function fieldsOfObject() {
  const named = (field) => text("object").match(new RegExp(`["']?\\b${field}["']?\\s*:\\s*["']?([\\w./-]+)`))?.[1] || "";
  return json(`fields?${new URLSearchParams({ api_version: named("apiVersion"), kind: named("kind") })}`);
}

let typing = 0;
let isLoading = false;
let loaded = "";
let before = null;

const editors = {
  object: editor("object", "Object or AdmissionReview, in YAML or JSON"),
  cluster: editor("cluster", "Policies, params and objects of the cluster, in YAML or JSON", [
    completions(() => json("words"), fieldsOfObject),
  ]),
};
let samples = [];
let running = 0;
let asking = "";

const text = (name) => editors[name].state.doc.toString();

function write(name, value) {
  const view = editors[name];
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value || "" }, selection: { anchor: 0 } });
  view.scrollDOM.scrollTop = 0;
}

function say(message, colour = "") {
  byId("state").textContent = message;
  byId("state").className = colour;
}

export function goTo(name, line) {
  const view = editors[name];
  if (!view) return;
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines)).from;
  view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
  view.focus();
}

// A changed text makes the result stale; after a pause it is evaluated again.
function changed() {
  if (isLoading) return;
  markStale();
  say("Changed since this result.");
  clearTimeout(typing);
  const asked = question();
  store(asked);
  if (asked.object.length + asked.cluster.length <= MOST_WHILE_TYPING) typing = setTimeout(evaluate, PAUSE_MS);
}

function mark(errors) {
  for (const [name, view] of Object.entries(editors)) {
    const mine = errors.filter((each) => each.text === name && each.line);
    view.dispatch(setDiagnostics(view.state, mine.map((each) => diagnostic(view.state.doc, each))));
  }
}

// The place of the caret below the line of an expression that a message quotes; null without one. The text of the editor
// may have the line in quotes, folded or escaped: then it is the first place of the word at the caret.
function placeOfCaret(doc, error) {
  const [, source, dots] = error.message.match(CARET) || [];
  if (source === undefined) return null;
  const code = source.trim();
  const word = source.slice(dots.length).match(/^\W?\w+/)?.[0] || code;
  const last = Math.min(error.line + MOST_LINES_OF_EXPRESSION, doc.lines);
  for (const [text, offset] of [[code, dots.length - source.indexOf(code)], [word, 0]]) {
    for (let number = error.line; number <= last; number += 1) {
      const line = doc.line(number);
      const at = line.text.indexOf(text);
      if (at >= 0) return Math.min(line.from + at + offset, line.to);
    }
  }
  return null;
}

function diagnostic(doc, error) {
  const key = doc.line(Math.min(error.line, doc.lines));
  const from = placeOfCaret(doc, error) ?? Math.min(key.from + Math.max((error.column || 1) - 1, 0), key.to);
  const line = doc.lineAt(from);
  const word = line.text.slice(from - line.from).match(/^[\w.]+|^\S/)?.[0].length || 0;
  const message = error.hint ? `${error.message} ${error.hint}` : error.message;
  return { from, to: from + word, severity: "error", message };
}

function question() {
  return { object: text("object"), cluster: text("cluster"), phase: byId("phase").value, isWhole: byId("whole").checked };
}

async function evaluate() {
  const asked = question();
  const key = JSON.stringify(asked);
  if (key === asking) return; // its answer is on the way
  asking = key;
  const mine = ++running;
  clearTimeout(typing);
  if (asked.object.length + asked.cluster.length > MOST_CHARACTERS) {
    asking = "";
    clear();
    say("Not evaluated: the texts have more than 4 MiB together. Shorten them.", "bad");
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
    clear();
    mark(answer.errors || []);
    if (!response.ok) say(`Not evaluated: ${answer.message}`, "bad");
    else if (answer.errors) {
      say(`Not evaluated: ${answer.errors.length === 1 ? "1 error" : `${answer.errors.length} errors`}.`, "bad");
      showErrors(answer.errors, goTo);
    } else if (answer.denial) {
      const count = answer.denial.length;
      say(`Not evaluated: the text is a denial, which names ${count === 1 ? "1 rule" : `${count} rules`}.`);
      showDenial(answer.denial, loadExample);
    } else {
      const denied = answer.reviews.filter((review) => !review.allowed).length;
      say(`${answer.reviews.length - denied} allowed, ${denied} denied.`, worstColour(answer.reviews));
      byId("result").classList.remove("stale");
      showAnswer(answer, { extensions, goTo, isOpen: answer.ownPolicies });
    }
  } catch (error) {
    if (mine !== running) return;
    clear();
    say(`Not evaluated: the server did not answer (${error.name}). Is it still running?`, "bad");
  } finally {
    if (mine === running) asking = "";
  }
}

// Replace the texts of the editors. If a person wrote the old texts, a button brings them back.
function load(value) {
  const present = question();
  const isOwn = loaded !== "" && JSON.stringify(present) !== loaded;
  if (isOwn) before = present;
  isLoading = true;
  write("object", value.object);
  write("cluster", value.cluster);
  isLoading = false;
  byId("phase").value = ["auto", "mutate", "validate"].includes(value.phase) ? value.phase : "auto";
  byId("whole").checked = value.isWhole === true;
  byId("about").textContent = typeof value.about === "string" ? value.about : "";
  loaded = JSON.stringify(question());
  byId("undo").hidden = before === null;
  store(question());
  evaluate();
}

// Load a shipped policy, with an object that breaks one of its rules.
function loadExample(rule, policy) {
  const about = `The policy ${policy.name}, and an example for ${rule.rule}. If the rule is about other objects of the cluster, write these below the policy.`;
  load({ object: rule.example, cluster: policy.text, about });
}

async function open(files) {
  const present = question();
  const made = { ...present, object: [], cluster: [] };
  for (const file of files) {
    if (file.size > MOST_CHARACTERS) { say("The file is larger than 4 MiB.", "bad"); return; }
    const content = await file.text();
    try {
      const value = JSON.parse(content);
      if (typeof value.object === "string" && value.playground === "claimgate") { load(value); return; }
    } catch { /* a manifest */ }
    made[editorFor(content)].push(content);
  }
  const joined = (name) => (made[name].length ? made[name].join("\n---\n") : present[name]);
  load({ ...present, object: joined("object"), cluster: joined("cluster") });
}

function download(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function save() {
  const content = JSON.stringify({ playground: "claimgate", ...question() }, null, 2);
  download("claimgate-playground.json", content, "application/json");
  say("Saved. Open the file in a playground to see the same texts.");
}

async function share() {
  const link = await linkOf(question());
  window.history.replaceState(null, "", link);
  await navigator.clipboard.writeText(link);
  say("Copied a link with both texts. It opens in a playground at the same address; no server gets the texts.");
}

async function saveCase() {
  const response = await fetch("case", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(question()),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const answer = await response.json();
  if (!response.ok) { say(`Not saved: ${answer.message}`, "bad"); return; }
  mark(answer.errors || []);
  if (answer.errors) { say(`Not saved: ${answer.errors[0].message}`, "bad"); return; }
  for (const [name, content] of Object.entries(answer.files)) download(name, content, "application/yaml");
  say("Saved policy.yaml and suite.yaml. Put both into one folder, and run `claimgate test` on it.");
}

function undo() {
  const wanted = before;
  before = null;
  load(wanted);
  byId("undo").hidden = before === null;
}

// Report the error of a button.
const guarded = (work) => () => work().catch((error) => say(`That did not work (${error.name}).`, "bad"));

function openDropped(event) {
  if (!event.dataTransfer?.files.length) return;
  event.preventDefault();
  event.stopPropagation();
  guarded(() => open([...event.dataTransfer.files]))();
}

// The texts of the link in the address; null without one.
async function linked() {
  if (location.hash.length < 2) return null;
  try {
    return await questionOf(location.hash);
  } catch {
    return { ...samples[0], about: "The link is damaged, so a sample is shown." };
  }
}

// A link from another person replaces the stored texts; a button brings them back.
async function firstTexts() {
  const own = stored();
  const value = await linked();
  const isSame = (one) => (one.object || "") === own.object && (one.cluster || "") === own.cluster;
  if (value && own && ![value, ...samples].some(isSame)) before = own;
  return value || own || samples[0];
}

async function begin() {
  samples = await (await fetch("samples")).json();
  for (const [index, sample] of samples.entries()) byId("sample").add(new Option(sample.title, String(index)));
  byId("sample").addEventListener("change", () => load(samples[Number(byId("sample").value)]));
  byId("file").addEventListener("change", (event) => {
    const chosen = [...event.target.files];
    event.target.value = "";
    if (chosen.length) guarded(() => open(chosen))();
  });
  byId("save").addEventListener("click", save);
  byId("share").addEventListener("click", guarded(share));
  byId("case").addEventListener("click", guarded(saveCase));
  byId("undo").addEventListener("click", undo);
  document.addEventListener("dragover", (event) => { if (event.dataTransfer?.types.includes("Files")) event.preventDefault(); });
  document.addEventListener("drop", openDropped, true);
  window.addEventListener("hashchange", async () => { const value = await linked(); if (value) load(value); });
  for (const name of ["phase", "whole"]) byId(name).addEventListener("change", changed);
  byId("evaluate").addEventListener("submit", (event) => { event.preventDefault(); evaluate(); });
  load(await firstTexts());
  document.body.dataset.ready = "true";
}

begin().catch((error) => say(`The samples could not be loaded (${error.name}).`, "bad"));
