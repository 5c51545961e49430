// One episode: its facts, its strip of skills, its steps as a list, and the chosen step whole.

import { useLayoutEffect, useRef, useState } from "./vendor/preact-hooks.mjs";
import { conversations, tree } from "./conversations.js";
import { html } from "./html.js";
import { count, figure, signed, whole } from "./format.js";
import { useKeys } from "./keys.js";
import { useLoaded, Waiting } from "./loading.js";
import { link, turnTo } from "./route.js";
import { useShared } from "./shared.js";
import { color } from "./skill.js";
import { Step } from "./step.js";
import { Strip } from "./strip.js";
import { EpisodeTable, Outcome, rolloutName, stepsAndInvalid } from "./table.js";
import { Line, plain, Text } from "./text.js";

// A step's name in an address: its number; for a summary "s" and the number; ".2" for a second summary.
export function stepNames(decisions) {
  const seen = new Map();
  return decisions.map((decision) => {
    const name = (decision.summary ? "s" : "") + decision.step;
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return seen.get(name) > 1 ? `${name}.${seen.get(name)}` : name;
  });
}

function Header({ episode, calls }) {
  const { about } = useShared();
  const facts = [
    ["Policy", episode.policy],
    ["Rollout", rolloutName(episode)],
    ["Weights of step", about.versions.length > 1 ? whole(episode.version) : null],
    ["Class", episode.stratum],
    ["Steps", stepsAndInvalid(episode)],
    ["Conversations", calls && whole(conversations(calls))],
    ["Reward", figure(episode.reward)],
    ["Advantage", episode.advantage === null ? null : signed(episode.advantage)],
    ["Why lost", episode.reason],
    ["Group", episode.group],
    ["File", about.sources.length > 1 ? about.sources[episode.source]?.name : null],
  ].filter(([, value]) => value);
  return html`<dl class="headline">
    ${facts.map(
      ([name, value]) => html`<div><dt>${name}</dt> <dd><${Line} text=${value} length=${80} /></dd></div>`,
    )}
  </dl>`;
}

// Scrolls only the list, not the page.
function keepInSight(list, item) {
  const above = item.offsetTop - list.scrollTop;
  if (above < 0 || above + item.offsetHeight > list.clientHeight) {
    list.scrollTop = item.offsetTop - list.clientHeight / 2;
  }
}

const DEEPEST = 6;

const laneOf = (call) => `lane lane-${Math.min(call.lane, DEEPEST)} ${call.begins ? "begins" : ""}`;

// Where a call that does not follow the one above it belongs.
function origin(call, place, names) {
  if (!call || place === 0) return null;
  if (call.parent === null) return "new";
  return call.parent === place - 1 ? null : `after ${names[call.parent]}`;
}

function Entry({ decision, name, id, current, call, from }) {
  const kind = decision.summary ? "summarised" : decision.invalid === null ? "" : "invalid";
  const what = decision.summary ? "summary" : decision.action || "(unreadable)";
  const why = decision.invalid;
  return html`<a href=${link.episode(id, name)} aria-current=${current ? "step" : undefined}
    class=${`${kind} ${call ? laneOf(call) : ""}`}>
    ${(decision.skills.length ? decision.skills.map(color) : ["none"]).map(
      (kind) => html`<span class="dot ${kind}"></span>`,
    )}
    <span class="number">${decision.summary ? "Σ" : decision.step}</span>
    <span class="what"><${Line} text=${what} length=${90} seek=${true} /></span>
    ${from !== null && html`<span class="from">${from}</span>`}
    ${why !== null && html`<span class="flag" title=${plain(why, 200)}>invalid</span>`}
    ${decision.reward !== 0 && html`<span class="worth">${signed(decision.reward, 2)}</span>`}
  </a>`;
}

function Timeline({ episode, calls, names, position }) {
  const here = useRef(null);
  const list = useRef(null);
  useLayoutEffect(() => keepInSight(list.current, here.current), [position]);
  return html`<nav class="timeline" aria-label="Steps" ref=${list}>
    <ol>
      ${episode.decisions.map(
        (decision, i) => html`<li key=${names[i]} ref=${i === position ? here : undefined}>
          <${Entry} decision=${decision} name=${names[i]} id=${episode.id} current=${i === position}
            call=${calls?.[i]} from=${origin(calls?.[i], i, names)} />
        </li>`,
      )}
    </ol>
  </nav>`;
}

