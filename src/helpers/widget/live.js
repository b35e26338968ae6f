// Runs in the live panel when its style arrives (`this`). What ipywidgets leaves out: its sliders have no name and tell
// their index, a new state is not read out, and JupyterLab takes keys that are meant for an input.
const panel = this.closest(".explore");
const set = (element, name, value) => element.getAttribute(name) === value || element.setAttribute(name, value);
const tell = () => {
  for (const handle of panel.querySelectorAll(".noUi-handle, .ui-slider-handle")) {
    const slider = handle.closest(".widget-slider, .widget-hslider");
    const readout = slider.querySelector(".widget-readout");
    set(handle, "aria-label", slider.querySelector(".widget-label").textContent);
    set(handle, "aria-valuetext", readout.textContent);
    set(readout, "aria-hidden", "true");
    if (handle.matches(".noUi-handle")) continue;
    set(handle, "role", "slider"); // ipywidgets 7 tells nothing at all
    set(handle, "aria-valuemin", "0");
    set(handle, "aria-valuemax", "100");
    set(handle, "aria-valuenow", String(parseFloat(handle.style.left) || 0));
  }
  const state = panel.querySelector(".explore-state .widget-html-content");
  if (state) set(state, "role", "status");
};
tell();
new MutationObserver(tell).observe(panel, {
  subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["aria-valuetext"],
});
panel.dataset.lmSuppressShortcuts = "true";
panel.addEventListener("keydown", (event) => {
  if (!event.ctrlKey && !event.metaKey && !["Escape", "Tab", "Enter"].includes(event.key)) event.stopPropagation();
});
