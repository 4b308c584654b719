/* Tooltips (hover, click, arrow keys), sorting, tabs, filters and zoom of a report's page. All that is shown is
 * there without it. ASCII only. */
"use strict";
(function () {
  const tip = document.getElementById("tip");
  const every = (selector, of) => Array.from((of || document).querySelectorAll(selector));
  const make = (name, text) => Object.assign(document.createElement(name), {textContent: text || ""});
  const data = JSON.parse((document.getElementById("candidate-data") || {textContent: "null"}).textContent);

  /* ---- Tooltips ---- */

  const tips = new WeakMap();
  let shown = null, pinned = false;

  function place(mark) {
    const box = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const x = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 8);
    const below = box.bottom + 8 + own.height < innerHeight;
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = Math.max(4, below ? box.bottom + 8 : box.top - own.height - 8) + "px";
  }

  function show(mark, pin) {
    const text = tips.get(mark) || describe(mark);
    if (!text) return;
    if (shown) shown.classList.remove("at");
    shown = mark;
    pinned = pin;
    mark.classList.add("at");
    tip.textContent = text;
    tip.hidden = false;
    tip.classList.toggle("pinned", pin);
    place(mark);
  }

  function hide() {
    if (shown) shown.classList.remove("at");
    shown = null;
    pinned = false;
    tip.hidden = true;
  }

  /* A candidate's point: the row of the table of candidates that it stands at. */
  function describe(mark) {
    if (!data || !mark.parentNode.dataset.group) return "";
    const group = data.groups[+mark.parentNode.dataset.group];
    const row = group.rows[Array.prototype.indexOf.call(mark.parentNode.children, mark)];
    if (!row) return "";
    const cells = data.columns.map((name, i) => row[i] === null || row[i] === "" ? "" : "\n" + name + ": " + row[i]);
    return row[0] + "\n" + group.nodes + cells.slice(1).join("");
  }

  const marks = new WeakMap();
  every("svg.figure").forEach((svg) => {
    every(".m > title", svg).forEach((title) => {
      tips.set(title.parentNode, title.textContent);
      title.parentNode.setAttribute("aria-label", title.textContent.replace(/\n/g, ", "));
      title.parentNode.setAttribute("role", "img");
      title.remove();
    });
    const list = every(".m, [data-group] > .d[d]", svg);
    if (!list.length) return;
    marks.set(svg, list);
    svg.tabIndex = 0;
    svg.setAttribute("aria-roledescription", "chart; arrow keys go from item to item");
    const of = (event) => event.target.closest(".m, .d");
    svg.addEventListener("pointerover", (event) => { if (of(event) && !pinned) show(of(event), false); });
    svg.addEventListener("pointerout", () => { if (!pinned && document.activeElement !== svg) hide(); });
    svg.addEventListener("click", (event) => {
      if (of(event)) show(of(event), true); else hide();
      event.stopPropagation();
    });
    svg.addEventListener("blur", () => { if (!pinned) hide(); });
    svg.addEventListener("keydown", (event) => onKey(svg, event));
  });
  document.addEventListener("click", (event) => { if (!tip.contains(event.target)) hide(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", () => { if (shown) place(shown); }, true);

  const visible = (mark) => !mark.closest(".off");
  const centre = (mark) => {
    const box = mark.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };

  /* The nearest mark above (-1) or below (1). */
  function nearest(list, from, direction) {
    const [x, y] = centre(from);
    let best = null, least = Infinity;
    list.forEach((mark) => {
      const [u, v] = centre(mark), away = (v - y) * direction;
      if (away < 2 || !visible(mark)) return;
      const distance = away + 2 * Math.abs(u - x);
      if (distance < least) { least = distance; best = mark; }
    });
    return best;
  }

  function onKey(svg, event) {
    const list = marks.get(svg), at = list.indexOf(shown), zoom = zooms.get(svg);
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    let next = null;
    if (zoom && "+-0=".includes(event.key)) return zoom(event.key === "0" ? 0 : event.key === "-" ? 0.5 : 2);
    if (step && at < 0) next = list.find(visible);
    for (let k = at + step; step && at >= 0 && !next && k >= 0 && k < list.length; k += step) {
      if (visible(list[k])) next = list[k];
    }
    if (event.key === "Home") next = list.find(visible);
    if (event.key === "End") next = list.filter(visible).pop();
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      next = at < 0 ? list.find(visible) : nearest(list, list[at], event.key === "ArrowUp" ? -1 : 1);
    }
    if (event.key === "Enter" && at >= 0) next = list[at];
    if (!next) return;
    event.preventDefault();
    next.scrollIntoView({block: "nearest", inline: "nearest", behavior: "instant"});
    show(next, event.key === "Enter");
  }

  /* ---- Zoom along time ---- */

  const zooms = new WeakMap();
  every("figure.zoom").forEach((figure) => {
    const svg = figure.querySelector("svg"), box = svg.viewBox.baseVal, width = box.width, height = box.height;
    const left = +figure.querySelector(".base").getAttribute("x1");
    const parts = every("line, rect, .tick.mid", svg).filter((part) => !part.closest(".legend")).map((part) => ({
      part, at: ["x", "x1", "x2"].filter((name) => part.hasAttribute(name)).map((name) => [name, +part.getAttribute(name)]),
      width: part.hasAttribute("width") ? +part.getAttribute("width") : 0}));
    let scale = 1;
    const set = (factor) => {
      scale = factor ? Math.min(64, Math.max(1, scale * factor)) : 1;
      const whole = left + (width - left) * scale;
      parts.forEach(({part, at, width}) => {
        at.forEach(([name, x]) => part.setAttribute(name, left + (x - left) * scale));
        if (width) part.setAttribute("width", width * scale);
      });
      every(".boxes text", svg).forEach((text) => text.setAttribute("x", +text.parentNode.querySelector("rect").getAttribute("x") + 3));
      svg.setAttribute("viewBox", "0 0 " + whole + " " + height);
      svg.setAttribute("width", whole);
      svg.classList.toggle("grown", scale > 1);
      name();
      hide();
    };
    /* Boxes that have become wide enough get their names. */
    const name = () => every(".boxes .m", svg).forEach((mark) => {
      const rect = mark.querySelector("rect"), room = +rect.getAttribute("width"), old = mark.querySelector("text");
      const text = (tips.get(mark) || "").split("\n")[0].split("/").pop();
      if (old && !old.dataset.added) {
        if (!old.dataset.cut) old.dataset.cut = old.textContent;
        old.textContent = room >= 7 * text.length ? text : old.dataset.cut;
        return;
      }
      if (old) old.remove();
      if (scale === 1 || room < 7 * text.length) return;
      const added = document.createElementNS(svg.namespaceURI, "text");
      added.setAttribute("x", +rect.getAttribute("x") + 3);
      added.setAttribute("y", +rect.getAttribute("y") + rect.getAttribute("height") / 2 + 3.5);
      added.dataset.added = "1";
      added.textContent = text;
      mark.append(added);
    });
    zooms.set(svg, set);
    const tools = make("div");
    tools.className = "tools";
    [["Zoom in", 2], ["Zoom out", 0.5], ["Whole", 0]].forEach(([text, factor]) => {
      const button = make("button", text);
      button.type = "button";
      button.addEventListener("click", () => set(factor));
      tools.append(button);
    });
    figure.prepend(tools);
  });

  /* ---- Panels ---- */

  every(".panels").forEach((group) => {
    const panels = every(":scope > .panel", group);
    if (panels.length < 2) return;
    const tabs = make("div");
    tabs.className = "tabs";
    tabs.setAttribute("role", "tablist");
    tabs.setAttribute("aria-label", group.dataset.label);
    const buttons = panels.map((panel, i) => {
      const button = make("button", panel.dataset.name);
      button.type = "button";
      button.id = panel.id + "-tab";
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      button.addEventListener("click", () => select(i));
      button.addEventListener("keydown", (event) => {
        const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (!step) return;
        select((i + step + panels.length) % panels.length);
        buttons[(i + step + panels.length) % panels.length].focus();
      });
      tabs.append(button);
      return button;
    });
    function select(chosen) {
      hide();
      panels.forEach((panel, i) => {
        panel.hidden = i !== chosen;
        buttons[i].setAttribute("aria-selected", i === chosen);
        buttons[i].tabIndex = i === chosen ? 0 : -1;
      });
    }
    group.prepend(tabs);
    group.classList.add("tabbed");
    select(panels.length - 1);
  });

  /* ---- Candidates of one operation ---- */

  every(".scatters").forEach((part) => {
    const tools = make("div"), label = make("label", "Operation "), choice = make("select");
    tools.className = "tools";
    choice.append(new Option("all", ""));
    data.groups.forEach((group, i) => choice.append(new Option(group.nodes, i)));
    choice.addEventListener("change", () => {
      hide();
      every("[data-group]", part).forEach((group) => {
        group.classList.toggle("off", choice.value !== "" && group.dataset.group !== choice.value);
      });
    });
    label.append(choice);
    tools.append(label);
    part.prepend(tools);
  });

  /* ---- Tables ---- */

  every("table").forEach((table) => {
    const heads = every("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending", number = head.classList.contains("n");
        const key = (row) => {
          const text = row.cells[column].textContent, bytes = /^([\d.]+) (B|KiB|MiB|GiB)$/.exec(text);
          if (bytes) return String(bytes[1] * 1024 ** ["B", "KiB", "MiB", "GiB"].indexOf(bytes[2]));
          return number ? (isNaN(parseFloat(text)) ? Infinity : parseFloat(text)) : text;
        };
        const rows = Array.from(body.rows).map((row) => [key(row), row]);
        const order = number ? (a, b) => a[0] === b[0] ? 0 : a[0] - b[0] : (a, b) => a[0].localeCompare(b[0], "en", {numeric: true});
        rows.sort((a, b) => {
          const unknown = number && (a[0] === Infinity) - (b[0] === Infinity);
          return unknown || (up ? 1 : -1) * order(a, b);
        });
        body.append(...rows.map((row) => row[1]));
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
      });
    });
    every("td", body).forEach((cell) => { if (cell.textContent.length > 26) cell.title = cell.textContent; });
  });
  every(".scroll, .table").forEach((box) => { box.tabIndex = box.scrollWidth > box.clientWidth || box.classList.contains("long") ? 0 : -1; });

  addEventListener("beforeprint", () => every("details").forEach((part) => { part.open = true; }));
})();
