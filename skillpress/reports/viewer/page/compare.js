// Episodes side by side, step by step: the rollouts of a group, or two policies on the same task.

import { html } from "./html.js";
import { figure, signed, whole } from "./format.js";
import { useKeys } from "./keys.js";
import { useLoaded, Waiting } from "./loading.js";
import { link } from "./route.js";
import { useShared } from "./shared.js";
import { Skills } from "./skill.js";
import { Outcome, rolloutName, stepsAndInvalid } from "./table.js";
import { Line } from "./text.js";

const MOST = 32;
// [name, value, the field that the row needs]
const FACTS = [
  ["Outcome", (episode) => html`<${Outcome} row=${episode} />`],
  ["Policy", (episode) => html`<${Line} text=${episode.policy} length=${60} />`],
  ["Rollout", rolloutName],
  ["Weights", (episode) => whole(episode.version)],
  ["Steps", stepsAndInvalid],
  ["Reward", (episode) => figure(episode.reward)],
  ["Advantage", (episode) => signed(episode.advantage), "advantage"],
  ["Phrases", (episode) => figure(episode.cost), "cost"],
];

const stepsOf = (episode) => episode.decisions.filter((decision) => !decision.summary);

// The first step at which the episodes differ.
export function parting(played) {
  const longest = Math.max(...played.map((steps) => steps.length));
  for (let i = 0; i < longest; i += 1) {
    if (new Set(played.map((steps) => steps[i]?.action)).size > 1) return i;
  }
  return null;
}

function Cell({ episode, step }) {
  if (!step) return html`<td class="over"></td>`;
  return html`<td class=${step.invalid === null ? "" : "invalid"}>
    ${step.skills.length > 0 && html`<${Skills} skills=${step.skills} />`}
    <a class="did" href=${link.episode(episode.id, step.step)}>
      <${Line} text=${step.action || "(unreadable)"} length=${140} seek=${true} />
    </a>
    ${step.invalid !== null && html`<span class="flag"><${Line} text=${step.invalid} length=${60} /></span>`}
    <small class="saw"><${Line} text=${step.observation} length=${180} seek=${true} /></small>
  </td>`;
}

function Parting({ at }) {
  if (at === null) return html`<p class="note">All steps are the same.</p>`;
  if (at === 0) return html`<p class="note">They differ from the first step on.</p>`;
  return html`<p class="note">They are the same up to step ${at - 1} and differ from step ${at} on.</p>`;
}

function Beside({ episodes, left, title }) {
  const played = episodes.map(stepsOf);
  const at = parting(played);
  const longest = Math.max(...played.map((steps) => steps.length));
  const known = (field) => episodes.some((episode) => episode[field] !== null);
  const facts = FACTS.filter(([, , field]) => field === undefined || known(field));
  return html`<div class="compare">
    <p class="crumbs"><a href=${link.episode(episodes[0].id)}>← Episode</a></p>
    <h1 tabindex="-1">${title}: <${Line} text=${episodes[0].task} length=${100} /></h1>
    <${Parting} at=${at} />
    ${left > 0 && html`<p class="note">${whole(left)} more are not shown.</p>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Episodes side by side">
      <table class="beside" style=${{ "--columns": episodes.length }}>
        <thead>
          <tr>
            <th scope="col"><span class="hidden">Step</span></th>
            ${episodes.map(
              (episode) => html`<th scope="col" key=${episode.id}>
                <a href=${link.episode(episode.id)}>Episode ${episode.id}</a>
              </th>`,
            )}
          </tr>
        </thead>
        <tbody>
          ${facts.map(
            ([name, value]) => html`<tr class="fact" key=${name}>
              <th scope="row">${name}</th>
              ${episodes.map((episode) => html`<td key=${episode.id}>${value(episode)}</td>`)}
            </tr>`,
          )}
          ${Array.from({ length: longest }, (_, i) => i).map(
            (i) => html`<tr key=${i} class=${i === at ? "parting" : ""}>
              <th scope="row" class="number">${i}</th>
              ${episodes.map(
                (episode, place) => html`<${Cell} key=${episode.id} episode=${episode} step=${played[place][i]} />`,
              )}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </div>`;
}

async function all(source, ids) {
  const episodes = await Promise.all(ids.slice(0, MOST).map((id) => source.episode(id)));
  return { episodes, left: ids.length - episodes.length };
}

async function group(source, id) {
  const { siblings } = await source.episode(id);
  const { episodes, left } = await all(source, [id, ...siblings.map((row) => row.id)]);
  return { episodes: episodes.sort((a, b) => a.run - b.run || a.rollout - b.rollout), left };
}

// `group`: whether `ids` is one episode that stands for its whole group.
export function CompareView({ ids, ofGroup }) {
  const { source } = useShared();
  const asked = [ofGroup, ...ids].join("/");
  const loaded = useLoaded(() => (ofGroup ? group(source, ids[0]) : all(source, ids)), [asked]);
  useKeys({ Escape: () => (window.location.hash = link.episode(ids[0])) });
  const title = ofGroup ? "A group side by side" : "Side by side";
  if (!loaded.value) return html`<h1 tabindex="-1">${title}</h1><${Waiting} of=${loaded} />`;
  return html`<div class=${loaded.loading ? "stale" : ""}>
    <${Beside} ...${loaded.value} title=${title} />
  </div>`;
}
