// One decision: the policy's prompt, thought and action, the environment's answer, and the rewards.

import { html } from "./html.js";
import { figure, signed, whole } from "./format.js";
import { Prompt } from "./prompt.js";
import { link } from "./route.js";
import { Skills } from "./skill.js";
import { Line, Text } from "./text.js";
import { ResponseTokens } from "./tokens.js";

function Part({ title, kind = "", children }) {
  return html`<section class="part ${kind}"><h3>${title}</h3>${children}</section>`;
}

function Action({ decision }) {
  return html`<${Part} title="Action" kind="action ${decision.invalid === null ? "" : "invalid"}">
    <${Text} text=${decision.action ?? ""} total=${decision.action_cut} empty="(none could be read)" />
    ${decision.invalid !== null &&
    html`<p class="why"><b>Invalid:</b> <${Line} text=${decision.invalid} length=${400} /></p>`}
  <//>`;
}

function Rewards({ decision }) {
  const parts = decision.reward_parts;
  return html`<div class="fact">
    <dt>Reward</dt>
    <dd>
      <b>${figure(decision.reward)}</b>
      ${parts.length > 0 &&
      html`<ul class="plainlist">
        ${parts.map(
          (part) => html`<li>
            <${Line} text=${part.name} length=${40} /> ${signed(part.value)}
            <small>${part.credit === "step" ? "this step" : "the whole episode"}</small>
          </li>`,
        )}
      </ul>`}
    </dd>
  </div>`;
}

function weights(decision, version) {
  const spans = decision.weight_spans;
  if (spans.length === 0) return `step ${whole(version)}`;
  if (spans.length === 1) return `step ${whole(spans[0].version)}`;
  return spans.map((span) => `step ${whole(span.version)} (tokens ${span.start}–${span.end - 1})`).join(", then ");
}

function Connections({ decision, episode, call, names }) {
  const to = (place) => html`<a href=${link.episode(episode.id, names[place])}>step ${names[place]}</a> `;
  return html`<div class="fact">
      <dt>Continues</dt>
      <dd>
        ${call.parent === null ? html`<span class="muted">begins a conversation</span>` : to(call.parent)}
        ${call.parent !== null && !decision.exactly && html`<small>with another text of its response</small>`}
      </dd>
    </div>
    ${call.children.length > 0 &&
    html`<div class="fact"><dt>Continued by</dt><dd>${call.children.map(to)}</dd></div>`}`;
}

function Facts({ decision, episode, call, names }) {
  return html`<dl class="facts">
    ${!decision.summary &&
    html`<div class="fact">
      <dt>${decision.skills.length > 1 ? "Skills" : "Skill"}</dt>
      <dd>
        ${decision.skills.length
          ? html`<${Skills} skills=${decision.skills} />`
          : html`<span class="muted">none</span>`}
      </dd>
    </div>`}
    ${call &&
    html`<${Connections} decision=${decision} episode=${episode} call=${call} names=${names} />`}
    <${Rewards} decision=${decision} />
    ${decision.advantage !== null &&
    html`<div class="fact"><dt>Advantage</dt><dd><b>${signed(decision.advantage)}</b></dd></div>`}
    <div class="fact"><dt>Weights of</dt><dd>${weights(decision, episode.version)}</dd></div>
  </dl>`;
}

export function Step({ episode, position, call, names, promptOpen, togglePrompt }) {
  const decision = episode.decisions[position];
  return html`<article class="step" aria-label=${decision.summary ? "Summary" : `Step ${decision.step}`}>
    <div class="words">
      ${position === 0 &&
      html`<${Part} title="First observation">
        <${Text} text=${episode.first_observation} total=${episode.first_observation_cut} />
      <//>`}
      <${Prompt} id=${episode.id} position=${position} length=${decision.prompt_length}
        open=${promptOpen} toggle=${togglePrompt} />
      <${Part} title=${decision.summary ? "Summary of the past" : "Thought"}>
        <${Text} text=${decision.thought} total=${decision.thought_cut} />
      <//>
      ${!decision.summary && html`<${Action} decision=${decision} />`}
      ${!decision.summary &&
      html`<${Part} title="Observation">
        <${Text} text=${decision.observation} total=${decision.observation_cut} />
      <//>`}
      ${decision.response_tokens.length > 0 &&
      html`<${Part} title="Response, token by token">
        <${ResponseTokens} tokens=${decision.response_tokens} total=${decision.response_tokens_cut} />
      <//>`}
    </div>
    <${Facts} decision=${decision} episode=${episode} call=${call} names=${names} />
  </article>`;
}
