// One key, one action. Keys typed into a field, keys that scroll a table and combinations are ignored.

import { useLayoutEffect, useRef } from "./vendor/preact-hooks.mjs";

const FIELDS = "input:not([type=checkbox]), select, textarea";
const SCROLLED = ".scroll[tabindex]";

export const KEYS = [
  ["j  ↓  →", "next row of a list (j, ↓); next step of an episode (j, →)"],
  ["k  ↑  ←", "the one before"],
  ["Enter", "open the episode or phrase in focus"],
  ["n  p", "next or previous page of a list; next or previous episode of the list that one came from"],
  ["c", "an episode's group side by side"],
  ["v", "show or hide the prompt"],
  ["e  d", "episodes; dictionary"],
  ["/", "search in text"],
  ["Escape", "close this; leave the search; back to the list"],
  ["?", "this help"],
];

// `actions`: key, by the browser's name, to function.
export function useKeys(actions) {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => {
    const pressed = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.matches(FIELDS)) return;
      if (event.target.matches(SCROLLED) && event.key.startsWith("Arrow")) return;
      if (document.querySelector("dialog[open]") && event.key !== "?") return;
      const action = latest.current[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

// Moves the focus along the links of a list; from outside it, to the first.
export function moveFocus(selector, by) {
  const links = [...document.querySelectorAll(selector)];
  const now = links.indexOf(document.activeElement);
  const next = now < 0 ? 0 : Math.min(Math.max(now + by, 0), links.length - 1);
  links[next]?.focus();
  links[next]?.scrollIntoView({ block: "nearest" });
}
