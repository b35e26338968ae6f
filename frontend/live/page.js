// The pages that stand alone are light or dark as the reader chose in the book.
try {
  const chosen = localStorage.getItem("mode");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {} // a browser that keeps nothing: then as the system is
