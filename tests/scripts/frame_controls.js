// The frame's controls that are seen, two of a kind: buttons and folds around the text, folds and "Copy" in it. Each is
// marked with its number; what is returned says what it is.
() => {
  const frame =
    ".bd-header-article button, .bd-sidebar-primary button, .bd-sidebar-primary summary, .bd-sidebar-secondary button";
  const text = "main .copybtn, main .bd-article details:not([data-when]) > summary, main .enlarge";
  const inside = (menu) => menu && !menu.classList.contains("show");
  const kinds = {};
  const found = [...document.querySelectorAll(`${frame}, ${text}`)].filter((each) => {
    if (!each.checkVisibility({ visibilityProperty: true }) || inside(each.closest(".dropdown-menu"))) return false;
    const box = each.getBoundingClientRect();
    if (!box.width || !box.height || box.right < 1 || box.left > innerWidth - 1) return false; // a menu beside the screen
    const kind = `${each.tagName} ${[...each.classList].join(" ")} ${each.closest("details")?.className ?? ""}`;
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    return kinds[kind] <= 2;
  });
  return found.map((each, k) => {
    each.dataset.pressed = k;
    return (
      each.ariaLabel ||
      each.title ||
      each.dataset.bsOriginalTitle ||
      `${each.className} ${each.textContent.trim().slice(0, 40)}`
    );
  });
}
