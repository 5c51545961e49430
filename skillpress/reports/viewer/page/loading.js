// A request's result: while it loads, when it has arrived, and when it failed.

import { useEffect, useState } from "./vendor/preact-hooks.mjs";
import { html } from "./html.js";
import { QueryError } from "./query.js";
import { SourceError } from "./source.js";

// {value, error, loading}; the last value stays until the next one arrives, so that nothing flickers.
// `asked`: the values that the answer depends on.
export function useLoaded(load, asked) {
  const key = asked.join("\n");
  const [state, setState] = useState({ key: null, value: null, error: null });
  useEffect(() => {
    let wanted = true;
    load().then(
      (value) => wanted && setState({ key, value, error: null }),
      (error) => {
        if (wanted) setState({ key, value: null, error });
        if (!(error instanceof SourceError || error instanceof QueryError)) throw error;
      },
    );
    return () => {
      wanted = false;
    };
  }, [key]);
  const loading = state.key !== key;
  return { value: state.value, error: loading ? null : state.error, loading };
}

export function Waiting({ of }) {
  if (of.error) {
    return html`<div class="failed" role="alert">
      <p>${of.error.message}</p>
      <button onClick=${() => window.location.reload()}>Try again</button>
    </div>`;
  }
  return html`<p class="waiting" role="status">Loading …</p>`;
}
