// A region that scrolls must be reached by keyboard. The theme sees to it when a page opens;
// regions in a closed dropdown have no width until then, and formulas are set later.
function makeScrollingRegionsReachable() {
  for (const region of document.querySelectorAll("pre, .output, mjx-container[display='true']")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
}
document.addEventListener("click", () => setTimeout(makeScrollingRegionsReachable));
document.addEventListener("toggle", makeScrollingRegionsReachable, true);
window.addEventListener("load", () => {
  const formulas = window.MathJax?.startup?.promise ?? Promise.resolve();
  formulas.then(makeScrollingRegionsReachable);
});
