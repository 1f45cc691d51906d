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
});
