// The filters of a list of episodes: values to tick and ranges to type.

import { html } from "./html.js";
import { Line } from "./text.js";

const FACETS = [
  ["outcome", "Outcome", "outcomes"],
  ["policy", "Policy", "policies"],
  ["stratum", "Class", "strata"],
  ["reason", "Why lost", "reasons"],
  ["split", "Split", "splits"],
];

const RANGES = [
  ["steps", "Steps", () => true],
  ["reward", "Reward", () => true],
  ["cost", "Phrases", (about) => about.has.dictionary],
  ["version", "Weights of step", (about) => about.versions.length > 1],
];

function values(about) {
  const facets = FACETS.map(([name, title, all]) => [name, title, about[all].map((value) => [value, value])]);
  const sources = about.sources.map((source) => [String(source.source), source.name]);
  return [["source", "File", sources], ...facets].filter(([, , all]) => all.length > 1);
}

function Facet({ name, title, all, filters, change }) {
  const ticked = filters.getAll(name);
  const toggle = (value) =>
    change(name, ticked.includes(value) ? ticked.filter((other) => other !== value) : [...ticked, value]);
  return html`<fieldset>
    <legend>${title}</legend>
    <div class="values">
      ${all.map(
        ([value, label]) => html`<label key=${value}>
          <input type="checkbox" checked=${ticked.includes(value)} onChange=${() => toggle(value)} />
          ${label === "" ? "(none)" : html`<${Line} text=${label} length=${60} />`}
        </label>`,
      )}
    </div>
  </fieldset>`;
}

function Range({ name, title, filters, change }) {
  const end = (side, label) => html`<input
    type="number"
    step="any"
    aria-label=${`${title}, ${label}`}
    placeholder=${label}
    value=${Number.isFinite(Number(filters.get(side + name))) ? filters.get(side + name) : ""}
    onChange=${(event) => change(side + name, event.target.value === "" ? [] : [event.target.value])}
  />`;
  return html`<fieldset class="range">
    <legend>${title}</legend>
    ${end("min_", "at least")} <span aria-hidden="true">–</span> ${end("max_", "at most")}
  </fieldset>`;
}

export function Facets({ about, filters, change }) {
  return html`${values(about).map(
    ([name, title, all]) =>
      html`<${Facet} key=${name} name=${name} title=${title} all=${all} filters=${filters} change=${change} />`,
  )}
  ${RANGES.filter(([, , shown]) => shown(about)).map(
    ([name, title]) =>
      html`<${Range} key=${name} name=${name} title=${title} filters=${filters} change=${change} />`,
  )}`;
}

const NOT_FILTERS = ["sort", "descending", "offset", "limit"];
const SIGNS = { min_: "≥", max_: "≤" };

export function activeFilters(filters) {
  return [...filters].filter(([name]) => !NOT_FILTERS.includes(name));
}

function described(name, value, about) {
  const side = name.slice(0, 4);
  if (side in SIGNS) return `${name.slice(4)} ${SIGNS[side]} ${value}`;
  if (name === "source") return `file ${about.sources[Number(value)]?.name ?? value}`;
  return `${name} ${value === "" ? "(none)" : value}`;
}

// The active filters, each with a button that removes it.
export function Chips({ about, filters, change, clear }) {
  const active = activeFilters(filters);
  if (active.length === 0) return null;
  const without = (name, value) => filters.getAll(name).filter((other) => other !== value);
  return html`<ul class="chips" aria-label="Filters in use">
    ${active.map(
      ([name, value]) => html`<li>
        <button onClick=${() => change(name, without(name, value))}>
          <${Line} text=${described(name, value, about)} length=${60} />
          <span aria-hidden="true"> ×</span><span class="hidden">: remove this filter</span>
        </button>
      </li>`,
    )}
    <li><button class="plain" onClick=${clear}>Clear all</button></li>
  </ul>`;
}
