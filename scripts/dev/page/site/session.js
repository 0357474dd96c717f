// What survives a reload of this tab: who is signed in, the open conversation, and the run that is under way.

function slot(key) {
  return {
    get() {
      try {
        return JSON.parse(sessionStorage.getItem(key));
      } catch {
        return null; // not ours, or cut off: as if nothing were there
      }
    },
    set(value) {
      sessionStorage.setItem(key, JSON.stringify(value));
    },
    clear() {
      sessionStorage.removeItem(key);
    },
  };
}

export const user = slot('countersign.user'); // {uid, email, token}
export const thread = slot('countersign.thread'); // {threadId}
export const asked = slot('countersign.asked'); // {prompt, threadId, key}: sent, and no run is known yet
export const run = slot('countersign.run'); // {runId, threadId, after}: followed

export function forget() {
  for (const s of [user, thread, asked, run]) s.clear();
}
