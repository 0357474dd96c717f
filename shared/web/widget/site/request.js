// One request to the API and its answer, as JSON or as lines that arrive one by one.

import { told } from './clock.js';

/** @import { Client, Facts, Options } from './client.js' */

const silence = 45000; // ms without a line; the server sends one every 15 s, so the connection is dead
const longest = 600000; // maximum ms of one request
const mostText = 8 << 20; // maximum characters of a line, or of a JSON answer

export class ApiError extends Error {
  /** @param {string} message @param {Facts} [facts] */
  constructor(message, { status = 0, code = '', field = '', ...more } = {}) {
    super(message[0].toUpperCase() + message.slice(1));
    Object.assign(this, more);
    this.status = status;
    this.code = code;
    this.field = field;
  }

  get passing() {
    return this.status === 0 || this.status >= 500;
  }
}

export const newId = () => crypto.randomUUID?.()
  ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * wellFormed puts U+FFFD in the place of half an emoji, which JSON in UTF-8 cannot have.
 * @param {string} _ @param {unknown} value
 */
const wellFormed = (_, value) => (typeof value === 'string' ? value.toWellFormed?.() ?? value : value);

export function region() {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const { language } = navigator;
  return {
    ...(/^UTC$|\//.test(timeZone ?? '') && { timeZone }),
    ...(/^[a-z]{2,3}(-[a-z0-9]{1,8})*$/i.test(language) && { locale: language }),
  };
}

/** @param {Options} options @returns {Pick<Client, 'send' | 'call'>} */
export function requests({ base = new URL(import.meta.url).origin, token, heard }) {
  const signedIn = async (/** @type {boolean} */ refused) => {
    try {
      return await token(refused);
    } catch (/** @type {any} */ cause) {
      if (cause instanceof ApiError) throw cause;
      throw new ApiError('Sign-in failed. Please try again.', { cause }); // the sign-in service may be back soon
    }
  };
  const address = typeof base === 'function' ? base : (/** @type {string} */ path) => base.replace(/\/+$/, '') + path;

  /** @type {Client['send']} */
  async function send(method, path, { body, key, wait, accept, credentials, signal, by } = {}) {
    const json = body && !(body instanceof FormData); // fetch sets a form's Content-Type
    let bearer = await signedIn(false);
    for (let refused = false; ;) {
      const asked = Date.now();
      const headers = {
        ...(bearer && { Authorization: `Bearer ${bearer}` }),
        ...(json && { 'Content-Type': 'application/json' }), ...(key && { 'Idempotency-Key': key }),
        ...(wait && { Prefer: `wait=${wait}` }), ...(accept && { Accept: accept }),
      };
      const sent = json ? JSON.stringify(body, wellFormed) : body;
      const res = await reach(address(path), { method, headers, credentials, body: sent, signal: bounded(signal) }, by);
      heard?.(res.headers.get('Date'), asked);
      if (res.ok) return res;
      const err = await refusal(res);
      if (err.code === 'unauthenticated' && !refused) {
        refused = true;
        const other = await signedIn(true);
        if (!other || other === bearer) throw err;
        bearer = other;
      } else if (err.status === 400 && /^(timeZone|locale)$/.test(err.field) && body?.[err.field]) {
        body = { ...body, [err.field]: undefined }; // a browser may know a time zone that the server does not know yet
      } else throw err;
    }
  }

  /** @type {Client['call']} */
  const call = async (method, path, request) => read(await send(method, path, request));

  return { send, call };
}

/** @param {AbortSignal} [signal] */
const bounded = (signal) => AbortSignal.any([AbortSignal.timeout(longest), ...(signal ? [signal] : [])]);

/** @param {string} url @param {RequestInit} [init] @param {typeof fetch} [by] */
export async function reach(url, init, by = fetch) {
  try {
    return await by(url, { cache: 'no-store', ...init });
  } catch (/** @type {any} */ err) {
    if (err.name === 'TimeoutError') throw new ApiError('The server took too long to answer.');
    if (init?.signal?.aborted) throw err;
    hint(url);
    throw new ApiError(navigator.onLine === false ? 'You are offline.' : 'The server cannot be reached.');
  }
}

/** Logs a hint for the page's developer about errors that browsers hide from scripts. @param {string} url */
function hint(url) {
  const here = globalThis.location?.origin;
  const { origin } = new URL(url, here);
  if (origin === here) return;
  console.warn(`countersign: ${origin} gave no answer that this page may read. If the server is up, its `
    + `ALLOWED_ORIGINS must contain ${here}.`);
}

/** @param {Response} res */
export async function read(res) {
  if (!res.ok) throw await refusal(res);
  try {
    return await json(res);
  } catch (err) {
    throw err instanceof ApiError ? err : new ApiError('The answer was cut off or cannot be read.');
  }
}

/** @param {Response} res */
const textOf = (res) => /** @type {ReadableStream} */ (res.body).pipeThrough(new TextDecoderStream()).getReader();

/** @param {string} text */
function bound(text) {
  if (text.length > mostText) throw new ApiError('The answer was too long to be read.');
  return text;
}

/**
 * Without a Content-Length the body is read in pieces. Developer tools do not keep such bodies.
 * @param {Response} res
 */
async function json(res) {
  if (Number(res.headers.get('Content-Length') ?? NaN) <= mostText) return JSON.parse(await res.text());
  const reader = textOf(res);
  try {
    for (let text = ''; ;) {
      const { done, value } = await reader.read();
      if (done) return JSON.parse(text);
      text = bound(text + value);
    }
  } finally {
    reader.cancel().catch(() => {}); // the rest is not needed
  }
}

/** @param {Response} res */
async function refusal(res) {
  const { status } = res;
  const { error = {} } = await json(res).catch(() => ({}));
  const { code = status === 401 ? 'unauthenticated' : '', message, field, requestId, runId, moments, passkey, link }
    = error;
  if (code === 'origin_forbidden') {
    console.warn(`countersign: ${message} Its file’s origins must contain ${globalThis.location?.origin}.`);
  }
  const said = code === 'unauthenticated' ? 'You are not signed in. Sign in again; nothing is lost.'
    : told(message ?? '', moments) || `The server refused the request (${status}).`;
  return new ApiError(said + (status >= 500 && requestId ? ` Request ${requestId}.` : ''),
    { status, code, field, requestId, runId, passkey, link,
      retryAfter: Number(res.headers.get('Retry-After')) || undefined });
}

/** @param {Response} res @param {AbortSignal} [signal] @returns {AsyncGenerator<any>} */
export async function* lines(res, signal) {
  const reader = textOf(res);
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await next(reader, signal);
      if (done) return;
      const parts = (rest + value).split('\n');
      rest = bound(parts.pop() ?? '');
      for (const part of parts) if (part.trim()) yield JSON.parse(part);
    }
  } finally {
    reader.cancel().catch(() => {}); // the rest is not needed
  }
}

/** @param {ReadableStreamDefaultReader<string>} reader @param {AbortSignal} [signal] */
async function next(reader, signal) {
  /** @type {any} */ let timer;
  const dead = new Promise((end) => { timer = setTimeout(end, silence, { done: true }); });
  try {
    return await Promise.race([reader.read(), dead]);
  } catch (err) {
    if (signal?.aborted) throw err;
    return { done: true }; // the connection was cut
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Whether an answer's record contains something that the answer itself does not say in the server's words.
 * @param {string} text @param {string} [record]
 */
export const unsaid = (text, record) => Boolean(record) && !text.includes('On record:')
  && !String(record).split('\n').every((line) => text.includes(line));
