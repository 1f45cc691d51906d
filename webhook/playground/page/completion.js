// Completes what the editor of policies knows: fields of the object, variables, functions, facts with their fields.
import { autocompletion } from "./editor.js";

const EXPRESSION = /[A-Za-z_][\w.?[\]'"/-]*$/;
const KEY = /^\s*(?:- )?[A-Za-z]*$/;
const POLICY_FIELDS = {
  metadata: "", spec: "", matchConstraints: "which requests", resourceRules: "", apiGroups: "", apiVersions: "",
  operations: "CREATE, UPDATE, DELETE, CONNECT or *", resources: "", resourceNames: "", scope: "", namespaceSelector: "",
  objectSelector: "", matchPolicy: "Equivalent or Exact", matchConditions: "", variables: "", validations: "",
  expression: "CEL", message: "", messageExpression: "CEL that returns a text", reason: "", auditAnnotations: "",
  valueExpression: "CEL that returns a text", failurePolicy: "Fail or Ignore", paramKind: "", paramRef: "",
  parameterNotFoundAction: "Allow or Deny", mutations: "", patchType: "ApplyConfiguration or JSONPatch",
  applyConfiguration: "", jsonPatch: "", reinvocationPolicy: "Never or IfNeeded", policyName: "",
  validationActions: "Deny, Warn or Audit", matchResources: "",
};

const option = (label, type, info, detail) => ({ label, type, ...(info ? { info } : {}), ...(detail ? { detail } : {}) });
const elementType = (type) => type?.match(/claimgate\.\w+/)?.[0];

// A path such as `object.spec.?containers[0].` is the names before its last dot.
const namesOf = (path) => path.replace(/\[[^\]]*\]/g, "").replaceAll("?", "").split(".");

function fieldsOfObject(tree, names) {
  let inner = tree;
  for (const name of names) inner = inner?.[name];
  return Object.keys(inner || {}).map((name) => option(name, "property"));
}

function fieldsOfFact(words, fact, names) {
  let structure = words.structures[elementType(words.facts[fact].type)];
  for (const name of names) structure = words.structures[elementType(structure?.[name]?.type)];
  return Object.entries(structure || {}).map(([name, field]) =>
    option(name, "property", field.about, field.type.replaceAll("claimgate.", "")));
}

function members(words, tree, path) {
  const [head, ...names] = namesOf(path).slice(0, -1);
  const fields = ["object", "oldObject"].includes(head) ? fieldsOfObject(tree, names)
    : words.facts[head] ? fieldsOfFact(words, head, names) : [];
  return [...fields, ...Object.entries(words.methods).map(([name, told]) => option(name, "method", told))];
}

function names(words) {
  return [
    ...Object.entries(words.variables).map(([name, told]) => option(name, "variable", told)),
    ...Object.entries(words.facts).map(([name, fact]) => option(name, "variable", fact.about, "fact")),
    ...Object.entries(words.functions).map(([name, told]) => option(name, "function", told)),
  ];
}

// `words` and `fields` return promises of what the server knows; `fields` are those of the object's kind.
export function completions(words, fields) {
  async function source(context) {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const path = before.match(EXPRESSION)?.[0] || "";
    if (!path && !context.explicit) return null;
    const known = await words();
    if (path.includes(".")) {
      const typed = path.slice(path.lastIndexOf(".") + 1).replace(/^\?/, "");
      return { from: context.pos - typed.length, options: members(known, await fields(), path), validFor: /^\w*$/ };
    }
    const keys = KEY.test(before) ? Object.entries(POLICY_FIELDS).map(([name, told]) => option(name, "keyword", told)) : [];
    return { from: context.pos - path.length, options: [...keys, ...names(known)], validFor: /^\w*$/ };
  }
  return autocompletion({ override: [source], icons: false });
}
