/* A table that is wider than its column is reached and moved by the keyboard too. */
(() => {
  const reach = () => {
    for (const wide of document.querySelectorAll(".md-typeset__scrollwrap")) {
      const attributes = { tabindex: "0", role: "group", "aria-label": "Table" };
      for (const [name, value] of Object.entries(attributes)) {
        if (wide.scrollWidth > wide.clientWidth) wide.setAttribute(name, value);
        else wide.removeAttribute(name);
      }
    }
  };
  addEventListener("load", reach);
  addEventListener("resize", reach);
})();
