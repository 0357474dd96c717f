// The sign-in page before the console.

import { config } from './config.js';
import { button, byId, el, trouble } from './dom.js';
import { mark } from './icons.js';
import * as signin from './signin.js';

/**
 * gate shows the sign-in, and calls enter after the user has signed in.
 * @param {() => void} enter @param {Error} [problem] to show
 */
export function gate(enter, problem) {
  const error = el('p', { class: 'error', role: 'alert' });
  trouble(error, problem);
  const { kind } = config().signIn;
  const ways = { local: () => localForm(enter, error), redirect: () => redirect(error), none: () => nobody() };
  byId('gate').replaceChildren(el('div', { class: 'gate-card' }, el('p', { class: 'brand' }, mark(), 'Countersign'),
    el('h1', {}, 'Sign in'), ...ways[kind](), error));
  byId('gate').hidden = false;
  byId('shell').hidden = true;
}

/**
 * closed shows that the console cannot start, with a button to try again. @param {Error} err @param {() => void} again
 */
export function closed(err, again) {
  const error = el('p', { class: 'error', role: 'alert' });
  trouble(error, err, again);
  byId('gate').replaceChildren(
    el('div', { class: 'gate-card' }, el('p', { class: 'brand' }, mark(), 'Countersign'), el('h1', {}, 'Unavailable'),
    error));
  byId('gate').hidden = false;
}

function localForm(enter, error) {
  const uid = /** @type {HTMLInputElement} */ (
    el('input', { id: 'uid', required: true, maxlength: 128, pattern: '[A-Za-z0-9_.\\|:@+\\-]+',
    autocomplete: 'username', value: 'demo', 'aria-describedby': 'uid-help' }));
  const email = /** @type {HTMLInputElement} */ (
    el('input', { id: 'email', type: 'email', maxlength: 254, autocomplete: 'email',
    placeholder: 'derived from the name' }));
  const submit = /** @type {HTMLButtonElement} */ (el('button', { class: 'primary' }, 'Sign in'));
  const send = async (e) => {
    e.preventDefault();
    trouble(error);
    submit.disabled = true;
    try {
      await signin.local(uid.value.trim(), email.value.trim());
      enter();
    } catch (err) {
      trouble(error, err);
    } finally {
      submit.disabled = false;
    }
  };
  return [el('p', { class: 'quiet' },
    'This local server signs in anyone, because only this machine can reach it. '
      + 'Each name has its own conversations, approvals and mailbox.'),
    el('form', { class: 'form', onsubmit: send },
      el('label', { for: 'uid' }, 'User'), uid,
        el('p', { id: 'uid-help', class: 'quiet small-text' }, 'Letters, digits and _ . | : @ + -'),
      el('label', { for: 'email' }, 'E-mail address of this user (optional)'), email, submit)];
}

function redirect(error) {
  const go = async (e) => {
    e.currentTarget.disabled = true;
    try {
      await signin.leave();
    } catch (err) {
      trouble(error, err);
    }
  };
  return [el('p', { class: 'quiet' },
    `You sign in at ${new URL(config().signIn.issuer ?? '').host}, and then return here.`),
    button('Sign in', go, 'primary')];
}

const nobody = () =>
  [el('p', { class: 'quiet' },
  'No sign-in is configured for this console: WEB_CLIENT_ID names its client at the issuer of AUTH_ISSUER.')];
