// The list of episodes, with filters beside it, fifty rows per page and an address for every state.

import { useEffect, useLayoutEffect, useState } from "./vendor/preact-hooks.mjs";
import { html } from "./html.js";
import { activeFilters, Chips, Facets } from "./facets.js";
import { count, percent, whole } from "./format.js";
import { moveFocus, useKeys } from "./keys.js";
import { useLoaded, Waiting } from "./loading.js";
import { link } from "./route.js";
import { settled, useShared } from "./shared.js";
import { EpisodeTable } from "./table.js";
import { Text } from "./text.js";

const PAGE = 50;
const PAUSE = 200;
const FIRST_DOWN = ["won", "steps", "invalid", "reward", "cost", "advantage", "version"];

function changed(filters, name, values) {
  const next = new URLSearchParams(filters);
  next.delete(name);
  for (const value of values) next.append(name, value);
  if (name !== "offset") next.delete("offset");
  return next;
}

function go(filters) {
  window.location.hash = link.episodes(filters);
}

function sortedBy(filters, column) {
  const again = filters.get("sort") === column;
  const descending = again ? filters.get("descending") !== "1" : FIRST_DOWN.includes(column);
  return changed(changed(filters, "sort", [column]), "descending", [descending ? "1" : "0"]);
}

function Pages({ total, offset, filters }) {
  if (total <= PAGE && offset === 0) return null;
  const page = (at) => link.episodes(changed(filters, "offset", at > 0 ? [String(at)] : []));
  const last = Math.min(offset + PAGE, total);
  return html`<nav class="pages" aria-label="Pages">
    ${offset > 0
      ? html`<a class="button" href=${page(offset - PAGE)}>← Previous</a>`
      : html`<span class="button off">← Previous</span>`}
    <span>${whole(Math.min(offset + 1, total))}–${whole(last)} of ${whole(total)}</span>
    ${last < total
      ? html`<a class="button" href=${page(offset + PAGE)}>Next →</a>`
      : html`<span class="button off">Next →</span>`}
  </nav>`;
}

// A long search returns its matches so far; repeating the request returns the progress.
function usePage(query) {
  const { source, about } = useShared();
  const asked = query.toString();
  const [again, setAgain] = useState(0);
  const found = useLoaded(() => source.episodes(query), [asked, again, settled(about)]);
  useEffect(() => {
    if (found.loading || !found.value || found.value.complete) return undefined;
    const timer = window.setTimeout(() => setAgain(again + 1), PAUSE);
    return () => window.clearTimeout(timer);
  }, [found.value, found.loading]);
  return found;
}

function Total({ found }) {
  if (!found) return " ";
  if (found.complete) return count(found.total, "episode");
  return `${count(found.total, "episode")} so far: searched ${percent(found.progress)} …`;
}

function useListKeys(filters, offset, total) {
  const turn = (at) => () => {
    if (at >= 0 && at < total) go(changed(filters, "offset", at > 0 ? [String(at)] : []));
  };
  const move = (by) => () => moveFocus("a.row", by);
  useKeys({
    j: move(1), ArrowDown: move(1), k: move(-1), ArrowUp: move(-1),
    n: turn(offset + PAGE), p: turn(offset - PAGE),
  });
}

function useFocusOnReturn(found, cameFrom) {
  useLayoutEffect(() => {
    if (!found || !cameFrom.current.opened) return;
    const rows = [...document.querySelectorAll("tr[data-id]")];
    rows.find((row) => row.dataset.id === cameFrom.current.opened)?.querySelector("a.row").focus();
    cameFrom.current.opened = null;
  }, [found]);
}

export function ListView({ filters }) {
  const { about, cameFrom } = useShared();
  const query = new URLSearchParams(filters);
  query.set("limit", String(PAGE));
  const found = usePage(query);
  const offset = Number(filters.get("offset") ?? 0);
  const total = found.value?.total ?? 0;
  useListKeys(filters, offset, total);
  useFocusOnReturn(found.value, cameFrom);
  useLayoutEffect(() => {
    cameFrom.current.filters = filters.toString();
    cameFrom.current.ids = found.value?.rows.map((row) => row.id) ?? [];
    cameFrom.current.offset = offset;
  }, [found.value, filters.toString()]);

  const change = (name, values) => go(changed(filters, name, values));
  const order = {
    sort: filters.get("sort"),
    descending: filters.get("descending") === "1",
    by: (column) => go(sortedBy(filters, column)),
  };
  const active = activeFilters(filters).length;
  return html`<div class="list">
    <${FilterPanel} active=${active}><${Facets} about=${about} filters=${filters} change=${change} /><//>
    <section class="found">
      <h1 tabindex="-1">Episodes</h1>
      ${about.note && html`<div class="note"><${Text} text=${about.note} /></div>`}
      ${!settled(about) &&
      html`<p class="note">Computing skills: ${percent(about.skills_progress)} …</p>`}
      <div class="bar">
        <p class="total" role="status">
          <${Total} found=${found.value} />
        </p>
        <${Chips} about=${about} filters=${filters} change=${change} clear=${() => go(new URLSearchParams())} />
      </div>
      ${found.value
        ? html`<div class=${found.loading && found.value.complete ? "stale" : ""}>
            ${found.value.rows.length > 0
              ? html`<div class="scroll"><${EpisodeTable} rows=${found.value.rows} order=${order} label="Episodes" /></div>`
              : html`<p class="nothing">No episode passes these filters.</p>`}
            <${Pages} total=${total} offset=${offset} filters=${filters} />
          </div>`
        : html`<${Waiting} of=${found} />`}
    </section>
  </div>`;
}

// Beside the list if there is room; otherwise folded above it.
function FilterPanel({ active, children }) {
  const wide = window.matchMedia("(min-width: 1000px)").matches;
  return html`<aside class="filters" aria-label="Filters">
    <details open=${wide || undefined}>
      <summary>Filters${active > 0 && ` (${active} in use)`}</summary>
      <div class="facets">${children}</div>
    </details>
  </aside>`;
}
