// The reader's position as the address after "#": every view, filter and step has its own address.

const at = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");

export const link = {
  episodes(filters) {
    const query = new URLSearchParams(filters).toString();
    return query ? at("episodes") + "?" + query : at("episodes");
  },
  episode: (id, step) => (step === undefined ? at("episode", id) : at("episode", id, step)),
  group: (id) => at("group", id),
  compare: (ids) => at("compare", ...ids),
  dictionary: () => at("dictionary"),
  phrase: (phrase) => at("phrase", phrase),
};

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return part;
    throw error;
  }
}

// {place, view, parts, filters}; an empty address is the list of episodes.
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const [view, ...parts] = path.split("/").map(decoded);
  return { place: hash, view: view || "episodes", parts, filters: new URLSearchParams(query) };
}

// Change the address without a new entry in the browser's history, as from step to step.
export function turnTo(hash) {
  window.location.replace(hash);
}
