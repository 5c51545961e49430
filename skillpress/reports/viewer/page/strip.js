// An episode as a strip: one cell per skill in its colour, one box per phrase of the cut.
//
// The number of boxes is the cost of the segmentation. A step with several skills has a cell for each, and a
// box may end between two of them. A step without a skill is in the box that it interrupts, or alone with a
// dashed line.

import { html } from "./html.js";
import { count, figure } from "./format.js";
import { link } from "./route.js";
import { color, family } from "./skill.js";
import { plain } from "./text.js";

// [{part, cells: [{step, skill}]}] in order; `part` is null for a cell outside all phrases, and `skill` for a
// step without one.
export function boxes(episode) {
  const cut = episode.cut ?? [];
  const found = [];
  let next = 0;
  let inside = 0; // skills of cut[next] so far
  for (const step of episode.decisions.filter((decision) => !decision.summary)) {
    for (const skill of step.skills.length ? step.skills : [null]) {
      const part = skill !== null || inside > 0 ? cut[next] ?? null : null;
      const last = found.at(-1);
      if (part !== null && last?.part === part) last.cells.push({ step, skill });
      else found.push({ part, cells: [{ step, skill }] });
      if (part === null || skill === null) continue;
      inside += 1;
      if (inside === part.skills.length) [next, inside] = [next + 1, 0];
    }
  }
  return found;
}

function Cell({ id, step, skill, current }) {
  const name = skill === null ? "no skill" : plain(skill, 60);
  const invalid = step.invalid === null ? "" : ", invalid";
  return html`<a
    class="cell ${skill === null ? "none" : color(skill)} ${step.invalid === null ? "" : "invalid"}"
    href=${link.episode(id, step.step)}
    aria-current=${current ? "step" : undefined}
    title=${`Step ${step.step}: ${name}${invalid}`}
    aria-label=${`Step ${step.step}: ${name}${invalid}`}
  >${skill === null ? "·" : plain(short(family(skill)), 8)}</a>`;
}

// "OP_Add" -> "Add": there is little room, and colour and title tell the rest.
function short(name) {
  return name.split("_").at(-1);
}

// A phrase's cost in words; `same`: whether the summary has already given the cost of all phrases.
function price(part, bits) {
  return `costs ${figure(part.cost)}${bits === null ? "" : `, ${figure(bits, 1)} bits`}`;
}

function Cost({ part, same }) {
  const name = part.phrase === null ? "not in the dictionary" : `phrase ${part.phrase}`;
  return html`<small title=${`${name}, ${price(part, part.bits)}`}>
    ${part.phrase === null
      ? "not in the dictionary"
      : html`<a href=${link.phrase(part.phrase)} aria-label=${name}>${part.phrase}</a>`}
    ${!same && `, ${price(part, part.bits)}`}
  </small>`;
}

function summary(episode, parts, same) {
  if (episode.cut === null) return "Without a dictionary there is no cut.";
  const skills = parts.reduce((sum, part) => sum + part.skills.length, 0);
  const bits = parts.reduce((sum, part) => sum + (part.bits ?? 0), 0);
  const each = same && parts.length > 1 ? ` (each ${price(parts[0], parts[0].bits)})` : "";
  const all = `cost ${figure(episode.cost)}${bits ? `, ${figure(bits, 1)} bits` : ""}`;
  return `${count(skills, "skill")} cut into ${count(parts.length, "phrase")}${each}: ${all}`;
}

export function Strip({ episode, current }) {
  const parts = episode.cut ?? [];
  const same = parts.every((part) => part.cost === parts[0].cost && part.bits === parts[0].bits);
  return html`<section class="strip" aria-label="Skills of the episode">
    <p class="summary">${summary(episode, parts, same)}</p>
    <ol class="boxes">
      ${boxes(episode).map(
        (box) => html`<li class=${box.part === null ? "alone" : "box"}>
          <span class="cells">
            ${box.cells.map(
              ({ step, skill }) => html`<${Cell} id=${episode.id} step=${step} skill=${skill}
                current=${step.step === current} />`,
            )}
          </span>
          ${box.part !== null && html`<${Cost} part=${box.part} same=${same} />`}
        </li>`,
      )}
    </ol>
  </section>`;
}
