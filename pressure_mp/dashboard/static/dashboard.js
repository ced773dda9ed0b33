// Renews the live parts of a page, and listens to keys. Nothing here is needed to read a page.
"use strict";

const interval = Number(document.body.dataset.interval) * 1000;
const state = document.getElementById("state");
const hold = document.getElementById("hold");
const keys = document.getElementById("keys");
let isHeld = false;

hold.hidden = document.getElementById("ask").hidden = false;

// What tells an element of a live part from others, also in the part that takes its place.
function mark(element) {
  return element.id || element.getAttribute("href") || "";
}

function renew(part, fresh) {
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const isUsed = focused && focused.closest("form");
  const isSelected = !document.getSelection().isCollapsed && part.contains(document.getSelection().anchorNode);
  if (isUsed || isSelected || part.innerHTML === fresh.innerHTML) return;
  for (const open of part.querySelectorAll("details[open][id]")) {
    fresh.querySelector("#" + CSS.escape(open.id))?.setAttribute("open", "");
  }
  part.replaceChildren(...fresh.childNodes);
  if (!focused) return;
  const same = [...part.querySelectorAll("a, summary")].find((one) =>
    focused.matches("summary")
      ? one.matches("summary") && one.parentElement.id === focused.parentElement.id
      : mark(one) && mark(one) === mark(focused));
  same?.focus({ preventScroll: true });
}

async function look() {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (answer.redirected) {
    location.reload();
    return;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = [...document.querySelectorAll("[data-live]")];
  if (!fresh.querySelector("[data-live]")) throw new Error(`status ${answer.status}`);
  if (parts.some((part) => !fresh.getElementById(part.id))) {
    // It has become another page: the queue is gone, or is there again.
    document.querySelector("main").replaceChildren(...fresh.querySelector("main").childNodes);
    return;
  }
  for (const part of parts) renew(part, fresh.getElementById(part.id));
}

async function lookAgain() {
  if (!isHeld && !document.hidden) {
    try {
      await look();
      state.textContent = "";
    } catch (error) {
      state.textContent = "The dashboard does not answer; what is shown is old.";
    }
  }
  setTimeout(lookAgain, interval);
}

function switchHold() {
  isHeld = !isHeld;
  hold.textContent = isHeld ? "Resume" : "Pause";
  hold.setAttribute("aria-pressed", String(isHeld));
}

// The rows that a key leads to: the first thing of each that can be opened.
function move(by) {
  const links = [...document.querySelectorAll("tbody tr")].map((row) => row.querySelector("a, summary, button")).filter(Boolean);
  const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  links[Math.min(Math.max(at + by, 0), links.length - 1)]?.focus();
}

const pages = { q: "./", p: "pipeline", w: "workers", h: "health" };
let isGoing = false;

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (isGoing) {
    isGoing = false;
    if (event.key in pages) location.assign(pages[event.key]);
    return;
  }
  const does = {
    "?": () => keys.showModal(),
    "/": () => document.getElementById("find")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    u: () => location.assign("./"),
    g: () => { isGoing = true; },
    p: switchHold,
  }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
}

document.addEventListener("keydown", press);
hold.addEventListener("click", switchHold);
document.getElementById("ask").addEventListener("click", () => keys.showModal());
setTimeout(lookAgain, interval);
