// Text from a model or an environment, shown as text that cannot do anything.
//
// Characters that a browser would obey or hide (control characters, terminal escapes, marks of direction,
// characters without width, a fifth accent on one letter) are shown as a small box with their name.
// Every text is isolated from the direction of its surroundings, wraps anywhere, and is drawn in
// portions, so that a megabyte costs no more than a page. Text never becomes a link.

import { createContext } from "./vendor/preact.mjs";
import { useContext, useState } from "./vendor/preact-hooks.mjs";
import { html } from "./html.js";
import { whole } from "./format.js";

// Unsafe characters: a terminal's escape sequence; control characters except newline and tab; formatting
// and ignorable characters except the two that choose an emoji's form; line and paragraph separators;
// halves of a surrogate pair; unassigned and private characters; marks on a letter from the fifth on.
const UNSAFE = new RegExp(
  [
    /\x1b\[[0-?]{0,40}[ -/]{0,4}[@-~]/u,
    /[^\P{Cc}\n\t]/u,
    /(?![\ufe0e\ufe0f])[\p{Cf}\p{DI}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}]/u,
    /(?<=\p{M}{4})\p{M}/u,
  ].map((each) => each.source).join("|"),
  "gu",
);

const NAMES = new Map([
  [0x00, "NUL"], [0x07, "BEL"], [0x08, "BS"], [0x0b, "VT"], [0x0c, "FF"], [0x0d, "CR"], [0x1b, "ESC"],
  [0x7f, "DEL"], [0xad, "SHY"], [0x061c, "ALM"], [0x200b, "ZWSP"], [0x200c, "ZWNJ"], [0x200d, "ZWJ"],
  [0x200e, "LRM"], [0x200f, "RLM"], [0x2028, "LS"], [0x2029, "PS"], [0x202a, "LRE"], [0x202b, "RLE"],
  [0x202c, "PDF"], [0x202d, "LRO"], [0x202e, "RLO"], [0x2060, "WJ"], [0x2066, "LRI"], [0x2067, "RLI"],
  [0x2068, "FSI"], [0x2069, "PDI"], [0xfeff, "BOM"],
]);

const FIRST = 4_000;
const MORE = 20_000;

export const Sought = createContext("");

export function codePoint(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

function mark(found) {
  const name = NAMES.get(found.codePointAt(0)) ?? codePoint(found);
  return { mark: name + found.slice(found.codePointAt(0) > 0xffff ? 2 : 1), name: codePoint(found) };
}

// The text as an array of safe strings, with {mark, name} for every unsafe piece.
export function pieces(text) {
  const found = [];
  let from = 0;
  for (const match of text.matchAll(UNSAFE)) {
    if (match.index > from) found.push(text.slice(from, match.index));
    found.push(mark(match[0]));
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push(text.slice(from));
  return found;
}

// At most `length` characters, without half of a surrogate pair at the end.
export function clipped(text, length) {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

// The same text as a plain string, for titles and labels, on one line.
export function plain(text, length = 120) {
  const short = clipped(text, length);
  const safe = pieces(short).map((piece) => piece.mark ?? piece).join("").replaceAll(/\s+/g, " ");
  return short.length < text.length ? safe + "…" : safe;
}

function highlighted(piece, sought) {
  const lower = piece.toLowerCase();
  if (!sought || lower.length !== piece.length) return piece;
  const parts = [];
  let from = 0;
  for (let at = lower.indexOf(sought); at >= 0; at = lower.indexOf(sought, from)) {
    parts.push(piece.slice(from, at), html`<mark>${piece.slice(at, at + sought.length)}</mark>`);
    from = at + sought.length;
  }
  return [...parts, piece.slice(from)];
}

function drawn(text, sought) {
  return pieces(text).map((piece) =>
    piece.mark ? html`<span class="unsafe" title=${piece.name}>${piece.mark}</span>` : highlighted(piece, sought),
  );
}

// One line of a text: for tables, labels and anything of fixed height. `seek`: whether to mark the
// searched words in it.
export function Line({ text, length = 160, seek = false }) {
  const sought = useContext(Sought);
  const short = clipped(text, length);
  const flat = short.replaceAll("\n", " ⏎ ").replaceAll("\t", " ");
  return html`<bdi class="line">${drawn(flat, seek && sought)}${short.length < text.length && "…"}</bdi>`;
}

// A whole text, in portions. `total` is its length before the sender cut it.
export function Text({ text, total = null, empty = "(empty)" }) {
  const sought = useContext(Sought);
  const [shown, setShown] = useState({ text, length: FIRST });
  const length = shown.text === text ? shown.length : FIRST;
  if (text === "") return html`<div class="text muted">${empty}</div>`;
  const short = clipped(text, length);
  const left = text.length - short.length;
  return html`<div class="text">
    <bdi>${drawn(short, sought)}</bdi>
    ${left > 0 &&
    html`<button class="more" onClick=${() => setShown({ text, length: length + MORE })}>
      Show more (${whole(left)} characters are left)
    </button>`}
    ${left === 0 && total !== null &&
    html`<p class="cut">Cut here: ${whole(text.length)} of ${whole(total)} characters.</p>`}
  </div>`;
}
