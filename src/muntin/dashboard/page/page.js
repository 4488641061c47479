// The page: sections of frames into elements, keys and buttons into commands. Texts from the server are set
// as text, pictures are parsed as XML; nothing is evaluated.
"use strict";

const $ = (id) => document.getElementById(id);
const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16];
const COLOURS = 4;
const view = { level: 0, scale: 1 };
let head = null, source = null, templates = null, failures = 0, widest = 0;

// Elements. --------------------------------------------------------------------------------------

function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") element.setAttribute(key, value); else element[key] = value;
  }
  element.append(...children);
  return element;
}

function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Children of `parent`, one for each item: those with the same key stay, so that focus and scroll do, too.
function each(parent, items, key, create, update = () => {}) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, index) => {
    const name = String(key(item, index));
    let child = old.get(name);
    if (child) old.delete(name);
    else { child = create(item, index); child.dataset.key = name; }
    if (parent.children[index] !== child) parent.insertBefore(child, parent.children[index] || null);
    update(child, item, index);
  });
  for (const child of old.values()) child.remove();
}

function options(select, values, chosen, words = (value) => value) {
  each(select, values, (value) => value, (value) => make("option", { value, textContent: words(value) }));
  if (chosen != null && document.activeElement !== select) select.value = chosen;
}

function table(element, heads, rows, key, cells) {
  if (!element.tHead) element.append(make("thead", {}, make("tr")), make("tbody"));
  each(element.tHead.rows[0], heads, (h, i) => i + h.join(), ([words, right]) => make("th", { textContent: words, scope: "col", className: right ? "r" : "" }));
  each(element.tBodies[0], rows, key, () => make("tr"), (row, item, index) => cells(row, item, index));
}

function cell(row, index, text, className = "") {
  const td = row.cells[index] || row.insertCell();
  set(td, text);
  if (td.className !== className) td.className = className;
  return td;
}

// Parsed as XML, so that no text of it becomes HTML.
function picture(container, svg, empty) {
  if (!svg) {
    if (empty) container.replaceChildren(make("p", { className: "empty", textContent: empty }));
    else container.replaceChildren();
    return;
  }
  const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return;
  root.classList.add("drawn");
  container.replaceChildren(document.importNode(root, true));
}

// Sections. --------------------------------------------------------------------------------------

