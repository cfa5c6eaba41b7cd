// Lights up the source of the event under the pointer or the focus, and the events of the line; keeps the theme.
"use strict";

const lit = new Set();

function light(elements) {
  for (const element of lit) element.classList.remove("lit");
  lit.clear();
  for (const element of elements) {
    element.classList.add("lit");
    lit.add(element);
  }
}

const ids = (event) => event.dataset.sites.split(" ").filter(Boolean);

/** The expressions and lines that an event came through. */
function sourceOf(event) {
  const found = [];
  for (const id of ids(event)) {
    for (const part of document.querySelectorAll(`[id="${id}"], [data-of="${id}"]`)) {
      found.push(part, part.closest("li"));
    }
  }
  return found;
}

/** The events that speak of an expression in this line. */
function eventsOf(line) {
  const here = new Set([line.id, ...Array.from(line.querySelectorAll("mark"), (mark) => mark.id || mark.dataset.of)]);
  return Array.from(document.querySelectorAll("[data-sites]")).filter((event) => ids(event).some((id) => here.has(id)));
}

function follow(target) {
  if (!(target instanceof Element)) return;
  const event = target.closest("[data-sites]");
  if (event) {
    const source = sourceOf(event);
    light([event, ...source]);
    bringIntoView(source[0]);
    return;
  }
  const line = target.closest(".lines li");
  light(line && line.querySelector("a.no") ? [line, ...eventsOf(line)] : []);
}

/** A line's number leads to its first event, and when followed again to the next. */
function aimAtNext(link) {
  const events = eventsOf(link.closest("li")).filter((event) => event.id);
  const now = events.findIndex((event) => "#" + event.id === location.hash);
  if (events.length) link.hash = events[(now + 1) % events.length].id;
}

/** Moves the pane of the source, where it has a scroll bar of its own; never the page. */
function bringIntoView(element) {
  const pane = document.querySelector(".source");
  if (!element || !pane || pane.scrollHeight <= pane.clientHeight || getComputedStyle(pane).overflowY !== "auto") return;
  const { top, bottom } = element.getBoundingClientRect();
  const frame = pane.getBoundingClientRect();
  if (top < frame.top + 40 || bottom > frame.bottom - 40) {
    pane.scrollTop += top - frame.top - frame.height / 3;
  }
}

document.addEventListener("pointerover", (event) => event.pointerType === "mouse" && follow(event.target));
document.addEventListener("click", (event) => {
  const link = event.target.closest(".lines a.no");
  if (link) aimAtNext(link);
});
document.addEventListener("focusin", (event) => follow(event.target));

/** Opens the folds around what the address points at. */
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target?.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", unfold);
unfold();

let folded = [];
addEventListener("beforeprint", () => {
  folded = Array.from(document.querySelectorAll(".story details:not([open])"));
  for (const fold of folded) fold.open = true;
});
addEventListener("afterprint", () => folded.forEach((fold) => (fold.open = false)));

const button = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function kept(theme) {
  try {
    if (theme) localStorage.setItem("whygrad-theme", theme);
    return localStorage.getItem("whygrad-theme");
  } catch {
    return null; // no storage for pages opened from a file, in some browsers
  }
}

function show(theme) {
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  button.textContent = isDark() ? "Light page" : "Dark page";
}

show(kept());
button.hidden = false;
button.addEventListener("click", () => show(kept(isDark() ? "light" : "dark") ?? (isDark() ? "light" : "dark")));
dark.addEventListener("change", () => show());
