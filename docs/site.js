// Whoever has no mouse scrolls wide tables and drawings with the keyboard, for which they must take the focus. The theme
// wraps the tables while it loads, so this waits until it has.
addEventListener("load", () => {
  let count = 0;
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (each.scrollWidth > each.clientWidth) {
      each.tabIndex = 0;
      each.setAttribute("role", "region");
      each.setAttribute("aria-label", `${each.querySelector("table") ? "Table" : "Drawing"} ${++count}`);
    }
  }
  // The copy button of a console takes its commands alone: lines after `$ `, and lines that continue them.
  for (const code of document.querySelectorAll("pre > code")) {
    if (!code.querySelector(".gp")) continue;
    let isCommand = false;
    const commands = code.textContent.split("\n").filter((line, index, lines) => {
      isCommand = line.startsWith("$ ") || (isCommand && lines[index - 1].endsWith("\\"));
      return isCommand;
    });
    code.dataset.copy = commands.map((line) => line.replace(/^\$ /, "")).join("\n");
  }
  // The theme puts each copy button into a navigation landmark of its own, all with one name.
  for (const each of document.querySelectorAll(".md-code__nav")) {
    each.setAttribute("role", "none");
    each.removeAttribute("aria-label");
  }
});
