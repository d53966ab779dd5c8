// A region that scrolls must be reached by keyboard. The theme sees to it when a page opens;
// regions in a closed dropdown have no width until then, and formulas are set later.
const SCROLLING = "pre, .output, mjx-container[display='true'], .pst-scrollable-table-container";
function makeScrollingRegionsReachable() {
  for (const region of document.querySelectorAll(SCROLLING)) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
}
document.addEventListener("click", () => setTimeout(makeScrollingRegionsReachable));
document.addEventListener("toggle", makeScrollingRegionsReachable, true);
window.addEventListener("load", () => {
  const formulas = window.MathJax?.startup?.promise ?? Promise.resolve();
  formulas.then(makeScrollingRegionsReachable);
});

// The theme opens files in a new tab; these are to be kept.
window.addEventListener("load", () => {
  const links = document.querySelectorAll(".btn-download-source-button, .btn-download-script-button");
  for (const link of links) {
    link.download = "";
    link.removeAttribute("target");
  }
});
