// What the scripts that drive a browser have in common: the browser, what must never happen in it, and the words that
// the steps are told in.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const { BASE_URL, CHANGES_LATE, CHROMIUM, PLAYWRIGHT_DIR, READS_LATE, SCREENSHOT_DIR } = process.env;
const library = createRequire(join(PLAYWRIGHT_DIR, 'x.js'));
const { chromium } = library('playwright-core');
const axe = readFileSync(library.resolve('axe-core/axe.min.js'), 'utf8');
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  env: { ...process.env, LANG: 'C.UTF-8' }, // in which downloads keep their names
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

// The longest waits, in ms. A busy machine takes its time; what never comes still fails its step before stepTime.
const stepTime = 300000;
const patience = 240000;

/**
 * late keeps answers from the page for some milliseconds: those to changes, those to reads, or both. On a busy machine,
 * what a change did can arrive by a stream before its answer, and a state can be old when it arrives. A script that is
 * right waits for what it looks at, and a page that is right never goes back to an earlier state.
 */
function late([change, read]) {
  const { fetch } = window;
  if (change || read) window.fetch = async (what, options) => {
    const answer = await fetch(what, options);
    const ms = (options?.method ?? 'GET') === 'GET' ? read : change;
    if (ms) await new Promise((go) => setTimeout(go, ms));
    return answer;
  };
  if (change) window.XMLHttpRequest = class extends XMLHttpRequest {
    constructor() {
      super();
      this.addEventListener('load', (loaded) => {
        loaded.stopImmediatePropagation();
        setTimeout(() => this.dispatchEvent(new Event('load')), change);
      }, { once: true });
    }
  };
}

/** problems are script errors, violations of the page's policy, and requests to anybody else. */
export const problems = [];

/**
 * visit opens the page in a browser of its own, for a user who wants no motion. begin is called with the browser's
 * context, before the page is there. The page may request things of its own origin and of others. It has no service
 * worker unless serviceWorkers is 'allow': what a worker answers passes no route of a script.
 */
export async function visit({ begin, others = [], ...options } = {}) {
  const context =
    await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce',
      serviceWorkers: 'block', ...options });
  await begin?.(context);
  context.setDefaultTimeout(patience);
  await context.addInitScript(late, [Number(CHANGES_LATE ?? 0), Number(READS_LATE ?? 0)]);
  await context.addInitScript(() =>
    document.addEventListener('securitypolicyviolation',
      (e) => console.error(`policy violation: ${e.violatedDirective} ${e.blockedURI}`)));
  const page = await context.newPage();
  page.on('pageerror', (e) => problems.push(`script error: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error'
      && !/Failed to load resource|ERR_CONNECTION|ERR_INTERNET|WebSocket connection to/.test(m.text())) {
      problems.push(`console: ${m.text()}`);
    }
  });
  page.on('request', (r) => {
    if (![BASE_URL, 'data:', ...others].some((origin) => r.url().startsWith(origin))) {
      problems.push(`a request to ${r.url()}`);
    }
  });
  await page.goto(BASE_URL);
  return page;
}

/** motionless holds the page to what visit asks for: nothing of it moves, so that nobody has to wait for the end. */
export async function motionless(page, what) {
  const moves = await page.evaluate(() => {
    const roots = [document, ...[...document.querySelectorAll('*')].flatMap((e) => e.shadowRoot ?? [])];
    const all = roots.flatMap((r) => r.getAnimations()).map(({ animationName, transitionProperty, effect }) =>
      `${animationName ?? transitionProperty} of <${effect?.target?.localName} class="${effect?.target?.className}">`);
    return matchMedia('(prefers-reduced-motion: reduce)').matches ? all : ['motion is wanted', ...all];
  });
  expect(`${what} does not move: ${moves.join('; ')}`, moves.length === 0);
}

/** caughtUp waits until the page has done what it had to do: a request of its own is answered, and it paints twice. */
export const caughtUp = (page) => page.evaluate(async () => {
  await fetch('/health');
  for (let i = 0; i < 2; i++) await new Promise((go) => requestAnimationFrame(go));
});

/** findings returns what axe-core finds in what the selector names, of every level. */
export async function findings(page, selector = 'html') {
  await page.evaluate(axe); // by the debugger, which no policy of the page concerns
  return (await page.evaluate((of) => window.axe.run(of), selector)).violations;
}

/** accessible holds the page, or what the selector names, to axe-core, without a finding of any level. */
export async function accessible(page, what, selector) {
  await motionless(page, what);
  const where = (v) => v.nodes.map((n) => n.target.join(' ')).slice(0, 3).join(', ');
  const all = (await findings(page, selector)).map((v) => `${v.impact} ${v.id} (${where(v)}): ${v.help}`);
  expect(`${what} is accessible: ${all.join('; ')}`, all.length === 0);
}

export const shot = (page, name) =>
  (SCREENSHOT_DIR ? page.screenshot({ path: join(SCREENSHOT_DIR, `${name}.png`) }) : null);

export function expect(what, ok) {
  if (!ok) throw new Error(`not so: ${what}`);
}

/** settled waits until a condition holds. */
export async function settled(what, holds, ms = patience) {
  for (const end = Date.now() + ms; Date.now() < end; await new Promise((go) => setTimeout(go, 100))) {
    if (await holds()) return;
  }
  throw new Error(`never so: ${what}`);
}

/** restart has the test kill the server with -9 and start it again. */
export async function restart() {
  console.log('restart');
  await answers.next();
}

/** inTime fails what takes longer than any step may on a busy machine, so that it is told where it hangs. */
function inTime(step, ms = stepTime) {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(no, ms, new Error(`it takes more than ${ms / 1000} s`)); });
  return Promise.race([step, late]).finally(() => clearTimeout(timer));
}

/** run takes the steps one after another on the page, and ends the process. */
export async function run(steps, page) {
  let code = 0;
  for (const [name, step] of Object.entries(steps)) {
    try {
      await inTime(step(page));
      if (problems.length) throw new Error(problems.splice(0).join('; '));
      console.log(`ok ${name}`);
    } catch (err) {
      console.log(`failed ${name}: ${err.stack}; ${problems.join('; ')}`);
      const pages = browser.contexts().flatMap((context) => context.pages()); // a step may have opened its own
      for (const [n, open] of pages.entries()) {
        console.log(await open.locator('body').ariaSnapshot().catch(() => 'no snapshot'));
        await shot(open, `failed-${n}`);
      }
      code = 1;
      break;
    }
  }
  await browser.close();
  process.exit(code);
}

/** inSight tells whether all four corners of an element are to be seen, and nothing covers them. */
export const inSight = (locator) => locator.evaluate((e) => {
  const { left, right, top, bottom } = e.getBoundingClientRect();
  const seen = (x, y) => e.contains(document.elementFromPoint(x, y));
  return [left + 8, right - 8].every((x) => [top + 4, bottom - 4].every((y) => seen(x, y)));
});
