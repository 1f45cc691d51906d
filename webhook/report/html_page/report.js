"use strict";
(() => {
  const isNarrow = matchMedia("(max-width: 40rem)").matches;
  const run = document.getElementById("run");
  if (run && isNarrow) run.open = false;
  const form = document.getElementById("filters");
  if (!form) return;
  const filtering = document.getElementById("filtering");
  const fields = ["result", "severity", "rule", "namespace", "search"].map((name) => document.getElementById(name));
  const search = document.getElementById("search");
  const selects = fields.filter((field) => field !== search);
  const head = (object) => `${object.querySelector("h3").textContent} ${object.querySelector(".where").textContent}`;
  const findings = Array.from(document.querySelectorAll(".finding"), (item) => ({
    item,
    text: `${head(item.closest(".object"))} ${item.textContent}`.toLowerCase(),
  }));
  const parts = [".object", ".group"].map((name) => document.querySelectorAll(name));
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { item, text } of findings) {
      const chosen = selects.every((select) => !select.value || item.dataset[select.id] === select.value);
      const isShown = chosen && words.every((word) => text.includes(word));
      item.classList.toggle("out", !isShown);
      shown += isShown;
    }
    for (const several of parts) {
      for (const part of several) part.classList.toggle("out", !part.querySelector(".finding:not(.out)"));
    }
    document.getElementById("shown").textContent = `${shown} of ${findings.length} findings`;
  };
  // The filters are in the address, so that a link, a bookmark and the Back button have them.
  const keep = () => {
    const chosen = fields.filter((field) => field.value).map((field) => [field.id, field.value]);
    history.replaceState(null, "", `#${new URLSearchParams(chosen)}`);
    show();
  };
  const read = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (location.hash.length > 1 && !fields.some((field) => wanted.has(field.id))) return; // a section of the page
    for (const field of fields) field.value = wanted.get(field.id) || "";
    for (const select of selects) if (select.selectedIndex < 0) select.value = "";
    if (location.hash.length > 1) filtering.open = true;
    show();
  };
  filtering.hidden = false;
  filtering.open = !isNarrow;
  form.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("every").addEventListener("click", () => {
    for (const field of fields) field.value = "";
    keep();
  });
  addEventListener("hashchange", () => {
    read();
    if (new URLSearchParams(location.hash.slice(1)).size) scrollTo(0, 0);
  });
  show();
  read();
})();
