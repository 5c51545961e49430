// The conversations of an agent that owns its loop: which call continues which, and a lane for each.
//
// As in the graph of a version history, a conversation has a lane to itself until its last call. So
// sub-agents lie beside the agent that waits for them, and what follows a compaction lies where the old
// conversation ended.

// [{lane, parent, children, begins}] per decision; null if the episode is not a tree. `parent` and `children`
// are places among the decisions. A decision begins a conversation, or a branch of one, if `begins`.
export function tree(decisions) {
  if (decisions.every((decision) => decision.continues === null)) return null;
  const found = decisions.map((decision) => ({ parent: decision.continues, children: [] }));
  const talks = [];
  found.forEach((call, i) => {
    const before = found[call.parent];
    call.begins = !before || before.children.length > 0;
    call.talk = call.begins ? talks.push({ lane: 0, last: i }) - 1 : before.talk;
    talks[call.talk].last = i;
    before?.children.push(i);
  });
  const open = [];
  found.forEach((call, i) => {
    if (call.begins) {
      let lane = call.parent === null ? 0 : talks[found[call.parent].talk].lane + 1;
      while (open[lane] !== undefined && open[lane] >= i) lane += 1;
      talks[call.talk].lane = lane;
      open[lane] = talks[call.talk].last;
    }
    call.lane = talks[call.talk].lane;
  });
  return found;
}

export const conversations = (calls) => calls.filter((call) => call.parent === null).length;
