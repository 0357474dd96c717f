// Registers the service worker (sw.js), which opens the console without a network and shows notifications.

// the page's policy permits only this script URL
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy('worker', { createScriptURL: () => '/sw.js' });
const script = policy ? policy.createScriptURL('') : '/sw.js';

/** register registers the service worker. */
export const register = () => navigator.serviceWorker.register(script);

/** install registers the service worker where the browser permits it. The console also works without one. */
export const install = () => ('serviceWorker' in navigator ? register().catch(() => {}) : undefined);

/** stored reports whether an answer is from the service worker, because the server cannot be reached. */
export const stored = (/** @type {Response} */ answer) => answer.headers.has('Countersign-Stored');
