// The page: it picks the view for the address, and holds the search, the help and the previous list.

import { render } from "./vendor/preact.mjs";
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-hooks.mjs";
import { html } from "./html.js";
import { CompareView } from "./compare.js";
import { DictionaryView, PhraseView } from "./dictionary.js";
import { EpisodeView } from "./episode.js";
import { KEYS, useKeys } from "./keys.js";
import { ListView } from "./list.js";
import { useLoaded, Waiting } from "./loading.js";
import { link, parse, turnTo } from "./route.js";
import { settled, Shared } from "./shared.js";
import { colorAll } from "./skill.js";
import { openSource } from "./source.js";
import { Line, plain, Sought } from "./text.js";

const PAUSE = 250;
const PATIENCE = 1_000;

function useRoute() {
  const [route, setRoute] = useState(parse(window.location.hash));
  useLayoutEffect(() => {
    const moved = () => setRoute(parse(window.location.hash));
    window.addEventListener("hashchange", moved);
    return () => window.removeEventListener("hashchange", moved);
  }, []);
  return route;
}

function View({ route }) {
  const [first, second] = route.parts;
  switch (route.view) {
    case "episodes":
      return html`<${ListView} filters=${route.filters} />`;
    case "episode":
      return html`<${EpisodeView} id=${first} step=${second} />`;
    case "group":
      return html`<${CompareView} ids=${[first]} ofGroup=${true} />`;
    case "compare":
      return html`<${CompareView} ids=${route.parts} ofGroup=${false} />`;
    case "dictionary":
      return html`<${DictionaryView} />`;
    case "phrase":
      return html`<${PhraseView} number=${first} />`;
    default:
      return html`<h1 tabindex="-1">No such page</h1><p><a href=${link.episodes()}>To the episodes</a></p>`;
  }
}

// Typing filters the list at once if it is on screen; elsewhere Enter opens it.
function Search({ route, field }) {
  const inList = route.view === "episodes";
  const [text, setText] = useState(route.filters.get("text") ?? "");
  const waiting = useRef(0);
  useLayoutEffect(() => setText(route.filters.get("text") ?? ""), [route]);
  const search = (value, to) => {
    const filters = new URLSearchParams(inList ? route.filters : "");
    for (const name of ["text", "offset"]) filters.delete(name);
    if (value) filters.set("text", value);
    to(link.episodes(filters));
  };
  const typed = (event) => {
    const value = event.target.value;
    setText(value);
    window.clearTimeout(waiting.current);
    if (inList) waiting.current = window.setTimeout(() => search(value, turnTo), PAUSE);
  };
  const entered = (event) => {
    event.preventDefault();
    window.clearTimeout(waiting.current);
    search(text, (hash) => (window.location.hash = hash));
  };
  return html`<form class="search" role="search" onSubmit=${entered}>
    <input type="search" ref=${field} value=${text} onInput=${typed} aria-label="Search in the episodes' text"
      placeholder="Search in text" maxlength="400" spellcheck=${false} autocomplete="off"
      onKeyDown=${(event) => event.key === "Escape" && (event.preventDefault(), event.target.blur())} />
    <kbd aria-hidden="true">/</kbd>
  </form>`;
}

function Help({ dialog }) {
  return html`<dialog ref=${dialog} aria-labelledby="help-title">
    <h2 id="help-title">Keys</h2>
    <dl class="keys">
      ${KEYS.map(
        ([keys, does]) => html`<div>
          <dt>${keys.split(/ +/).map((key) => html`<kbd>${key}</kbd> `)}</dt>
          <dd>${does}</dd>
        </div>`,
      )}
    </dl>
    <form method="dialog"><button>Close</button></form>
  </dialog>`;
}

function Head({ about, route, field, help }) {
  const here = (...views) => (views.includes(route.view) ? "page" : undefined);
  return html`<header class="head">
    <a class="title" href=${link.episodes()}><${Line} text=${about.title} length=${60} /></a>
    <nav aria-label="Views">
      <a href=${link.episodes()} aria-current=${here("episodes", "episode", "group", "compare")}>Episodes</a>
      <a href=${link.dictionary()} aria-current=${here("dictionary", "phrase")}>Dictionary</a>
    </nav>
    <${Search} route=${route} field=${field} />
    <button class="plain" onClick=${help} aria-label="Keys">?</button>
  </header>`;
}

// A new view starts at its heading; another step of the same episode keeps the scroll position.
// It runs before the view is drawn: later, it would take the focus from a row that was chosen meanwhile.
function useViewFocus(route) {
  const place = route.view + "/" + (route.view === "episode" ? route.parts[0] : route.parts.join("/"));
  const before = useRef(place);
  useLayoutEffect(() => {
    if (before.current === place) return;
    before.current = place;
    window.scrollTo(0, 0);
    document.querySelector("main h1")?.focus({ preventScroll: true });
  }, [place]);
}

function App({ source, about, dictionary }) {
  const route = useRoute();
  const field = useRef(null);
  const dialog = useRef(null);
  const cameFrom = useRef({ filters: "", ids: [], offset: 0, opened: null });
  const sought = new URLSearchParams(
    route.view === "episodes" ? route.filters : cameFrom.current.filters,
  ).get("text");
  const help = () => (dialog.current.open ? dialog.current.close() : dialog.current.showModal());
  useKeys({
    "/": () => field.current.select() ?? field.current.focus(),
    "?": help,
    e: () => (window.location.hash = link.episodes(cameFrom.current.filters)),
    d: () => (window.location.hash = link.dictionary()),
  });
  useViewFocus(route);
  useEffect(() => {
    document.title = `${plain([route.view, ...route.parts].join(" "), 40)} – ${plain(about.title, 60)}`;
  }, [route]);
  return html`<${Shared.Provider} value=${{ source, about, dictionary, cameFrom }}>
    <${Sought.Provider} value=${(sought ?? "").toLowerCase()}>
      <${Head} about=${about} route=${route} field=${field} help=${help} />
      <main id="main" data-place=${route.place}><${View} route=${route} /></main>
      <${Help} dialog=${dialog} />
    <//>
  <//>`;
}

// An address without a place opens with the filters that the source names.
async function known(source) {
  const [about, dictionary] = await Promise.all([source.about(), source.dictionary()]);
  if (about.opens && window.location.hash.length < 2) turnTo(link.episodes(about.opens));
  colorAll(dictionary);
  return { about, dictionary };
}

// Repeats its request while the server computes skills, since costs and uses are unknown until then.
function Start({ source }) {
  const [again, setAgain] = useState(0);
  const loaded = useLoaded(() => known(source), [again]);
  useEffect(() => {
    if (loaded.loading || !loaded.value || settled(loaded.value.about)) return undefined;
    const timer = window.setTimeout(() => setAgain(again + 1), PATIENCE);
    return () => window.clearTimeout(timer);
  }, [loaded.value, loaded.loading]);
  if (!loaded.value) return html`<main><h1>Episodes</h1><${Waiting} of=${loaded} /></main>`;
  return html`<${App} source=${source} ...${loaded.value} />`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${Start} source=${openSource()} />`, root);
