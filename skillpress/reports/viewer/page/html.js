// Markup as tagged templates. A value in a template becomes a text node or a property, never markup.

import { h } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
