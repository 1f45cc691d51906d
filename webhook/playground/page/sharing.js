// The two texts as a link and in this browser. The part of a link after # is never sent to a server.
const STORED = "claimgate-playground";
const MOST_STORED = 1 << 20;
const MOST_TEXT = 4 << 20;

async function through(bytes, stream) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > MOST_TEXT) throw new RangeError("the link has more than 4 MiB");
    parts.push(value);
  }
}

export async function linkOf(question) {
  const packed = await through(new TextEncoder().encode(JSON.stringify(question)), new CompressionStream("deflate-raw"));
  const text = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  const hash = btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `${location.origin}${location.pathname}#${hash}`;
}

export async function questionOf(hash) {
  const text = atob(hash.replace(/^#/, "").replaceAll("-", "+").replaceAll("_", "/"));
  const packed = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const made = JSON.parse(new TextDecoder().decode(await through(packed, new DecompressionStream("deflate-raw"))));
  if (typeof made?.object !== "string" || typeof made?.cluster !== "string") throw new TypeError("not a playground");
  return made;
}

export function store(question) {
  const text = JSON.stringify(question);
  try {
    if (text.length <= MOST_STORED) localStorage.setItem(STORED, text);
  } catch { /* the browser keeps nothing: a refresh shows the first sample */ }
}

export function stored() {
  try {
    const made = JSON.parse(localStorage.getItem(STORED));
    return typeof made?.object === "string" && typeof made?.cluster === "string" ? made : null;
  } catch {
    return null;
  }
}

const POLICIES = /^(Validating|Mutating)(AdmissionPolicy|AdmissionPolicyBinding|Policy)$|^(Cluster)?Policy$|^PolicyBinding$|^ConstraintTemplate$/;
const OF_CLUSTER = /^(ConfigMap|Namespace|Node|(Cluster|Local)Queue|Queue|ResourceFlavor|Cohort|AdmissionCheck|Topology|PriorityClass|WorkloadPriorityClass|DeviceClass|ResourceSlice|ResourceClaimTemplate|(Cluster)?TrainingRuntime|RuntimeClass|StorageClass|ResourceQuota|LimitRange|CustomResourceDefinition|PolicyException|(Cluster)?ServingRuntime)$/;

// The editor that fits a file: policies, and objects that only policies look up, belong to the cluster.
export function editorFor(content) {
  const kinds = [...content.matchAll(/^(?:\s{0,2}|\{.*?)["']?kind["']?\s*:\s*["']?(\w+)/gm)].map((match) => match[1]);
  const isOfCluster = kinds.some((kind) => POLICIES.test(kind)) || (kinds.length > 0 && kinds.every((kind) => OF_CLUSTER.test(kind)));
  return isOfCluster ? "cluster" : "object";
}
