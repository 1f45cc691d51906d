// Shows an answer. All of it is put into the page as text, never as markup.
import { EditorState, EditorView, MergeView, unifiedMergeView } from "./editor.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_DRAWN = 64;
const NARROW_PX = 700; // as in playground.css
const SILENT = ["no problem", "unchanged", "not matched"];
const URGENCY = ["fail", "error", "warn", "skip"];
let differences = [];

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const result = () => document.getElementById("result");

export function markStale() {
  if (result().childElementCount) result().classList.add("stale");
}

export function clear() {
  result().classList.remove("stale");
  for (const each of differences) each.destroy();
  differences = [];
  result().replaceChildren();
}

// Below NARROW_PX a row is a card, each cell with its head; the roles keep it a table for screen readers.
function table(label, heads, rows) {
  const head = element("tr", { role: "row" }, ...heads.map((text, index) => {
    const className = typeof rows[0]?.[index] === "number" ? "number" : "";
    return element("th", { className, scope: "col", role: "columnheader" }, text);
  }));
  const body = rows.map((cells) => element("tr", { role: "row" }, ...cells.map((cell, index) => tableCell(heads[index], cell))));
  const made = element("table", { role: "table" }, element("thead", { role: "rowgroup" }, head),
    element("tbody", { role: "rowgroup" }, ...body));
  return region(heads.length > 2 ? "scroll wide" : "scroll", label, made);
}

function tableCell(head, content) {
  const isNumber = typeof content === "number";
  const made = element("td", { className: isNumber ? "number" : "", role: "cell" }, isNumber ? String(content) : content);
  made.dataset.head = head;
  return made;
}

function region(className, label, content) {
  const made = element("div", { className, tabIndex: 0, role: "region", ariaLabel: label });
  if (content) made.append(content);
  return made;
}

function details(title, content, isOpen = false) {
  return element("details", { open: isOpen }, element("summary", {}, title), content);
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const code = (text) => element("code", {}, text);

// What is between a pair of backticks is code.
function withCode(text) {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, index) => (index % 2 ? code(part) : part)) : [text];
}

function place(name, line, goTo) {
  if (!line || !["object", "cluster"].includes(name)) return name || "–";
  const button = element("button", { type: "button" }, `${name}, line ${line}`);
  button.addEventListener("click", () => goTo(name, line));
  return button;
}

// A message of CEL ends with a line of source and a caret below it, which need letters of one width.
function withSource(message) {
  const [text, ...source] = message.split("\n | ");
  return [element("div", {}, text), source.length ? element("pre", { className: "terminal", tabIndex: 0 }, source.join("\n")) : null];
}

export function showErrors(errors, goTo) {
  const rows = errors.map((each) => [
    place(each.text, each.line, goTo),
    element("div", {}, ...withSource(each.message), each.hint ? element("strong", {}, ...withCode(each.hint)) : null),
  ]);
  result().append(element("h2", {}, "What could not be read"), table("Errors", ["Where", "What"], rows));
}

// A text with a button that copies it.
function terminal(text) {
  const button = element("button", { type: "button", className: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  });
  return element("div", { className: "copied" }, element("pre", { className: "terminal", tabIndex: 0 }, text), button);
}

function shownChecks(checks) {
  const rows = checks.flatMap((each) => each.mistakes.map((mistake) => [each.policy, mistake]));
  return [element("h2", {}, "What ", code("claimgate policies check"), " says"), table("Checks", ["Policy", "What"], rows)];
}

export function showAnswer(answer, page) {
  if (answer.notes.length) {
    result().append(element("ul", { className: "warn" }, ...answer.notes.map((note) => element("li", {}, note))));
  }
  if (answer.checks.length) result().append(...shownChecks(answer.checks));
  for (const review of answer.reviews) result().append(shownReview(review, { ...page, pages: answer.pages }));
  if (answer.queues) result().append(...shownQueues(answer.queues));
}

export function showDenial(rules, load) {
  result().append(element("h2", {}, "What the denial says"));
  for (const rule of rules) {
    const made = element("section", { className: "verdict denied" }, element("h3", {}, ruleName(rule.rule), ": ", ...withCode(rule.title)));
    if (rule.lines.length) made.append(terminal(rule.lines.join("\n")));
    made.append(...shownPage(rule.page), ...rule.policies.map((policy) => loadButton(rule, policy, load)));
    result().append(made);
  }
}

