// The source of episodes: a server on this machine, or the document itself. Both have the same interface.

import { answer, row } from "./query.js";

const SAME_TASK = 50;

export class SourceError extends Error {}

async function fetched(path) {
  let response;
  try {
    response = await fetch(path, { credentials: "omit" });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new SourceError("The server does not answer. Is `skillpress view` still running?");
  }
  const told = await response.json();
  if (!response.ok) throw new SourceError(told.error ?? `The server answered ${response.status}.`);
  return told;
}

export class HttpSource {
  about = () => fetched("api/about");
  episodes = (query) => fetched("api/episodes?" + query.toString());
  episode = (id) => fetched("api/episode/" + encodeURIComponent(id));
  prompt = (id, position) => fetched(`api/episode/${encodeURIComponent(id)}/prompt/${position}`);
  dictionary = () => fetched("api/dictionary");
}

// The document's table holds each token once; an episode refers to tokens by their index there.
export class EmbeddedSource {
  constructor(data) {
    this.data = data;
    this.byId = new Map(data.episodes.map((episode) => [episode.id, episode]));
  }

  about = async () => this.data.about;
  dictionary = async () => this.data.dictionary;
  episodes = async (query) => answer(this.data.episodes, query);

  episode = async (id) => {
    const episode = this.find(id);
    const others = this.data.episodes.filter((other) => other.task === episode.task && other.id !== id);
    const related = (other) =>
      other.source === episode.source && other.policy === episode.policy && other.group === episode.group;
    return {
      ...episode,
      decisions: episode.decisions.map((step) => ({ ...step, response_tokens: this.sampled(step) })),
      siblings: others.filter(related).map(row),
      same_task: others.filter((other) => !related(other)).slice(0, SAME_TASK).map(row),
    };
  };

  prompt = async (id, position) => {
    const step = this.find(id).decisions[position];
    if (!step?.prompt) throw new SourceError("This prompt was left out to keep the file small.");
    return { tokens: step.prompt.map((place) => this.data.tokens[place]), tokens_cut: step.prompt_cut };
  };

  find(id) {
    const episode = this.byId.get(id);
    if (!episode) throw new SourceError(`There is no episode ${JSON.stringify(id)} here.`);
    return episode;
  }

  sampled(step) {
    return step.response_tokens.map(([place, logprob]) => [...this.data.tokens[place], logprob]);
  }
}

export function openSource() {
  const data = document.getElementById("episodes");
  return data ? new EmbeddedSource(JSON.parse(data.textContent)) : new HttpSource();
}
