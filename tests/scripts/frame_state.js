// What is seen of the frame, less what a pointer above a button changes: where its parts stand, what is open, in which colours, and whether one can type.
() => {
  const box = (each) => { const { x, y, width, height } = each.getBoundingClientRect(); return each.checkVisibility() ? [x, y, width, height].map(Math.round).join() : "hidden"; };
  const parts = "#pst-primary-sidebar, #pst-secondary-sidebar, dialog, main, .bd-article, .dropdown-menu";
  const copies = [...document.querySelectorAll(".copybtn")].map((each) => each.classList.contains("success"));
  const opened = [...document.querySelectorAll("details, dialog")].map((each) => each.open);
  return JSON.stringify([[...document.querySelectorAll(parts)].map(box), opened, copies, document.documentElement.dataset.theme,
    document.documentElement.dataset.mode, Boolean(document.fullscreenElement), document.activeElement.matches("input"), location.href]);
}