// The page of a rule is Markdown: paragraphs, lists and blocks of code. It is shown as text.
function shownPage(page) {
  return page.split(/^```.*\n?/m).map((part, index) => {
    const text = part.trim();
    if (index % 2) return terminal(text);
    return element("div", { className: "page" }, text.replace(/\[([^\]\n]*)\]\(([^)\n]*)\)/g, "$1 ($2)").replaceAll("`", ""));
  });
}

function loadButton(rule, policy, load) {
  const button = element("button", { type: "button" }, `Load the policy ${policy.name} with the bad example`);
  button.addEventListener("click", () => load(rule, policy));
  return button;
}

// Only an object that was evaluated in full and has no finding is green.
function verdictOf(review) {
  if (!review.allowed) return { verdict: `Denied with code ${review.status.code}`, colour: "bad", border: "denied" };
  const count = (...results) => review.findings.filter((each) => results.includes(each.result)).length;
  const worst = count("fail", "error", "warn");
  if (worst) return { verdict: `Allowed, with ${counted(worst, "finding")}`, colour: "warn", border: "warned" };
  const open = count("skip");
  if (open) return { verdict: `Allowed, with ${counted(open, "rule")} not evaluated`, colour: "", border: "" };
  return { verdict: "Allowed", colour: "good", border: "allowed" };
}

export function worstColour(reviews) {
  const colours = reviews.map((review) => verdictOf(review).colour);
  return ["bad", "warn", ""].find((colour) => colours.includes(colour)) ?? "good";
}

function shownReview(review, page) {
  const { verdict, colour, border } = verdictOf(review);
  const title = element("h2", {}, element("span", { className: colour }, verdict), `: ${review.operation} ${review.object}`);
  const made = element("section", { className: `verdict ${border}` }, title);
  made.append(terminal(review.kubectl.join("\n")));
  if (review.findings.length) made.append(element("h3", {}, "Findings"), findings(review.findings, page));
  if (review.patch.length) made.append(element("h3", {}, "What changes"), difference(review, page), patch(review.patch));
  if (review.podSets.length) made.append(element("h3", {}, "Pods of the object"), podSets(review.podSets));
  made.append(details("What each policy decided, and why", explanations(review.explanations, page.isOpen)));
  if (review.evaluations.length) {
    made.append(details("Expressions: what each expression read, returned and cost", evaluations(review.evaluations), page.isOpen));
  }
  return made;
}

// A click on the id of a rule shows the page of the rule below the findings.
function findings(listed, page) {
  const about = element("div", {});
  const sorted = listed.toSorted((one, other) => URGENCY.indexOf(one.result) - URGENCY.indexOf(other.result));
  const rows = sorted.map((each) => [
    element("span", { className: { fail: "bad", error: "bad", warn: "warn" }[each.result] || "" }, each.result),
    each.severity || "–", linkedRule(each, page.pages[each.rule], about), problem(each),
    place("object", each.line, page.goTo), each.policy,
  ]);
  return element("div", {}, table("Findings", ["Result", "Severity", "Rule", "What", "Where", "Policy"], rows), about);
}

function linkedRule(finding, rule, about) {
  if (!rule) return finding.docs ? link(finding.docs, ruleName(finding.rule)) : ruleName(finding.rule);
  const button = element("button", { type: "button", className: "link" }, ruleName(finding.rule));
  button.addEventListener("click", () => {
    const head = element("h3", { tabIndex: -1 }, ruleName(finding.rule), ": ", ...withCode(rule.title));
    const close = element("button", { type: "button" }, "Close");
    close.addEventListener("click", () => { about.replaceChildren(); button.focus(); });
    about.replaceChildren(element("section", { className: "rule" }, head, ...shownPage(rule.page), close));
    head.focus();
  });
  return button;
}

function problem(finding) {
  const fix = finding.fix ? element("div", { className: "fix" }, element("strong", {}, "Fix: "), ...withCode(finding.fix)) : null;
  return element("div", {}, ...withCode(finding.message), fix);
}

function ruleName(name) {
  const [first, ...others] = name.split("/");
  return element("code", {}, first, ...others.flatMap((part) => ["/", element("wbr"), part]));
}

function link(address, content) {
  return element("a", { href: address, rel: "noreferrer", target: "_blank" }, content);
}

function difference(review, page) {
  const parent = region("merge", "The object before and after");
  const view = window.innerWidth < NARROW_PX ? oneColumn(review, page, parent) : twoColumns(review, page, parent);
  differences.push(view);
  return parent;
}

