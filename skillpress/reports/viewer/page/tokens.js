// Tokens: in a response, coloured by their probability; in a prompt, in alternating shades.
//
// Colour is never the only sign: unlikely tokens are also underlined, and a table has the same figures.

import { useState } from "./vendor/preact-hooks.mjs";
import { html } from "./html.js";
import { count, figure, percent, whole } from "./format.js";
import { Line, pieces, plain } from "./text.js";

const PORTION = 1_500;
const LEVELS = [
  [0.9, "≥ 90%"],
  [0.5, "50–90%"],
  [0.2, "20–50%"],
  [0.05, "5–20%"],
  [0.01, "1–5%"],
  [0, "< 1%"],
];

export function level(logprob) {
  if (logprob === null) return null;
  const probability = Math.exp(logprob);
  return LEVELS.findIndex(([least]) => probability >= least);
}

// A token's text with its line breaks made visible, each followed by one.
function Shown({ text, id }) {
  if (text === null) return html`<span class="id">${id}</span>`;
  return pieces(text).map((piece) =>
    piece.mark
      ? html`<span class="unsafe" title=${piece.name}>${piece.mark}</span>`
      : piece.split("\n").map((part, i) => (i ? html`<span class="newline">⏎</span>${"\n"}${part}` : part)),
  );
}

function title(text, id, logprob) {
  const likely = logprob === null ? "" : `, ${percent(Math.exp(logprob))}, log p ${figure(logprob)}`;
  return `${text === null ? "" : JSON.stringify(plain(text, 40)) + ", "}token ${id}${likely}`;
}

function Run({ tokens, kind }) {
  const [shown, setShown] = useState({ tokens, length: PORTION });
  const length = shown.tokens === tokens ? shown.length : PORTION;
  const left = tokens.length - length;
  return html`<div class="text tokens">
      ${tokens.slice(0, length).map(
        ([text, id, logprob = null], i) => html`<bdi
          key=${i}
          class="token ${kind(logprob, i)} ${text === null ? "number" : ""}"
          title=${title(text, id, logprob)}
        ><${Shown} text=${text} id=${id} /></bdi>`,
      )}
    </div>
    ${left > 0 &&
    html`<button class="more" onClick=${() => setShown({ tokens, length: length + PORTION })}>
      Show more (${count(left, "token")} ${left === 1 ? "is" : "are"} left)
    </button>`}`;
}

function Cut({ tokens, total }) {
  if (total === null) return null;
  return html`<p class="cut">Cut here: ${whole(tokens.length)} of ${whole(total)} tokens.</p>`;
}

export function PromptTokens({ tokens, total }) {
  return html`<${Run} tokens=${tokens} kind=${(_, i) => (i % 2 ? "odd" : "even")} />
    <${Cut} tokens=${tokens} total=${total} />`;
}

function Legend() {
  return html`<ul class="legend" aria-label="Probability of a token when it was sampled">
    ${LEVELS.map(([, name], i) => html`<li><span class="token level-${i}">ab</span> ${name}</li>`)}
  </ul>`;
}

// The information of the colours, in words.
export function summary(tokens) {
  const known = tokens.filter(([, , logprob]) => logprob !== null);
  if (known.length === 0) return count(tokens.length, "token");
  const sum = known.reduce((total, [, , logprob]) => total + logprob, 0);
  const least = known.reduce((a, b) => (b[2] < a[2] ? b : a));
  const name = least[0] === null ? `number ${least[1]}` : `“${plain(least[0], 24)}”`;
  const likely = percent(Math.exp(least[2]));
  return `${count(tokens.length, "token")}, mean log p ${figure(sum / known.length)}; least likely: ${name}, ${likely}`;
}

function TokenTable({ tokens }) {
  const [length, setLength] = useState(100);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Tokens as a table">
    <table class="figures">
      <thead>
        <tr>
          <th scope="col" class="number">Place</th><th scope="col">Token</th>
          <th scope="col" class="number">Number</th><th scope="col" class="number">log p</th>
          <th scope="col" class="number">Probability</th>
        </tr>
      </thead>
      <tbody>
        ${tokens.slice(0, length).map(
          ([text, id, logprob], i) => html`<tr key=${i}>
            <td class="number">${i}</td>
            <td>${text === null ? "–" : html`<code><${Line} text=${text} length=${40} /></code>`}</td>
            <td class="number">${id}</td>
            <td class="number">${figure(logprob)}</td>
            <td class="number">${logprob === null ? "–" : percent(Math.exp(logprob))}</td>
          </tr>`,
        )}
      </tbody>
    </table>
    ${tokens.length > length &&
    html`<button class="more" onClick=${() => setLength(length + 1000)}>
      Show more (${count(tokens.length - length, "token")})
    </button>`}
  </div>`;
}

export function ResponseTokens({ tokens, total }) {
  const [asTable, setAsTable] = useState(false);
  return html`<p class="summary"><${Line} text=${summary(tokens)} length=${200} /></p>
    <div class="bar">
      <${Legend} />
      <button aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>As a table</button>
    </div>
    ${asTable
      ? html`<${TokenTable} tokens=${tokens} />`
      : html`<${Run} tokens=${tokens} kind=${(logprob) => "level-" + (level(logprob) ?? "none")} />`}
    <${Cut} tokens=${tokens} total=${total} />`;
}
