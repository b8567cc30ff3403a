// Zooms flame graphs: a click on a function makes it as wide as the graph, one on the root undoes it.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const EDGE = 1e-3;
  for (const graph of document.querySelectorAll("svg.flame")) {
    const frames = [...graph.children].map(node => ({
      node, left: parseFloat(node.getAttribute("x")), width: parseFloat(node.getAttribute("width")),
    }));
    const name = frame => {
      if (frame.node.querySelector("text")) return;
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("x", 4);
      text.setAttribute("y", 13);
      text.textContent = frame.node.querySelector("title").textContent.replace(/: [^:]*$/, "");
      frame.node.append(text);
    };
    const zoom = to => {
      for (const frame of frames) {
        const from = Math.max(frame.left, to.left);
        const end = Math.min(frame.left + frame.width, to.left + to.width);
        const shown = end - from > EDGE;
        frame.node.style.display = shown ? "" : "none";
        if (!shown) continue;
        const width = (end - from) / to.width * 100;
        frame.node.setAttribute("x", (from - to.left) / to.width * 100 + "%");
        frame.node.setAttribute("width", width + "%");
        if (width > 1.2) name(frame);
      }
    };
    for (const frame of frames) frame.node.addEventListener("click", () => zoom(frame));
    graph.addEventListener("dblclick", () => zoom({left: 0, width: 100}));
  }
})();
