// Shared by all views: the source, the facts about all episodes, the dictionary, the list before this view.

import { createContext } from "./vendor/preact.mjs";
import { useContext } from "./vendor/preact-hooks.mjs";

export const Shared = createContext(null);

// Whether all skills are computed: costs and uses are known, or do not exist.
export const settled = (about) => (about.skills_progress ?? 1) >= 1;

export const useShared = () => useContext(Shared);
