// One request to the chat's server and its answer, by JSON or as a stream of lines.

const maxAnswer = 8 * 1024 * 1024;
const silence = 60000; // the server sends a line every 15 seconds
const longest = 10 * 60000;

/** What went wrong, in words for the user. */
export class ChatError extends Error {
  /** @param {string} message @param {{status?: number, code?: string, field?: string}} [facts] */
  constructor(message, { status = 0, code = '', field = '' } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

export class Transport {
  /**
   * @param {() => string} endpoint
   * @param {(again: boolean) => Promise<string>} token asks for a token; again after a 401
   */
  constructor(endpoint, token) {
    this.endpoint = endpoint;
    this.token = token;
    this.ahead = 0; // ms by which the server's clock is ahead of the browser's
  }

  /**
   * Posts to the chat and returns its answer; lines before the answer are passed to onLine.
   * @param {string} path @param {unknown} body @param {AbortSignal} stop @param {(line: any) => void} onLine
   * @returns {Promise<Answer>}
   */
  async chat(path, body, stop, onLine) {
    return answer(await this.ask('POST', path, body, stop, onLine));
  }

  /**
   * @param {'GET' | 'POST'} method @param {string} path @param {unknown} body @param {AbortSignal} stop
   * @param {(line: any) => void} [onLine] where a stream is welcome @returns {Promise<any>}
   */
  async ask(method, path, body, stop, onLine) {
    const timer = new Timer(stop);
    try {
      const response = await this.#send(method, path, body, timer.signal,
        onLine ? 'application/x-ndjson, application/json;q=0.9' : 'application/json');
      const streamed = onLine && response.headers.get('content-type')?.startsWith('application/x-ndjson');
      return await (streamed ? lastLine(response, timer, onLine) : json(response));
    } catch (err) {
      throw plain(err, stop);
    } finally {
      timer.end();
    }
  }

  /**
   * @param {string} method @param {string} path @param {unknown} body @param {AbortSignal} signal
   * @param {string} accept
   */
  async #send(method, path, body, signal, accept) {
    const once = (/** @type {string} */ token) => fetch(this.endpoint().replace(/\/+$/, '') + path, {
      method, signal, credentials: 'omit', cache: 'no-store', body: JSON.stringify(body),
      headers: { Accept: accept, ...(body ? { 'Content-Type': 'application/json' } : {}),
        ...(path.endsWith('/resolve') && { Prefer: 'wait=50' }), ...(token && { Authorization: `Bearer ${token}` }) },
    });
    const token = await this.token(false);
    let response = await once(token).catch((err) => {
      if (err instanceof TypeError) hint(this.endpoint());
      throw err;
    });
    const other = response.status === 401 ? await this.token(true) : token;
    if (other !== token) response = await once(other);
    const date = Date.parse(response.headers.get('date') ?? ''); // cut to the second
    if (date) this.ahead = date + 500 - Date.now();
    if (response.ok) return response;
    const err = await refusal(response);
    if (err.code === 'origin_forbidden') {
      console.warn(`gemini-chat: ${err.message} Its file there (origins) has to name ${location.origin}.`);
    }
    throw err;
  }
}

/** Tells the page's developer what a browser does not tell its scripts. @param {string} endpoint */
function hint(endpoint) {
  const { origin } = new URL(endpoint, location.href);
  if (origin === location.origin) return;
  console.warn(`gemini-chat: ${origin} gave no answer that this page may read. If it is up, ALLOWED_ORIGINS there `
    + `has to name ${location.origin}.`);
}

/** Ends a request that is stopped, that takes too long, or whose server has gone silent. */
class Timer {
  /** @param {AbortSignal} stop */
  constructor(stop) {
    this.quiet = new AbortController();
    this.signal = AbortSignal.any([stop, this.quiet.signal, AbortSignal.timeout(longest)]);
    this.id = 0;
  }

  heard() {
    this.end();
    this.id = setTimeout(() => this.quiet.abort(), silence);
  }

  end() {
    clearTimeout(this.id);
  }
}

/** @param {Response} response @param {Timer} timer @param {(line: any) => void} onLine */
async function lastLine(response, timer, onLine) {
  if (!response.body) throw new ChatError('The answer was empty.');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let size = 0; ;) {
    timer.heard();
    const { done, value = '' } = await reader.read();
    size += value.length;
    if (size > maxAnswer) throw new ChatError('The answer was too long to be read.');
    const lines = (rest + value).split('\n');
    rest = done ? '' : /** @type {string} */ (lines.pop());
    for (const text of lines.filter((l) => l.trim())) {
      const line = parse(text);
      if (line.type === 'error') throw told({ message: line.error, code: line.code }, 0);
      if (line.type === 'response' || line.type === 'tool-calls') return line;
      onLine(line);
    }
    if (done) throw new ChatError('The connection broke before the answer was whole.');
  }
}

/** @param {Response} response */
async function json(response) {
  const text = await response.text();
  if (text.length > maxAnswer) throw new ChatError('The answer was too long to be read.');
  return parse(text);
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new ChatError('The server gave an answer that cannot be read.');
  }
}

/** @param {any} given @returns {Answer} */
function answer(given) {
  const calls = given?.type === 'tool-calls' && Array.isArray(given.calls) && given.calls.length > 0;
  const said = given?.type === 'response' && typeof given.message === 'string';
  if (!Array.isArray(given?.history) || !(calls || said)) {
    throw new ChatError('The server gave an answer of an unknown kind.');
  }
  return given;
}

/** @param {Response} response @returns {Promise<ChatError>} */
async function refusal(response) {
  const body = await response.json().catch(() => null);
  return told(body?.error, response.status);
}

/** @param {any} error @param {number} status @returns {ChatError} */
function told(error, status) {
  const facts = { status, code: String(error?.code ?? ''), field: String(error?.field ?? '') };
  if (status === 401) {
    return new ChatError('You are not signed in, or your sign-in has expired. Sign in again, then try again.', facts);
  }
  if (facts.field === 'history') {
    return new ChatError('This conversation cannot go on, because what was kept of it does not fit. Begin a new one.',
      facts);
  }
  const message = String(error?.message ?? '').slice(0, 500);
  if (message) return new ChatError(message[0].toUpperCase() + message.slice(1), facts);
  if (status === 429) {
    return new ChatError('There are too many requests at the moment. Wait a little, then try again.', facts);
  }
  return new ChatError(status >= 500 ? 'The server has a problem at the moment. Try again in a little while.'
    : `The server refused the request (${status}).`, facts);
}

/** @param {unknown} err @param {AbortSignal} stop @returns {unknown} */
function plain(err, stop) {
  if (stop.aborted || err instanceof ChatError) return err;
  const name = err instanceof Error ? err.name : '';
  if (name === 'AbortError' || name === 'TimeoutError') return new ChatError('The server took too long to answer.');
  return new ChatError('The server cannot be reached. Look at your connection, then try again.');
}