const sections = {
  head(h) {
    head = h;
    set($("title"), h.title);
    document.title = `${h.title} · Muntin`;
    set($("newest"), h.newest === "none yet" ? "no tuple yet" : `newest tuple ${h.newest}`);
    set($("about"), h.about);
    set($("state"), h.state);
    document.body.dataset.state = h.state;
    set($("play").firstElementChild, h.state === "playing" ? "Pause" : h.state === "ended" || h.state === "error" ? "Again" : "Play");
    $("play").disabled = h.state === "loading" || (h.state === "ended" && !h.verbs.includes("restart"));
    $("play").hidden = !h.verbs.includes("play");
    $("step").hidden = !h.verbs.includes("step");
    $("step").disabled = ["loading", "ended", "error"].includes(h.state);
    $("restart").hidden = !h.verbs.includes("restart");
    $("speed").parentElement.hidden = !h.verbs.includes("speed");
    options($("speed"), SPEEDS.includes(h.speed) ? SPEEDS : [...SPEEDS, h.speed].sort((a, b) => a - b), h.speed, (s) => `× ${s}`);
    $("key-label").hidden = !h.keys.length;
    set($("key-name"), h.key_names || "Key");
    options($("key"), h.keys, h.key);
    options($("aggregate"), h.aggregates, h.aggregate);
    $("aggregate").parentElement.hidden = !h.aggregates.length;
    if (h.state === "error") trouble(`The stream has stopped: ${h.error}`); else if (!failures) trouble("");
  },
  trouble(text) { trouble(text); },
  strip(svg) {
    picture($("strip"), svg, head && head.state === "error" ? "The stream has stopped before its first slice." : head && head.state === "loading" ? head.loading : head && head.state === "paused" ? "No tuple yet. Press Play, or Step for one at a time." : "The first tuples are on their way.");
  },
  lines(l) {
    picture($("lines"), l.picture, "A line begins with the first complete window.");
    each($("levels"), l.levels, (words) => words, (words, level) => {
      const button = make("button", { type: "button", textContent: words, title: `A column takes ${words} (${level + 1})` });
      button.addEventListener("click", () => look({ level }));
      return button;
    }, (button, _, level) => button.setAttribute("aria-pressed", level === view.level));
    const shown = l.shown || [];
    each($("lines-legend"), l.names.filter((name) => shown.includes(name)), (name) => name + l.names.indexOf(name), (name) => {
      const number = l.names.indexOf(name), dash = Math.floor(number / COLOURS);
      return make("li", {}, make("i", { className: `stroke w${number % COLOURS}${dash ? ` dash${dash}` : ""}` }), name);
    });
  },
  numbers(numbers) {
    each($("numbers"), numbers, (n) => n.name, (n) => make("div", { className: "number" },
      make("div", { className: "name", textContent: n.name }), make("div", { className: "value" }),
      make("div", { className: "remark" }), make("div", { className: "line" })),
    (element, n) => {
      const [, value, remark, line] = element.children;
      set(value, n.value); set(remark, n.remark); remark.title = n.remark;
      if (line.dataset.svg !== n.line) { line.dataset.svg = n.line; picture(line, n.line, ""); }
    });
  },
  windows(windows) {
    const heads = [["window"], ["type"], ["results", true], ["open", true], ["slices in it", true], ["too late", true], [""]];
    table($("windows"), heads, windows, (w) => w.name + w.what, (row, w, index) => {
      named(row, w.name, index);
      cell(row, 1, w.what, "what");
      [w.results, w.open, w.slices, w.late].forEach((text, i) => cell(row, i + 2, text, "r"));
      remover(row, 6, "window", w.name, windows.length > 1);
    });
  },
  aggregates(aggregates) {
    table($("aggregates"), [["aggregate"], ["function"], [""]], aggregates, (a) => a.name + a.what, (row, a) => {
      cell(row, 0, a.name); cell(row, 1, a.what, "what");
      remover(row, 2, "aggregate", a.name, aggregates.length > 1 && !a.fixed);
    });
  },
  results(r) {
    const numeric = [false, false, false, ...r.numeric, false];
    table($("results"), r.head.map((words, i) => [words, numeric[i]]), r.rows, (_, i) => i, (row, values) => {
      values.slice(0, -1).forEach((text, i) => cell(row, i, text, numeric[i] ? "r" : ""));
      const td = row.cells[values.length - 1] || row.insertCell(), kind = values.at(-1);
      if (!td.firstChild) td.append(make("span"));
      set(td.firstChild, kind); td.firstChild.className = `kind ${kind}`;
      while (row.cells.length > values.length) row.deleteCell(-1);
    });
    $("results").hidden = !r.rows.length;
    $("results-empty").hidden = r.rows.length > 0;
  },
  plan(plan) {
    each($("summary"), plan.summary.flat(), (words, i) => i + words, (words, i) => make(i % 2 ? "dd" : "dt", { textContent: words }));
    each($("decisions"), plan.decisions, (d) => d.question + d.answer + d.reason, (d) => make("li", {},
      make("p", {}, make("span", { className: "question", textContent: `${d.question} ` }), make("span", { className: "answer", textContent: d.answer })),
      make("p", {}, `${d.reason} `, make("span", { className: "section", textContent: d.section ? `[${d.section}]` : "" }))));
    set($("details"), plan.details);
  },
  notes(notes) {
    if (!notes.length) { $("notes").replaceChildren(make("li", { className: "empty", textContent: "Nothing has changed since the start." })); return; }
    $("notes").replaceChildren(...notes.map((note) => {
      const pre = make("pre", {}, ...note.lines.map((line) => make("span", { className: { "-": "minus", "+": "plus" }[line[0]] || "", textContent: `${line}\n` })));
      return make("li", { className: note.kind }, make("p", {}, `${note.text} `, make("span", { className: "at", textContent: note.at === "none yet" ? "" : `at ${note.at}` })), ...(note.lines.length ? [pre] : []));
    }));
  },
  titles(titles) {
    $("titles-label").hidden = titles.length < 2;
    options($("titles"), titles, head && head.title);
  },
  replay(replay) {
    $("replay").hidden = !replay;
    if (!replay) return;
    set($("replay-done"), `step ${replay.done} of ${replay.steps.length}`);
    each($("steps"), replay.steps, (words, i) => i + words, (words) => make("li", { textContent: words }), (li, _, i) => {
      li.className = i === replay.done - 1 ? "now" : i < replay.done ? "done" : "";
      if (i === replay.done - 1) { li.setAttribute("aria-current", "step"); $("steps").scrollLeft = li.offsetLeft - $("steps").clientWidth / 2; }
      else li.removeAttribute("aria-current");
    });
  },
  batches(batches) {
    $("batches-section").hidden = !batches;
    if (!batches) return;
    set($("batches-remark"), batches.remark);
    // The first one also starts Spark's workers; on its scale the others could not be told apart.
    const most = Math.max(1, ...batches.rows.filter((b) => b.batch).map((b) => b.milliseconds));
    table($("batches"), [["batch", true], ["started"], ["rows", true], ["rows/s", true], ["ms", true], ["of them adding data", true], ["watermark"], ["time"]], batches.rows, (b) => b.batch, (row, b) => {
      [b.batch, b.started, b.rows, b.rate, b.milliseconds.toLocaleString("en"), b.adding, b.watermark].forEach((text, i) => cell(row, i, String(text), i === 1 || i === 6 ? "" : "r"));
      const td = row.cells[7] || row.insertCell();
      td.className = "duration";
      if (!td.firstChild) td.append(make("i"));
      td.firstChild.style.width = `${Math.min(100, (100 * b.milliseconds) / most)}%`;
    });
  },
};

