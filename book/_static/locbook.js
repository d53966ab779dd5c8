// A region that scrolls must be reached by keyboard. The theme sees to it when a page opens;
// regions in a closed dropdown have no width until then, and formulas are set later.
const SCROLLING = "pre, .output, mjx-container[display='true'], .pst-scrollable-table-container";
function makeScrollingRegionsReachable() {
  for (const region of document.querySelectorAll(SCROLLING)) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
}

// A formula in a line cannot break. One that is longer than the line scrolls, on a phone.
function tameLongFormulas() {
  for (const formula of document.querySelectorAll("mjx-container:not([display])")) {
    const room = formula.closest("p, li, dd, td, th, div").clientWidth;
    const isLong = room > 0 && formula.scrollWidth > room;
    formula.classList.toggle("lb-long-formula", isLong);
    if (isLong) formula.tabIndex = 0;
  }
}

function fitToWidth() {
  tameLongFormulas();
  makeScrollingRegionsReachable();
}

document.addEventListener("click", () => setTimeout(fitToWidth));
document.addEventListener("toggle", fitToWidth, true);
window.addEventListener("resize", fitToWidth);
window.addEventListener("load", () => {
  const formulas = window.MathJax?.startup?.promise ?? Promise.resolve();
  formulas.then(fitToWidth);
});

// The theme opens files in a new tab; these are to be kept.
window.addEventListener("load", () => {
  const links = document.querySelectorAll(".btn-download-source-button, .btn-download-script-button");
  for (const link of links) {
    link.download = "";
    link.removeAttribute("target");
  }
});

// Paper is white: print in the light colours, whatever the screen shows.
function colourForPaper(onPaper) {
  const theme = document.documentElement.dataset;
  if (onPaper === ("screenTheme" in theme)) return;
  if (onPaper) theme.screenTheme = theme.theme;
  theme.theme = onPaper ? "light" : theme.screenTheme;
  if (!onPaper) delete theme.screenTheme;
}
window.addEventListener("beforeprint", () => colourForPaper(true));
window.addEventListener("afterprint", () => colourForPaper(false));
window.matchMedia("print").addEventListener("change", (media) => colourForPaper(media.matches));
