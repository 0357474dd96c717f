// A request that reports its progress. Only XMLHttpRequest says how much of a body was sent.

/**
 * transfer returns a function that sends requests like fetch.
 * @param {(done: number) => void} progress receives the part that was sent @returns {typeof fetch}
 */
export const transfer = (progress) => (url, { method = '', headers, body, signal } = {}) => new Promise((go, stop) => {
  signal?.throwIfAborted();
  const request = new XMLHttpRequest();
  request.open(method, String(url));
  for (const [name, value] of new Headers(headers)) request.setRequestHeader(name, value);
  request.upload.addEventListener('progress', ({ loaded, total }) => progress(total ? loaded / total : 0));
  request.addEventListener('load', () =>
    go(new Response(request.responseText, { status: request.status, headers: received(request) })));
  request.addEventListener('error', () => stop(new TypeError('The request failed.')));
  request.addEventListener('abort', () => stop(signal?.reason));
  signal?.addEventListener('abort', () => request.abort(), { once: true });
  request.send(/** @type {XMLHttpRequestBodyInit} */ (body));
});

/** @param {XMLHttpRequest} request @returns {[string, string][]} */
const received = (request) => request.getAllResponseHeaders().trim().split(/[\r\n]+/).filter(Boolean)
  .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
