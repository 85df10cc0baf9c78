// Shows the chosen theme before anything is painted. Runs before the page's body is read.

const theme = localStorage.getItem("medamad.theme");
if (theme) document.documentElement.dataset.theme = theme;
