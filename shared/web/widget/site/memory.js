// Stores a conversation in sessionStorage, so it survives a reload of its tab, but not the tab.

const version = 1;

export class Memory {
  /** @param {string} name distinguishes conversations of one page */
  constructor(name) {
    this.key = `gemini-chat ${name}`;
  }

  /** @returns {any} the stored conversation, or null */
  load() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.key) ?? 'null');
      return kept?.version === version && Array.isArray(kept.messages) && Array.isArray(kept.history) ? kept : null;
    } catch {
      return null; // no storage, or not the chat's data
    }
  }

  /**
   * Stores a conversation. One that is too large is not stored at all, rather than in part.
   * @param {Record<string, unknown>} conversation
   */
  save(conversation) {
    try {
      sessionStorage.setItem(this.key, JSON.stringify({ version, ...conversation }));
    } catch {
      this.forget();
    }
  }

  forget() {
    try {
      sessionStorage.removeItem(this.key);
    } catch {
      // Without storage there is nothing to remove.
    }
  }
}
