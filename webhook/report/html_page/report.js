"use strict";
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const search = document.getElementById("search");
  const selects = ["result", "rule", "namespace"].map((name) => document.getElementById(name));
  const head = (object) => `${object.querySelector("h2").textContent} ${object.querySelector(".where").textContent}`;
  const findings = Array.from(document.querySelectorAll(".finding"), (item) => ({
    item,
    text: `${head(item.closest(".object"))} ${item.textContent}`.toLowerCase(),
  }));
  const objects = document.querySelectorAll(".object");
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { item, text } of findings) {
      const chosen = selects.every((select) => !select.value || item.dataset[select.id] === select.value);
      const isShown = chosen && words.every((word) => text.includes(word));
      item.classList.toggle("out", !isShown);
      shown += isShown;
    }
    for (const object of objects) {
      object.classList.toggle("out", !object.querySelector(".finding:not(.out)"));
    }
    document.getElementById("shown").textContent = `${shown} of ${findings.length} findings`;
  };
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
