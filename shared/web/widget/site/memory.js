// Keeps a conversation in sessionStorage, so that it survives a reload of its tab and nothing longer.

const version = 1;

export class Memory {
  /** @param {string} name tells conversations of one page apart */
  constructor(name) {
    this.key = `gemini-chat ${name}`;
  }

  /** @returns {any} what was kept, or nothing */
  load() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(this.key) ?? 'null');
      return kept?.version === version && Array.isArray(kept.messages) && Array.isArray(kept.history) ? kept : null;
    } catch {
      return null; // no storage, or not the chat's data
    }
  }

  /**
   * Keeps a conversation; one that is too large is not kept at all, rather than a part of it.
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
