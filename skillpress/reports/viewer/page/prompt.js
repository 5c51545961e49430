// The prompt of one decision exactly as the policy saw it: as text or token by token.
//
// Most of a prompt repeats the previous prompt. That part is folded, so that the new part comes first.

import { useState } from "./vendor/preact-hooks.mjs";
import { html } from "./html.js";
import { whole } from "./format.js";
import { useLoaded, Waiting } from "./loading.js";
import { useShared } from "./shared.js";
import { SourceError } from "./source.js";
import { clipped, Text } from "./text.js";
import { PromptTokens } from "./tokens.js";

const WORTH_FOLDING = 400;

function textOf(prompt) {
  if (!prompt || prompt.tokens.some(([text]) => text === null)) return null;
  return prompt.tokens.map(([text]) => text).join("");
}

function shared(text, before) {
  if (before === null) return 0;
  let length = 0;
  while (length < text.length && text[length] === before[length]) length += 1;
  return clipped(text, length).length;
}

// If a prompt fails to load, the next one is still shown.
async function previous(source, id, position) {
  if (position === 0) return null;
  try {
    return await source.prompt(id, position - 1);
  } catch (error) {
    if (error instanceof SourceError) return null;
    throw error;
  }
}

async function withPrevious(source, id, position) {
  const [now, before] = await Promise.all([source.prompt(id, position), previous(source, id, position)]);
  return { now, text: textOf(now), before: textOf(before) };
}

function PromptText({ text, before }) {
  const same = shared(text, before);
  if (same < WORTH_FOLDING) return html`<${Text} text=${text} />`;
  return html`<details class="same">
      <summary>The first ${whole(same)} characters are as in the prompt before</summary>
      <${Text} text=${text.slice(0, same)} />
    </details>
    <${Text} text=${text.slice(same)} empty="(nothing new)" />`;
}

function Loaded({ id, position }) {
  const { source } = useShared();
  const [asTokens, setAsTokens] = useState(false);
  const loaded = useLoaded(() => withPrevious(source, id, position), [id, position]);
  if (!loaded.value) return html`<${Waiting} of=${loaded} />`;
  const { now, text, before } = loaded.value;
  if (now.tokens.length === 0) return html`<p class="muted">No prompt was kept.</p>`;
  const tokens = text === null || asTokens;
  return html`<div class="bar">
      <div class="choice" role="group" aria-label="Prompt as">
        <button aria-pressed=${!tokens} disabled=${text === null} onClick=${() => setAsTokens(false)}>Text</button>
        <button aria-pressed=${tokens} onClick=${() => setAsTokens(true)}>Tokens</button>
      </div>
      ${text === null && html`<span class="muted">Texts of tokens need the policy's tokenizer.</span>`}
    </div>
    ${tokens
      ? html`<${PromptTokens} tokens=${now.tokens} total=${now.tokens_cut} />`
      : html`<${PromptText} text=${text} before=${before} />
          ${now.tokens_cut !== null &&
          html`<p class="cut">Cut here: ${whole(now.tokens.length)} of ${whole(now.tokens_cut)} tokens.</p>`}`}`;
}

export function Prompt({ id, position, length, open, toggle }) {
  if (length === 0) return null;
  return html`<section class="part prompt">
    <h3>
      <button aria-expanded=${open} onClick=${toggle}>
        <span class="fold" aria-hidden="true">${open ? "▾" : "▸"}</span> Prompt
        <small>${length !== null && `${whole(length)} tokens, `}exactly as the policy saw it</small>
      </button>
    </h3>
    ${open && html`<${Loaded} id=${id} position=${position} />`}
  </section>`;
}
