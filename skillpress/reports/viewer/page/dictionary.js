// The dictionary: its phrases, their uses, and in which training steps each was part of it.

import { useState } from "./vendor/preact-hooks.mjs";
import { html } from "./html.js";
import { count, figure, whole } from "./format.js";
import { moveFocus, useKeys } from "./keys.js";
import { useLoaded, Waiting } from "./loading.js";
import { link } from "./route.js";
import { useShared } from "./shared.js";
import { Skills } from "./skill.js";
import { EpisodeTable } from "./table.js";
import { plain } from "./text.js";

const SHOWN = 200;
const NONE = "No phrase has such a skill.";
const ORDERS = [
  ["uses", "Uses", (phrase) => phrase.uses],
  ["episodes", "Episodes", (phrase) => phrase.episodes],
  ["bits", "Bits saved", (phrase) => phrase.bits ?? 0],
  ["length", "Skills", (phrase) => phrase.skills.length],
  ["life", "Training steps", (phrase) => (phrase.history ?? []).filter(([, uses]) => uses > 0).length],
];

// Whether the phrase can be in a cut; phrases that only training's dictionaries had are listed too.
const inUse = (phrase) => phrase.uses > 0 || phrase.bits !== null;

export function lifetime(history) {
  const present = history.filter(([, uses]) => uses > 0).map(([step]) => step);
  if (present.length === 0) return "in no training step's dictionary";
  return (
    `in the dictionary at ${whole(present.length)} of ${count(history.length, "training step")}, ` +
    `first at ${present[0]}, last at ${present.at(-1)}`
  );
}

function History({ history, large }) {
  if (!history) return html`<span class="muted">–</span>`;
  const most = Math.max(1, ...history.map(([, uses]) => uses));
  return html`<svg
    class="history ${large ? "large" : ""}" role="img" aria-label=${lifetime(history)}
    viewBox="0 0 ${history.length} 20" preserveAspectRatio="none"
  >
    <rect class="ground" x="0" y="19" width=${history.length} height="1" />
    ${history.map(
      ([, uses], i) =>
        uses > 0 &&
        html`<rect x=${i} width="1" y=${18 - (16 * uses) / most} height=${2 + (16 * uses) / most} />`,
    )}
  </svg>`;
}

function named(phrase) {
  return `Phrase ${phrase.phrase}: ${plain(phrase.skills.join(", "), 200)}`;
}

function Rows({ phrases, history }) {
  return html`<tbody>
    ${phrases.map(
      (phrase) => html`<tr key=${phrase.phrase}>
        <th scope="row">
          <a class="row" href=${link.phrase(phrase.phrase)} aria-label=${named(phrase)}>
            <span class="index">${phrase.phrase}</span> <${Skills} skills=${phrase.skills} />
          </a>
        </th>
        <td class="number">${whole(phrase.uses)}</td>
        <td class="number">${whole(phrase.episodes)}</td>
        ${history && html`<td class="number">${figure(phrase.bits, 1)}</td>`}
        ${history && html`<td class="wide"><${History} history=${phrase.history} /></td>`}
      </tr>`,
    )}
  </tbody>`;
}

function Phrases({ title, phrases, history, none }) {
  const [length, setLength] = useState(SHOWN);
  if (phrases.length === 0) return html`<section><h2>${title}</h2><p class="nothing">${none}</p></section>`;
  return html`<section>
    <h2>${title} <small>${whole(phrases.length)}</small></h2>
    <div class="scroll" tabindex="0" role="region" aria-label=${title}>
    <table class="phrases" aria-label=${title}>
      <thead>
        <tr>
          <th scope="col">Phrase</th>
          <th scope="col" class="number">Uses</th><th scope="col" class="number">Episodes</th>
          ${history && html`<th scope="col" class="number">Bits</th>`}
          ${history && html`<th scope="col" class="wide">Over training</th>`}
        </tr>
      </thead>
      <${Rows} phrases=${phrases.slice(0, length)} history=${history} />
    </table>
    </div>
    ${phrases.length > length &&
    html`<button class="more" onClick=${() => setLength(length + SHOWN)}>
      Show more (${whole(phrases.length - length)})
    </button>`}
  </section>`;
}