const readOnly = [EditorState.readOnly.of(true), EditorView.editable.of(false)];

function oneColumn(review, page, parent) {
  const changes = unifiedMergeView({
    original: review.before, mergeControls: false, gutter: true, collapseUnchanged: { margin: 3, minSize: 6 },
  });
  const view = new EditorView({ parent, doc: review.after, extensions: page.extensions("Changes", [...readOnly, changes]) });
  view.contentDOM.setAttribute("role", "textbox");
  return view;
}

function twoColumns(review, page, parent) {
  const view = new MergeView({
    parent,
    a: { doc: review.before, extensions: page.extensions("Before", readOnly) },
    b: { doc: review.after, extensions: page.extensions("After", readOnly) },
    collapseUnchanged: { margin: 3, minSize: 10 },
    gutter: true,
  });
  for (const editor of [view.a, view.b]) editor.contentDOM.setAttribute("role", "textbox");
  return view;
}

function patch(operations) {
  return details("The patch", terminal(operations.join("\n")));
}

function podSets(listed) {
  return element("ul", { className: "pods" }, ...listed.map((each) => {
    const pods = each.pods === null ? "pods: not known" : counted(each.pods, "pod");
    const devices = each.devices ? ` with ${counted(each.devices, "device")}${each.pods === 1 ? "" : " each"}` : "";
    const total = each.devices && each.pods > 1 ? `, ${each.total} in all` : "";
    return element("li", {}, element("strong", {}, each.name), `: ${pods}${devices}${total}`, element("br"), code(each.path || "the object"),
      drawn(each.pods || 0));
  }));
}

function drawn(count) {
  const shown = Math.min(count, MOST_DRAWN);
  const picture = document.createElementNS(SVG, "svg");
  const columns = 16;
  const rows = Math.max(1, Math.ceil(shown / columns));
  picture.setAttribute("width", String(Math.min(shown, columns) * 14 || 1));
  picture.setAttribute("height", String(rows * 14));
  picture.setAttribute("aria-hidden", "true");
  for (let index = 0; index < shown; index += 1) {
    const pod = document.createElementNS(SVG, "rect");
    pod.setAttribute("class", "pod");
    pod.setAttribute("x", String((index % columns) * 14));
    pod.setAttribute("y", String(Math.floor(index / columns) * 14));
    pod.setAttribute("width", "11");
    pod.setAttribute("height", "11");
    pod.setAttribute("rx", "2");
    picture.append(pod);
  }
  return picture;
}

// Shipped policies only if they found something; policies of the page if they are about requests of this kind.
function explanations(listed, isOwn) {
  const registered = listed.filter((each) => each.outcome !== "not registered");
  const asked = isOwn ? registered : registered.filter((each) => !SILENT.includes(each.outcome));
  const rows = asked.map((each) => [
    each.policy, each.phase, each.place || "the object", each.outcome, each.reason || "–", each.cost,
    Number((each.elapsed_s * 1000).toFixed(2)),
  ]);
  const made = element("div", {});
  if (rows.length) made.append(table("Policies", ["Policy", "Phase", "Of", "Outcome", "Why", "Cost", "ms"], rows));
  const silent = registered.length - asked.length;
  if (silent) made.append(element("p", {}, `${counted(silent, "evaluation")} found nothing wrong.`));
  const others = listed.length - registered.length;
  if (others) {
    made.append(element("p", {}, `${others} further ${others === 1 ? "policy is" : "policies are"} not about such requests.`));
  }
  return made;
}

function evaluations(listed) {
  const rows = listed.map((each) => [
    each.policies.join(", "), code(each.source), each.is_error ? element("span", { className: "bad" }, each.value) : code(each.value),
    element("span", {}, ...each.reads.flatMap((path) => [code(path), " "])), each.cost,
  ]);
  return table("Expressions", ["Policy", "Expression", "Gave", "Reads", "Cost"], rows);
}

function shownQueues(queues) {
  const picture = element("img", { className: "queues", alt: "The queues of Kueue as a tree; the text below says the same" });
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(queues.svg)}`;
  const text = element("pre", { className: "terminal", tabIndex: 0 }, queues.text);
  const scroll = region("scroll", "The picture of the queues", picture);
  return [element("h2", {}, "Queues of the cluster"), scroll, details("The queues as text", text)];
}
