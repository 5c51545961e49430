// Skills as coloured cells. A family (a skill's name up to the first hyphen) has one colour everywhere.

import { html } from "./html.js";
import { Line } from "./text.js";

const COLORS = 8;
const families = new Map();

export function family(skill) {
  return skill.split("-", 1)[0];
}

export function color(skill) {
  const name = family(skill);
  if (!families.has(name)) families.set(name, families.size % COLORS);
  return "family-" + families.get(name);
}

// Colours in the order of the dictionary, so that they do not depend on which episode is opened first.
export function colorAll(dictionary) {
  for (const phrase of [...dictionary.singles, ...dictionary.phrases]) phrase.skills.forEach(color);
}

export function Skill({ skill }) {
  const name = family(skill);
  const detail = skill.slice(name.length + 1).replaceAll("-", ", ").replaceAll("_", " ");
  return html`<span class="skill ${color(skill)}">
    <${Line} text=${name.replaceAll("_", " ")} length=${60} />
    ${detail && html`<small><${Line} text=${detail} length=${60} /></small>`}
  </span>`;
}

export function Skills({ skills }) {
  return html`<span class="skills">${skills.map((skill) => html`<${Skill} skill=${skill} />`)}</span>`;
}