const holds = (sought) => (phrase) =>
  phrase.skills.some((skill) => skill.toLowerCase().includes(sought.toLowerCase()));

export function DictionaryView() {
  const { dictionary } = useShared();
  const [order, setOrder] = useState("uses");
  const [sought, setSought] = useState("");
  const move = (by) => () => moveFocus("a.row", by);
  useKeys({ j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1) });
  const { phrases, singles } = dictionary;
  if (phrases.length + singles.length === 0) {
    return html`<h1 tabindex="-1">Dictionary</h1>
      <p class="nothing">No dictionary was found beside these episodes.</p>`;
  }
  const learned = phrases.filter(inUse);
  const former = phrases.filter((phrase) => !inUse(phrase));
  const by = ORDERS.find(([name]) => name === order)[2];
  const chosen = (all) => all.filter(holds(sought)).sort((a, b) => by(b) - by(a) || a.phrase - b.phrase);
  return html`<h1 tabindex="-1">Dictionary</h1>
    <div class="bar controls">
      <label>Order <select value=${order} onChange=${(event) => setOrder(event.target.value)}>
        ${ORDERS.map(([name, title]) => html`<option value=${name}>${title}</option>`)}
      </select></label>
      <label>Skill <input type="text" value=${sought} placeholder="part of a name"
        onInput=${(event) => setSought(event.target.value)} /></label>
    </div>
    <${Phrases} title="Learned phrases" phrases=${chosen(learned)} history=${true}
      none=${learned.length === 0 ? "No phrase longer than a single skill was learned." : NONE} />
    ${former.length > 0 &&
    html`<${Phrases} title="Phrases of training's dictionaries alone" phrases=${chosen(former)} history=${true} none=${NONE} />`}
    <${Phrases} title="Single skills" phrases=${chosen(singles)} history=${false} none=${NONE} />`;
}

function PhraseFacts({ phrase }) {
  return html`<dl class="headline">
      <div><dt>Uses</dt> <dd>${whole(phrase.uses)}</dd></div>
      <div><dt>Episodes here</dt> <dd>${whole(phrase.episodes)}</dd></div>
      <div><dt>Skills</dt> <dd>${whole(phrase.skills.length)}</dd></div>
      ${phrase.bits !== null && html`<div><dt>Bits saved</dt> <dd>${figure(phrase.bits, 1)}</dd></div>`}
    </dl>
    ${phrase.history &&
    html`<figure>
      <${History} history=${phrase.history} large=${true} />
      <figcaption>
        Uses over training, from step ${phrase.history[0]?.[0]} to ${phrase.history.at(-1)?.[0]}:${" "}
        ${lifetime(phrase.history)}.
      </figcaption>
    </figure>`}`;
}

export function PhraseView({ number }) {
  const { dictionary, source } = useShared();
  const phrase = [...dictionary.singles, ...dictionary.phrases].find((one) => String(one.phrase) === number);
  const query = new URLSearchParams({ phrase: number });
  const found = useLoaded(() => (phrase ? source.episodes(query) : Promise.resolve(null)), [number]);
  const move = (by) => () => moveFocus("a.row", by);
  useKeys({
    j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1),
    Escape: () => (window.location.hash = link.dictionary()),
  });
  if (!phrase) {
    return html`<h1 tabindex="-1">Phrase</h1>
      <p class="nothing">The dictionary has no such phrase.</p>`;
  }
  return html`<p class="crumbs"><a href=${link.dictionary()}>← Dictionary</a></p>
    <h1 tabindex="-1">Phrase ${phrase.phrase}</h1>
    <p><${Skills} skills=${phrase.skills} /></p>
    ${phrase.skills.length > 1 && !inUse(phrase) &&
    html`<p class="note">Training's dictionaries had it for a time; the one that episodes are cut by has not.</p>`}
    <${PhraseFacts} phrase=${phrase} />
    <h2>Episodes whose cut has it</h2>
    ${found.value
      ? html`<p><a href=${link.episodes(query)}>All ${count(found.value.total, "episode")} in the list</a></p>
          <div class="scroll" tabindex="0" role="region" aria-label="Episodes whose cut has it">
            <${EpisodeTable} rows=${found.value.rows} label="Episodes whose cut has it" />
          </div>`
      : html`<${Waiting} of=${found} />`}`;
}
