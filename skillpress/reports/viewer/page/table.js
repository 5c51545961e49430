// Episodes as rows of a table.

import { html } from "./html.js";
import { figure, signed, whole } from "./format.js";
import { link } from "./route.js";
import { useShared } from "./shared.js";
import { Line, plain } from "./text.js";

export function Outcome({ row }) {
  return html`<span class="outcome ${row.won ? "won" : "lost"}">
    <span aria-hidden="true">${row.won ? "✓" : "✕"}</span> <${Line} text=${row.outcome} length=${24} />
  </span>`;
}

export function rolloutName(row) {
  return row.run ? `run ${row.run}, ${row.rollout}` : String(row.rollout);
}

export function stepsAndInvalid(row) {
  return whole(row.steps) + (row.invalid ? ` (${whole(row.invalid)} invalid)` : "");
}

// [column to sort by, heading, cell, class, whether it is shown]
function columns(about) {
  const always = () => true;
  return [
    ["won", "Outcome", (row) => html`<${Outcome} row=${row} />`, "", always],
    ["task", "Task", Task, "task", always],
    ["source", "File", (row) => about.sources[row.source]?.name, "wide", () => about.sources.length > 1],
    ["policy", "Policy", (row) => html`<${Line} text=${row.policy} length=${40} />`, "wide",
      () => about.policies.length > 1],
    ["stratum", "Class", (row) => html`<${Line} text=${row.stratum ?? ""} length=${40} />`, "wide",
      () => about.strata.length > 1],
    ["version", "Weights", (row) => row.version, "number wide", () => about.versions.length > 1],
    ["rollout", "Rollout", rolloutName, "number wide", always],
    ["steps", "Steps", (row) => row.steps, "number", always],
    ["invalid", "Invalid", (row) => row.invalid || "", "number wide", always],
    ["reward", "Reward", (row) => figure(row.reward), "number", always],
    ["cost", "Phrases", (row) => figure(row.cost), "number wide", () => about.has.dictionary],
    ["advantage", "Advantage", (row) => signed(row.advantage), "number wide", () => about.has.advantages],
    ["reason", "Why lost", (row) => html`<${Line} text=${row.reason ?? ""} length=${40} />`, "wide",
      () => about.reasons.length > 0],
  ].filter(([, , , , shown]) => shown());
}

function Task(row) {
  const rest = [row.policy, row.stratum, `rollout ${rolloutName(row)}`, row.reason].filter(Boolean);
  return html`<a class="row" href=${link.episode(row.id)}><${Line} text=${row.task} length=${64} /></a>
    <small class="narrow"><${Line} text=${rest.join(" · ")} length=${90} /></small>`;
}

function Heading({ name, title, kind, order }) {
  if (!order) return html`<th scope="col" class=${kind}>${title}</th>`;
  const sorted = order.sort === name;
  const direction = sorted ? (order.descending ? "descending" : "ascending") : "none";
  return html`<th scope="col" class=${kind} aria-sort=${direction}>
    <button onClick=${() => order.by(name)}>
      ${title}<span class="arrow" aria-hidden="true">${sorted ? (order.descending ? "↓" : "↑") : ""}</span>
    </button>
  </th>`;
}

// `order`: {sort, descending, by(column)}, or nothing if the order is fixed. `extra`: one more cell per row.
export function EpisodeTable({ rows, order, label, extra }) {
  const { about } = useShared();
  const shown = columns(about);
  return html`<table class="episodes" aria-label=${label}>
    <thead>
      <tr>
        ${shown.map(
          ([name, title, , kind]) =>
            html`<${Heading} key=${name} name=${name} title=${title} kind=${kind} order=${order} />`,
        )}
        ${extra && html`<th scope="col"><span class="hidden">Compare</span></th>`}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) => html`<tr key=${row.id} data-id=${plain(row.id)}>
          ${shown.map(([name, , cell, kind]) => html`<td key=${name} class=${kind}>${cell(row)}</td>`)}
          ${extra && html`<td class="extra">${extra(row)}</td>`}
        </tr>`,
      )}
    </tbody>
  </table>`;
}