function Related({ episode }) {
  const beside = (row) => html`<a href=${link.compare([episode.id, row.id])}>side by side</a>`;
  return html`${episode.siblings.length > 0 &&
    html`<section class="related">
      <h2>The group's other rollouts</h2>
      <p><a class="button" href=${link.group(episode.id)}>All ${episode.siblings.length + 1} side by side</a></p>
      <div class="scroll" tabindex="0" role="region" aria-label="The group's other rollouts">
        <${EpisodeTable} rows=${episode.siblings} label="The group's other rollouts" extra=${beside} />
      </div>
    </section>`}
  ${episode.same_task.length > 0 &&
    html`<section class="related">
      <h2>The same task, played by others</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="The same task, played by others">
        <${EpisodeTable} rows=${episode.same_task} label="The same task, played by others" extra=${beside} />
      </div>
    </section>`}`;
}

// The next episode in the list that the reader came from, on whatever page of it.
function useNeighbours(id) {
  const { source, cameFrom } = useShared();
  const from = cameFrom.current;
  return async (by) => {
    const place = from.ids.indexOf(id);
    if (place < 0) return;
    let next = from.ids[place + by];
    if (next === undefined) {
      const at = from.offset + place + by;
      if (at < 0) return;
      const query = new URLSearchParams(from.filters);
      query.set("offset", String(at));
      query.set("limit", "50");
      const found = await source.episodes(query);
      if (found.rows.length === 0) return;
      next = found.rows[0].id;
      Object.assign(from, { ids: found.rows.map((row) => row.id), offset: at });
    }
    turnTo(link.episode(next));
  };
}

function Opened({ episode, step }) {
  const { cameFrom } = useShared();
  const [promptOpen, setPromptOpen] = useState(false);
  const names = stepNames(episode.decisions);
  const calls = tree(episode.decisions);
  const position = Math.max(0, step === undefined ? 0 : names.indexOf(step));
  const chosen = useRef(null);
  const decision = episode.decisions[position];
  const neighbour = useNeighbours(episode.id);
  const move = (by) => () => {
    const next = names[position + by];
    if (next !== undefined) turnTo(link.episode(episode.id, next));
  };
  const togglePrompt = () => setPromptOpen(!promptOpen);
  // Before the episode is drawn: an effect after it may come later than the next key.
  useLayoutEffect(() => {
    cameFrom.current.opened = plain(episode.id);
  }, [episode.id]);
  useLayoutEffect(() => {
    if (chosen.current?.getBoundingClientRect().top < 0) chosen.current.scrollIntoView();
  }, [position]);
  useKeys({
    j: move(1), ArrowRight: move(1), k: move(-1), ArrowLeft: move(-1),
    n: () => neighbour(1), p: () => neighbour(-1), v: togglePrompt,
    c: () => episode.siblings.length && (window.location.hash = link.group(episode.id)),
    Escape: () => (window.location.hash = link.episodes(cameFrom.current.filters)),
  });
  return html`<div class="episode">
    <p class="crumbs"><a href=${link.episodes(cameFrom.current.filters)}>← Episodes</a></p>
    <h1 tabindex="-1"><${Outcome} row=${episode} /> <${Line} text=${episode.task} length=${100} /></h1>
    <${Header} episode=${episode} calls=${calls} />
    ${episode.description !== null &&
    html`<details class="description">
      <summary>The task</summary><${Text} text=${episode.description} total=${episode.description_cut} />
    </details>`}
    ${episode.decisions.some((one) => one.skills.length) &&
    html`<${Strip} episode=${episode} current=${decision?.summary ? null : decision?.step} />`}
    ${decision === undefined
      ? html`<p class="nothing">No step was played.</p>
          <${Text} text=${episode.first_observation} />`
      : html`<div class="played">
          <${Timeline} episode=${episode} calls=${calls} names=${names} position=${position} />
          <div class="chosen" ref=${chosen}>
            ${step !== undefined && !names.includes(step) &&
            html`<p class="note">This episode has no step ${plain(step, 20)}; here is its first.</p>`}
            <div class="bar">
              <h2>${decision.summary ? `Summary before step ${decision.step}` : `Step ${decision.step}`}</h2>
              <span class="muted" role="status">${position + 1} of ${count(names.length, "decision")}</span>
              <span class="turn">
                <button onClick=${move(-1)} disabled=${position === 0} aria-label="Previous step">←</button>
                <button onClick=${move(1)} disabled=${position === names.length - 1} aria-label="Next step">→</button>
              </span>
            </div>
            <${Step} episode=${episode} position=${position} call=${calls?.[position]} names=${names}
              promptOpen=${promptOpen} togglePrompt=${togglePrompt} />
          </div>
        </div>`}
    <${Related} episode=${episode} />
  </div>`;
}

export function EpisodeView({ id, step }) {
  const { source } = useShared();
  const loaded = useLoaded(() => source.episode(id), [id]);
  if (!loaded.value) return html`<h1 tabindex="-1" class="hidden">Episode</h1><${Waiting} of=${loaded} />`;
  return html`<div class=${loaded.loading ? "stale" : ""}>
    <${Opened} key=${loaded.value.id} episode=${loaded.value} step=${step} />
  </div>`;
}
