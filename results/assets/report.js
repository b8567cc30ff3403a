"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const back = data.backdrop;
  const TINTS = ["#4f83cc", "#e0a030", "#58a182", "#9a6fb0", "#c76b6b", "#7a8794"];
  const HEIGHT = 250, AXIS = 62;
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = v => {
    const a = Math.abs(v);
    if (a === 0) return "0";
    if (a < 9.995) return String(+v.toFixed(2));
    if (a < 99.95) return String(+v.toFixed(1));
    return Math.round(v).toLocaleString("en-US");
  };
  const scaled = (v, steps) => {
    for (const [limit, factor, unit] of steps) if (Math.abs(v) < limit) return short(v / factor) + " " + unit;
  };
  const UNITS = {
    count: short,
    number: v => v === 0 || Math.abs(v) >= 9.995 && Math.abs(v) < 1e15 ? short(v) : String(+v.toPrecision(3)),
    percent: v => short(v) + " %",
    ms: v => v === 0 ? "0" : scaled(v, [[1, 1e-3, "µs"], [999.5, 1, "ms"], [6e5, 1e3, "s"], [Infinity, 6e4, "min"]]),
    bytes: v => v === 0 ? "0" : scaled(v, [[1e3, 1, "B"], [1e6, 1e3, "kB"], [1e9, 1e6, "MB"], [Infinity, 1e9, "GB"]]),
  };
  const clock = s => back.length > 600
    ? Math.floor(s / 60) + ":" + String(Math.round(s % 60)).padStart(2, "0")
    : short(s) + " s";

  /* Shades, names of phases and marks, behind and above the lines of every chart. */
  const backdrop = () => {
    const font = px => Math.round(px * devicePixelRatio) + "px system-ui, sans-serif";
    const shades = u => {
      const { ctx } = u, { left, top, width, height } = u.bbox;
      ctx.save();
      ctx.beginPath(); ctx.rect(left, top, width, height); ctx.clip();
      ctx.globalAlpha = +css("--tint");
      for (const s of back.shades) {
        const from = u.valToPos(s.from, "x", true), to = u.valToPos(s.to, "x", true);
        ctx.fillStyle = TINTS[s.tint % TINTS.length];
        ctx.fillRect(from, top, Math.max(to - from, 1), height);
      }
      ctx.restore();
    };
    /* The name of a phase has room until the next phase; phases are named above the plot. */
    const names = u => {
      const { ctx } = u, { left, top, width } = u.bbox, dpr = devicePixelRatio;
      ctx.save();
      ctx.fillStyle = css("--soft"); ctx.font = font(11); ctx.textBaseline = "bottom"; ctx.textAlign = "left";
      back.phases.forEach(([from, , name], i) => {
        const x = Math.max(u.valToPos(from, "x", true), left) + 3 * dpr;
        const next = i + 1 < back.phases.length ? u.valToPos(back.phases[i + 1][0], "x", true) : left + width;
        const room = Math.min(next, left + width) - x - 4 * dpr;
        let text = name;
        while (text && ctx.measureText(text === name ? name : text + "…").width > room) text = text.slice(0, -1);
        if (text === name) ctx.fillText(name, x, top - 2 * dpr);
        else if (text.length > 2) ctx.fillText(text + "…", x, top - 2 * dpr);
      });
      ctx.restore();
    };
    const above = back.phases.length ? 14 : 0;
    const marks = u => {
      const { ctx } = u, { left, top, width, height } = u.bbox, dpr = devicePixelRatio;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = css("--mark");
      ctx.lineWidth = dpr; ctx.font = "600 " + font(11);
      ctx.textAlign = "center"; ctx.textBaseline = "bottom";
      const free = [-1e9, -1e9];
      for (const [at, name] of back.marks) {
        const x = u.valToPos(at, "x", true);
        if (x < left || x > left + width) continue;
        const half = ctx.measureText(name).width / 2 + 3 * dpr;
        const row = free.findIndex(edge => edge <= x - half);
        ctx.globalAlpha = .75; ctx.setLineDash([3 * dpr, 3 * dpr]);
        ctx.beginPath(); ctx.moveTo(x, top - (row < 0 ? 0 : above + row * 13) * dpr); ctx.lineTo(x, top + height); ctx.stroke();
        if (row < 0) continue;
        free[row] = x + half;
        ctx.globalAlpha = 1;
        ctx.fillText(name, x, top - (1 + above + row * 13) * dpr);
      }
      ctx.restore();
    };
    return { drawClear: [shades], draw: [names, marks] };
  };

  const charts = new Set();
  let zoom = null, zooming = false;
  const zoomed = (u, key) => {
    if (key !== "x" || zooming || !u.ready) return;
    const { min, max } = u.scales.x;
    zooming = true;
    zoom = min <= 0 && max >= back.length ? null : { min, max };
    for (const other of charts) if (other !== u) other.setScale("x", { min, max });
    zooming = false;
  };

  const options = (chart, width) => {
    const soft = css("--soft"), grid = css("--grid");
    const narrow = width < 560;
    const scaleName = i => "y" + i;
    const scales = { x: { time: false, range: (u, min, max) => min == null || min === max ? [0, back.length] : [min, max] } };
    const axes = [{
      stroke: soft, font: "12px system-ui, sans-serif", grid: { stroke: grid, width: 1 }, ticks: { show: false }, size: 30,
      values: (u, vs) => vs.map(clock), space: narrow ? 60 : 80,
      incrs: [.1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400],
    }];
    chart.axes.forEach((axis, i) => {
      const format = UNITS[axis.unit];
      scales[scaleName(i)] = axis.log
        ? { distr: 3, range: (u, min, max) => min == null ? [1, 10] : [10 ** Math.floor(Math.log10(Math.max(min, .001))), 10 ** Math.ceil(Math.log10(Math.max(max, .002)))] }
        : { range: (u, min, max) => [Math.min(min * 1.06, 0), max > 0 ? max * 1.06 : min < 0 ? 0 : 1] };
      axes.push({
        scale: scaleName(i), side: i ? 1 : 3, stroke: soft, font: "12px system-ui, sans-serif",
        grid: { show: i === 0, stroke: grid, width: 1 }, ticks: { show: false }, size: AXIS,
        label: narrow ? undefined : axis.label, labelSize: 18, labelFont: "12px system-ui, sans-serif",
        values: (u, vs) => vs.map(v => v == null ? "" : axis.log && Math.abs(Math.log10(v) % 1) > 1e-6 && Math.abs(Math.log10(v) % 1) < 1 - 1e-6 ? "" : format(v)),
      });
    });
    const sparse = line => line.y.filter(v => v != null).length < line.y.length;
    const series = [{ label: "at", value: (u, v) => v == null ? "–" : clock(v) }].concat(chart.lines.map(line => {
      const color = css("--c-" + line.hue);
      return {
        label: line.name, scale: scaleName(line.axis), stroke: color, width: 1.5,
        fill: line.area ? color + "22" : undefined,
        points: { show: chart.x.length < 2 || sparse(line), size: 3, fill: color, stroke: color },
        value: (u, v) => v == null ? "–" : UNITS[chart.axes[line.axis].unit](v),
      };
    }));
    return {
      width, height: narrow ? 210 : HEIGHT, scales, axes, series,
      /* All plots are as wide as one with two axes, so that they can be read across. */
      padding: [8 + (back.marks.length ? 27 : 0) + (back.phases.length ? 14 : 0), chart.axes.length > 1 ? 0 : narrow ? 14 : AXIS + 18, 0, 0],
      cursor: { sync: { key: "throng", filters: { pub: type => type === "mousemove" || type === "mouseleave" } }, drag: { x: true, y: false }, focus: { prox: 24 } },
      focus: { alpha: .35 },
      hooks: { ...backdrop(), ready: [u => { u.ready = true; if (zoom) u.setScale("x", zoom); }], setScale: [zoomed] },
    };
  };

  const tints = () => {
    const list = document.createElement("span");
    list.className = "tints";
    back.tints.forEach((name, i) => {
      const item = document.createElement("span"), swatch = document.createElement("i");
      swatch.style.background = TINTS[i % TINTS.length];
      item.append(swatch, name);
      list.append(item);
    });
    return list;
  };

  /* Draws a chart into a place, whatever was there before. */
  const put = (place, chart) => {
    if (place.plot) { charts.delete(place.plot); place.plot.destroy(); }
    place.textContent = "";
    place.chart = chart;
    place.classList.add("chart");
    const title = document.createElement("h3");
    title.textContent = chart.title;
    title.append(tints());
    place.append(title);
    const values = [chart.x].concat(chart.lines.map(line => line.y));
    place.plot = new uPlot(options(chart, place.clientWidth), values, place);
    charts.add(place.plot);
  };

  const places = [];
  const show = (place, chart) => {
    put(place, chart);
    if (!places.includes(place)) {
      places.push(place);
      new ResizeObserver(() => {
        const width = place.clientWidth;
        if (width > 0 && Math.abs(width - place.plot.width) > 1) put(place, place.chart);
      }).observe(place);
    }
  };
  const redraw = () => places.forEach(place => put(place, place.chart));

  /* Latency: one measure at a time, corrected or service time. */
  const lat = data.latencies, place = document.getElementById("chart-latency");
  let measure = lat.measures[0], side = "latency";
  const buttons = (id, names, now, pick) => {
    const row = document.getElementById(id);
    row.textContent = "";
    for (const [value, label] of names) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.setAttribute("aria-pressed", String(value === now));
      button.onclick = () => pick(value);
      row.append(button);
    }
  };
  const choose = () => {
    buttons("measures", lat.measures.map(m => [m, m]), measure, m => { measure = m; choose(); });
    buttons("sides", [["latency", "corrected"], ["service", "service time"]], side, s => { side = s; choose(); });
    show(place, lat[side][measure]);
  };
  if (measure) choose();
  for (const spot of document.querySelectorAll("[data-chart]")) {
    const chart = data.charts.find(chart => chart.id === spot.dataset.chart);
    if (chart) show(spot, chart);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    document.documentElement.classList.add("print");
    document.querySelectorAll("details").forEach(part => { part.open = true; });
    redraw();
  });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("print"); redraw(); });
})();
