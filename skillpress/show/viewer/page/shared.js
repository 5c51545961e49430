// What every view may use: the source, what is known of all episodes, the dictionary, the list one came from.

import { createContext } from "./vendor/preact.mjs";
import { useContext } from "./vendor/preact-hooks.mjs";

export const Shared = createContext(null);

// Whether all skills are worked out: costs and uses are known, or there are none to know.
export const settled = (about) => (about.skills_progress ?? 1) >= 1;

export const useShared = () => useContext(Shared);
