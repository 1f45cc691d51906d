// Shows an answer. Whatever it holds is put into the page as text, never as markup.
import { EditorState, EditorView, MergeView } from "./editor.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_DRAWN = 64;
let differences = [];

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const result = () => document.getElementById("result");

export function clear() {
  for (const each of differences) each.destroy();
  differences = [];
  result().replaceChildren();
}

function table(label, heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map((cells) => element("tr", {}, ...cells.map((cell) => {
    const isNumber = typeof cell === "number";
    return element("td", { className: isNumber ? "number" : "" }, isNumber ? String(cell) : cell);
  })));
  const made = element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
  const scroll = element("div", { className: heads.length > 2 ? "scroll wide" : "scroll", tabIndex: 0 }, made);
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", label);
  return scroll;
}

function details(title, content, isOpen = false) {
  return element("details", { open: isOpen }, element("summary", {}, title), content);
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const code = (text) => element("code", {}, text);

function place(name, line, goTo) {
  if (!line || !["object", "cluster"].includes(name)) return name || "–";
  const button = element("button", { type: "button" }, `${name}, line ${line}`);
  button.addEventListener("click", () => goTo(name, line));
  return button;
}

export function showErrors(errors, goTo) {
  const rows = errors.map((each) => [
    place(each.text, each.line, goTo),
    element("span", {}, each.message, each.hint ? element("strong", {}, ` ${each.hint}`) : null),
  ]);
  result().append(element("h2", {}, "What could not be read"), table("Errors", ["Where", "What"], rows));
}

export function showAnswer(answer, page) {
  if (answer.notes.length) {
    result().append(element("ul", { className: "warn" }, ...answer.notes.map((note) => element("li", {}, note))));
  }
  for (const review of answer.reviews) result().append(shownReview(review, page));
  if (answer.queues) result().append(...shownQueues(answer.queues));
}

function shownReview(review, page) {
  const verdict = review.allowed ? "Allowed" : `Denied with code ${review.status.code}`;
  const title = element("h2", {}, element("span", { className: review.allowed ? "good" : "bad" }, verdict),
    `: ${review.operation} ${review.object}`);
  const made = element("section", { className: `verdict ${review.allowed ? "allowed" : "denied"}` }, title);
  made.append(element("pre", { className: "terminal" }, review.kubectl.join("\n")));
  if (review.findings.length) made.append(element("h3", {}, "Findings"), findings(review.findings, page.goTo));
  if (review.patch.length) made.append(element("h3", {}, "What changes"), difference(review, page), patch(review.patch));
  if (review.podSets.length) made.append(element("h3", {}, "Pods that it makes"), podSets(review.podSets));
  made.append(details("Which policy spoke, and why", explanations(review.explanations)));
  if (review.evaluations.length) {
    made.append(details("Expressions: what each read, gave and cost", evaluations(review.evaluations), page.isOpen));
  }
  return made;
}

function findings(listed, goTo) {
  const rows = listed.map((each) => [
    each.result, each.docs ? link(each.docs, each.rule) : code(each.rule), each.message,
    place("object", each.line, goTo), each.policy,
  ]);
  return table("Findings", ["Result", "Rule", "What", "Where", "Policy"], rows);
}

function link(address, text) {
  return element("a", { href: address, rel: "noreferrer", target: "_blank" }, code(text));
}

function difference(review, page) {
  const parent = element("div", { className: "merge", tabIndex: 0 });
  parent.setAttribute("role", "region");
  parent.setAttribute("aria-label", "The object before and after");
  const options = [EditorState.readOnly.of(true), EditorView.editable.of(false)];
  const isNarrow = window.innerWidth < 700;
  const view = new MergeView({
    parent,
    a: { doc: review.before, extensions: page.extensions("Before", options) },
    b: { doc: review.after, extensions: page.extensions("After", options) },
    collapseUnchanged: { margin: 3, minSize: isNarrow ? 6 : 10 },
    gutter: true,
  });
  for (const editor of [view.a, view.b]) editor.contentDOM.setAttribute("role", "textbox");
  differences.push(view);
  return parent;
}

function patch(operations) {
  return details("The patch", element("pre", { className: "terminal", tabIndex: 0 }, operations.join("\n")));
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

function explanations(listed) {
  const asked = listed.filter((each) => each.outcome !== "not registered");
  const rows = asked.map((each) => [
    each.policy, each.phase, each.place || "the object", each.outcome, each.reason || "–", each.cost,
    Number((each.elapsed_s * 1000).toFixed(2)),
  ]);
  const made = element("div", {}, table("Policies", ["Policy", "Phase", "Of", "Outcome", "Why", "Cost", "ms"], rows));
  const others = listed.length - asked.length;
  if (others) made.append(element("p", {}, `${others} further policies are not about such requests.`));
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
  return [element("h2", {}, "Queues of the cluster"), picture, details("The queues as text", text)];
}
