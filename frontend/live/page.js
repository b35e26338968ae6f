// The pages that stand alone are light or dark as the reader chose in the book.
try {
  const chosen = localStorage.getItem("mode");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {} // a browser that keeps nothing: then as the system is
// The button steps through the same modes as the book's own button and keeps the choice under the same names.
const MODES = ["auto", "light", "dark"];
const NAMES = { auto: "as the system", light: "light", dark: "dark" };
addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement;
  const button = document.createElement("button");
  let mode = root.dataset.theme ?? "auto";
  const name = () => {
    button.ariaLabel = `Colours: ${NAMES[mode]}`;
    button.title = button.ariaLabel;
  };
  button.type = "button";
  button.className = "house-colours";
  button.innerHTML =
    '<svg viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="9.5" fill="none" stroke="currentColor" stroke-width="2.5"/><path d="M12 2.5a9.5 9.5 0 0 1 0 19z" fill="currentColor"/></svg>';
  button.addEventListener("click", () => {
    mode = MODES[(MODES.indexOf(mode) + 1) % MODES.length];
    if (mode === "auto") delete root.dataset.theme;
    else root.dataset.theme = mode;
    name();
    try {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      localStorage.setItem("mode", mode);
      localStorage.setItem("theme", mode === "auto" ? (dark ? "dark" : "light") : mode);
    } catch {} // a browser that keeps nothing: then for this page alone
  });
  name();
  document.querySelector(".house nav")?.append(button);
});
