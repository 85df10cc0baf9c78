// Applies the chosen theme before the first paint. Runs before the body is parsed.

try {
  const theme = localStorage.getItem("medamad.theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // Embedded in another website, a browser may refuse storage: see state/local-storage.ts.
}
