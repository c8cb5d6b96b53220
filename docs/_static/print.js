// Paper is white: a dark page is printed as a light one.
const root = document.documentElement;
let shown = root.dataset.theme;
addEventListener("beforeprint", () => {
  shown = root.dataset.theme;
  root.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  root.dataset.theme = shown;
});
