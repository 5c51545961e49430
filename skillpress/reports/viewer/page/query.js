// Filters, order and text search over episodes that are all in memory.
//
// The server does the same over files (skillpress/reports/viewer); a test checks that their answers agree.

const EQUAL = ["source", "policy", "outcome", "stratum", "reason", "version", "task", "group", "split"];
const RANGED = ["steps", "reward", "cost", "version"];
const COLUMNS = [
  "id", "source", "task", "group", "policy", "run", "rollout", "version", "split", "stratum", "won",
  "outcome", "steps", "invalid", "reason", "reward", "cost", "advantage",
];
const PAGING = { offset: 0, limit: 50 };
const REPEATED = [...EQUAL, "phrase"];
const OTHER = ["won", "phrase", "text", "sort", "descending"];

export class QueryError extends Error {}

function number(name, text) {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) {
    throw new QueryError(`${name} must be a number, not ${JSON.stringify(text)}`);
  }
  return value;
}

export function byCodePoint(a, b) {
  const left = [...a];
  const right = [...b];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    if (left[i] !== right[i]) return left[i].codePointAt(0) - right[i].codePointAt(0);
  }
  return left.length - right.length;
}

function compared(a, b) {
  return typeof a === "string" ? byCodePoint(a, b) : Number(a) - Number(b);
}

// The texts that the search looks at, each separately, in lower case.
function texts(episode) {
  const steps = episode.decisions.flatMap((step) => [step.thought, step.action ?? "", step.observation]);
  return [episode.first_observation, ...steps].map((text) => text.toLowerCase());
}

function equalTo(name, values) {
  const wanted = new Set(values);
  return (episode) => wanted.has(String(episode[name] ?? ""));
}

function within(name, value, most) {
  const limit = number(name, value);
  const column = name.slice(4);
  return (episode) => episode[column] !== null && (most ? episode[column] <= limit : episode[column] >= limit);
}

function test(name, values) {
  const last = values.at(-1);
  if (values.length > 1 && !REPEATED.includes(name)) throw new QueryError(`${name}: is given twice; give it once`);
  if (EQUAL.includes(name)) return equalTo(name, values);
  if (name.startsWith("min_") && RANGED.includes(name.slice(4))) return within(name, last, false);
  if (name.startsWith("max_") && RANGED.includes(name.slice(4))) return within(name, last, true);
  if (name === "won") return (episode) => episode.won === (number(name, last) === 1);
  if (name === "phrase") {
    const wanted = new Set(values.map((value) => number(name, value)));
    return (episode) => (episode.cut ?? []).some((part) => wanted.has(part.phrase));
  }
  if (name === "text") {
    const sought = last.toLowerCase();
    return (episode) => texts(episode).some((text) => text.includes(sought));
  }
  if (name in PAGING || OTHER.includes(name)) return null;
  throw new QueryError(`there is no filter ${JSON.stringify(name)}`);
}

function ordered(episodes, column, descending) {
  if (!COLUMNS.includes(column) || column === "id") throw new QueryError(`there is no column ${JSON.stringify(column)}`);
  const known = episodes.filter((episode) => episode[column] !== null);
  const sign = descending ? -1 : 1;
  known.sort((a, b) => sign * compared(a[column], b[column]));
  return [...known, ...episodes.filter((episode) => episode[column] === null)];
}

export function row(episode) {
  return Object.fromEntries(COLUMNS.map((name) => [name, episode[name] ?? null]));
}

// The page of rows that a query requests, and its total number of matches.
export function answer(episodes, query) {
  const names = [...new Set(query.keys())];
  const tests = names.map((name) => test(name, query.getAll(name))).filter(Boolean);
  let found = episodes.filter((episode) => tests.every((passes) => passes(episode)));
  if (query.get("sort")) found = ordered(found, query.get("sort"), query.get("descending") === "1");
  const offset = number("offset", query.get("offset") ?? String(PAGING.offset));
  const limit = number("limit", query.get("limit") ?? String(PAGING.limit));
  return { total: found.length, rows: found.slice(offset, offset + limit).map(row), complete: true, progress: 1 };
}