function named(row, name, index) {
  const td = row.cells[0] || row.insertCell();
  if (!td.firstChild) td.append(make("span"), document.createTextNode(name));
  td.firstChild.className = `swatch w${index % COLOURS}${index < COLOURS ? "" : " again"}`;
}

function remover(row, index, kind, name, possible) {
  const td = row.cells[index] || row.insertCell();
  td.className = "r";
  if (!td.firstChild) {
    const button = make("button", { type: "button", textContent: "Remove", "aria-label": `Remove ${kind} ${name}` });
    button.addEventListener("click", () => command({ do: "remove", kind, name }));
    td.append(button);
  }
  td.firstChild.disabled = !possible;
}

function trouble(text) {
  set($("trouble"), text);
  $("trouble").hidden = !text;
}

// Frames. ----------------------------------------------------------------------------------------

let pending = {}, scheduled = false;

function draw() {
  scheduled = false;
  const frame = pending;
  pending = {};
  for (const name of ["head", ...Object.keys(frame).filter((n) => n !== "head")]) {
    if (name in frame && sections[name]) sections[name](frame[name]);
  }
}

function connect() {
  if (source) source.close();
  if (document.hidden) { source = null; return; }
  widest = Math.round($("strip").clientWidth);
  const query = new URLSearchParams({ width: widest, chart: Math.round($("lines").clientWidth), level: view.level, scale: view.scale });
  source = new EventSource(`events?${query}`);
  source.onmessage = (event) => {
    if (failures) { failures = 0; trouble(""); }
    Object.assign(pending, JSON.parse(event.data));
    // A hidden page draws nothing: the newest frame waits.
    if (!scheduled) { scheduled = true; requestAnimationFrame(draw); }
  };
  source.onerror = () => {
    failures += 1;
    document.body.dataset.state = "lost";
    set($("state"), "no connection");
    trouble("The connection to Muntin is lost. The page shows the last state, and tries again by itself.");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}

function look(change) {
  Object.assign(view, change);
  view.level = Math.min(Math.max(view.level, 0), 2);
  view.scale = Math.min(Math.max(view.scale, 0.125), 8);
  connect();
}

async function command(body) {
  try {
    const answer = await fetch("command", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    const outcome = await answer.json().catch(() => ({ error: `The command failed: ${answer.status} ${answer.statusText}` }));
    if (outcome.error && body.do !== "add") { trouble(outcome.error); setTimeout(() => { if ($("trouble").textContent === outcome.error) trouble(""); }, 8000); }
    return outcome;
  } catch {
    const error = "The command did not reach Muntin; is it still running?";
    trouble(error);
    return { error };
  }
}

// Controls. --------------------------------------------------------------------------------------

const toggle = () => command({ do: head && head.state === "playing" ? "pause" : "play" });
const faster = (by) => {
  const at = SPEEDS.indexOf(head.speed) + by;
  if (at >= 0 && at < SPEEDS.length) command({ do: "speed", speed: SPEEDS[at] });
};

function theme() {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("muntin-theme", document.documentElement.dataset.theme); } catch { /* private mode */ }
}

$("play").addEventListener("click", toggle);
$("step").addEventListener("click", () => command({ do: "step" }));
$("restart").addEventListener("click", () => command({ do: "restart" }));
$("theme").addEventListener("click", theme);
$("help").addEventListener("click", () => $("keys").showModal());
$("speed").addEventListener("change", () => command({ do: "speed", speed: Number($("speed").value) }));
$("key").addEventListener("change", () => command({ do: "key", key: $("key").value }));
$("aggregate").addEventListener("change", () => command({ do: "aggregate", name: $("aggregate").value }));
$("titles").addEventListener("change", () => command({ do: "choose", title: $("titles").value }));
$("shorter").addEventListener("click", () => look({ scale: view.scale / 2 }));
$("longer").addEventListener("click", () => look({ scale: view.scale * 2 }));

async function fillTypes() {
  if (!templates) {
    const outcome = await command({ do: "templates" });
    if (!outcome.templates) return;
    templates = outcome.templates;
  }
  const types = Object.keys(templates[$("add-kind").value]);
  options($("add-type"), types, types.includes("tumbling") ? "sliding" : "max");
  fillText();
}
function fillText() {
  $("add-text").value = templates[$("add-kind").value][$("add-type").value];
  $("add-outcome").textContent = "";
}
$("add-kind").addEventListener("change", fillTypes);
$("add-type").addEventListener("change", fillText);
$("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = $("add-name").value.trim();
  const outcome = await command({ do: "add", kind: $("add-kind").value, name, text: $("add-text").value });
  $("add-outcome").className = outcome.error ? "bad" : "good";
  $("add-outcome").textContent = outcome.error || `“${name}” is served. The plan shows what changed.`;
  if (!outcome.error) $("add-name").value = "";
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.target.closest("input, textarea, select") || (event.key === " " && event.target.closest("button, summary"))) return;
  const actions = {
    " ": toggle, ArrowRight: () => command({ do: "step" }), "+": () => faster(1), "-": () => faster(-1),
    "1": () => look({ level: 0 }), "2": () => look({ level: 1 }), "3": () => look({ level: 2 }),
    "[": () => look({ scale: view.scale / 2 }), "]": () => look({ scale: view.scale * 2 }),
    a: () => { $("add-name").focus(); $("add").scrollIntoView({ block: "center" }); }, t: theme, "?": () => $("keys").showModal(),
  };
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
});

// A hidden page needs no frames: a browser has six connections to a host, for all of its tabs.
document.addEventListener("visibilitychange", connect);

let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => { if (Math.abs($("strip").clientWidth - widest) > 8) connect(); }, 200);
});
try { const saved = localStorage.getItem("muntin-theme"); if (saved) document.documentElement.dataset.theme = saved; } catch { /* private mode */ }
connect();
fillTypes();
