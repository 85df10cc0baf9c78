// Shows the chosen theme before anything is painted. Runs before the page's body is read.

try {
  const theme = localStorage.getItem("medamad.theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // In the frame of another website a browser may keep nothing, see state/kept.ts.
}
