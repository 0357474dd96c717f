// The chat's requests to its server.
import { ApiError, lines, requests } from './request.js';

export class Transport {
  ahead = 0; // ms that the server's clock is ahead of the browser's

  /**
   * @param {() => string} endpoint
   * @param {(again: boolean) => Promise<string>} token returns a token; again is set after a 401
   */
  constructor(endpoint, token) {
    this.options = { base: (/** @type {string} */ path) => endpoint().replace(/\/+$/, '') + path, token,
      heard: (/** @type {string | null} */ date) => {
        const at = Date.parse(date ?? ''); // cut to the second
        if (at) this.ahead = at + 500 - Date.now();
      } };
    this.api = requests(this.options);
  }

  /**
   * Posts to the chat and returns its answer. Lines before the answer are passed to onLine.
   * @param {string} path @param {unknown} body @param {AbortSignal} signal @param {(line: any) => void} onLine
   * @returns {Promise<Answer>}
   */
  async chat(path, body, signal, onLine) {
    try {
      const accept = 'application/x-ndjson, application/json;q=0.9';
      for await (const line of lines(await this.api.send('POST', path, { body, accept, signal }), signal)) {
        if (line.type === 'error') throw new ApiError(line.error, line);
        if (line.type === 'response' || line.type === 'tool-calls') return answer(line);
        onLine(line);
      }
    } catch (/** @type {any} */ err) {
      if (err.field !== 'history') throw err;
      throw new ApiError(
        'This conversation cannot continue, because its stored history does not fit. Start a new one.', err);
    }
    throw new ApiError('The connection broke before the answer was complete.');
  }

  /**
   * Yields the updates of a run until it has ended.
   * @param {string} runId @param {AbortSignal} signal @returns {AsyncGenerator<any>}
   */
  async* events(runId, signal) {
    const { connect } = await import('./client.js');
    yield* connect(this.options).events(runId, { signal });
  }

  /**
   * @param {'GET' | 'POST'} method @param {string} path @param {unknown} body @param {AbortSignal} signal
   * @returns {Promise<any>}
   */
  ask(method, path, body, signal) {
    return this.api.call(method, path, { body, signal, wait: path.endsWith('/resolve') ? 50 : 0 });
  }
}

/** @param {any} given @returns {Answer} */
function answer(given) {
  const calls = given.type === 'tool-calls' && given.calls?.length > 0;
  const said = given.type === 'response' && typeof given.message === 'string';
  if (!Array.isArray(given.history) || !(calls || said)) {
    throw new ApiError('The server returned an unknown kind of answer.');
  }
  return given;
}
