// Uses the chat on a page of another origin in Chromium. Run by TestWidget, which passes the places of the server, the
// browser and its driver in the environment.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const { BASE_URL, CHROMIUM, PLAYWRIGHT_DIR, SCREENSHOT_DIR } = process.env;
const require = createRequire(join(PLAYWRIGHT_DIR, 'x.js'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
const problems = [];

async function visit(options) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  context.setDefaultTimeout(30000);
  const page = await context.newPage();
  page.on('pageerror', (e) => problems.push(`script error: ${e.message}`));
  page.on('console', (m) => m.type() === 'error' && !/Failed to load resource/.test(m.text())
    && problems.push(`console: ${m.text()}`));
  page.on('request', (r) => r.url().startsWith(BASE_URL) || problems.push(`a request to ${r.url()}`));
  await page.goto(BASE_URL);
  await input(page).waitFor();
  return page;
}

const input = (page) => page.getByLabel('Your message');
const log = (page) => page.getByRole('log', { name: 'Shop assistant' });
const send = (page) => page.getByRole('button', { name: 'Send', exact: true });
const state = (page, name) => page.locator(`[data-agent-state="${name}"]`).first();
const seen = async (page) => (await page.request.get(`${BASE_URL}/seen`)).json();
const shot = (page, name) => (SCREENSHOT_DIR ? page.screenshot({ path: join(SCREENSHOT_DIR, `${name}.png`) }) : null);

async function ask(page, text) {
  await input(page).fill(text);
  await input(page).press('Enter');
}

function expect(what, ok) {
  if (!ok) throw new Error(`not so: ${what}`);
}

async function settled(what, holds, ms = 30000) {
  for (const end = Date.now() + ms; Date.now() < end; await new Promise((go) => setTimeout(go, 50))) {
    if (await holds()) return;
  }
  throw new Error(`never so: ${what}`);
}

const prop = (page, name) => page.locator('gemini-chat').evaluate((el, n) => el[n], name);

// axe runs in an isolated world, to which the page's policy does not apply.
async function accessible(page, when) {
  const client = await page.context().newCDPSession(page);
  const { frameTree } = await client.send('Page.getFrameTree');
  const { executionContextId: contextId } = await client.send('Page.createIsolatedWorld',
    { frameId: frameTree.frame.id });
  const run = (expression) => client.send('Runtime.evaluate',
    { expression, contextId, awaitPromise: true, returnByValue: true });
  await run(`${axe}; void 0`);
  const { result, exceptionDetails } = await run(`axe.run(document.querySelector('gemini-chat')).then((r) => ({
    passes: r.passes.length,
    bad: r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target + ' ' + n.failureSummary).join('; ')) }))`);
  expect(`axe ran (${exceptionDetails?.text})`, result.value?.passes > 5);
  expect(`nothing is found ${when}: ${result.value.bad.join(' | ')}`, result.value.bad.length === 0);
  await client.detach();
}

const steps = {
  'a question and its answer': async (page) => {
    expect('there is nothing yet', !(await prop(page, 'hasMessages')));
    await shot(page, 'empty');
    await page.evaluate(() => {
      globalThis.told = [];
      for (const type of ['change', 'message', 'error', 'tool-call', 'approval']) {
        addEventListener(`gemini-chat-${type}`, () => globalThis.told.push(type));
      }
    });
    await ask(page, 'hello');
    await log(page).getByText('Hello you').waitFor();
    expect('bold is bold', (await log(page).locator('strong').innerText()) === 'you');
    const link = log(page).getByRole('link', { name: 'the shop' });
    expect('the link is safe', (await link.getAttribute('rel')).includes('noopener')
      && (await log(page).innerText()).includes('(shop.example)'));
    expect('there is a list', (await log(page).locator('li').count()) === 2);
    expect('the box is empty', (await input(page).inputValue()) === '');
    expect('the last pair', (await prop(page, 'lastUserMessage')) === 'hello'
      && (await prop(page, 'lastAssistantMessage')).startsWith('Hello'));
    expect('the events were told',
      await page.evaluate(() => ['change', 'message'].every((t) => globalThis.told.includes(t))));
    await ask(page, 'json');
    await log(page).getByText('By JSON.').waitFor();
  },

  'compact and expanded, and the focus stays': async (page) => {
    expect('the first question is hidden', await log(page).getByText('Hello you').isHidden());
    const toggle = page.getByRole('button', { name: 'Expand' });
    await toggle.click();
    expect('all is shown', await log(page).getByText('Hello you').isVisible());
    expect('the focus stays', await page.locator('gemini-chat')
      .evaluate((el) => el.shadowRoot.activeElement === el.toggleExpand));
    await shot(page, 'expanded');
    await page.keyboard.press('Escape');
    expect('it is compact again', !(await prop(page, 'isExpanded'))
      && (await page.getByRole('button', { name: 'Expand' }).getAttribute('aria-expanded')) === 'false');
  },

  'the page\'s own colours, whatever it calls them': async (page) => {
    const colour = await page.evaluate(() => {
      const element = document.querySelector('gemini-chat');
      document.documentElement.style.setProperty('--soft', 'rgb(1, 2, 3)');
      element.style.setProperty('--gemini-chat-accent', 'var(--soft)');
      return getComputedStyle(element.sendMessage).backgroundColor;
    });
    expect(`the button has the page's colour (${colour})`, colour === 'rgb(1, 2, 3)');
  },

  'an agent of the page\'s choice': async (page) => {
    await ask(page, 'hi');
    await log(page).getByText('You said: hi').waitFor();
    expect('none is named', (await seen(page)).agent === '');
    await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('agent', 'docs'));
    await page.getByRole('button', { name: 'New conversation' }).click();
    await ask(page, 'hi again');
    await log(page).getByText('You said: hi again').waitFor();
    const { agent } = await seen(page);
    expect(`the page's is (${agent})`, agent === 'docs'); // and answers what follows, where results name none
  },

  'every kind of page tool, one after another': async (page) => {
    await ask(page, 'all tools');
    await log(page).getByText('All done.').waitFor();
    expect('two clicks', (await state(page, 'count').innerText()) === '2');
    expect('the page heard what was filled', (await state(page, 'query').innerText()) === 'mug');
    expect('ticked', await page.getByLabel('As a gift').isChecked());
    expect('chosen', (await page.getByLabel('Fast').isChecked())
      && (await page.getByLabel('Colour').inputValue()) === 'blue');
    expect('written', (await page.getByLabel('Note').inputValue()) === 'two\nlines');
    const { results, pageState } = await seen(page);
    expect('eight results', results.length === 8 && results.every((r) => !r.isError && JSON.parse(r.result).ok));
    const told = results.map((r) => JSON.parse(r.result).changed);
    const changed = Object.assign({}, ...told.map((c) => c.state));
    expect(`each tells what it changed ${JSON.stringify(told)}`,
      changed.count === 2 && changed.gift === true && changed.delivery === 'fast'
        && told.some((c) => c.interactions?.note?.value === 'two\nlines'));
    expect('and nothing else', !('profile' in changed) && results.every((r) => r.result.length < 1000));
    const last = pageState.viewState;
    expect(`with the fresh state ${JSON.stringify(last)}`,
      last.count === 2 && last.gift === true && last.delivery === 'fast' && last.products[0].price === 12.5
        && last.profile === 'Ana');
    expect('nothing private', ['password', 'card', 'diary'].every((name) => !(name in last)));
  },

  'what cannot be done is refused with a reason': async (page) => {
    await ask(page, 'refused');
    await log(page).getByText('I could not.').waitFor();
    const said = (await seen(page)).results.map((r) => JSON.parse(r.result).error);
    expect(said.join(' | '), /disabled/.test(said[0]) && /not visible/.test(said[1]) && /nothing at/.test(said[2])
      && /no tool/.test(said[3]) && /no such choice/.test(said[4]));
    expect('the password is as it was', (await page.getByLabel('Password').inputValue()) === 'hunter2');
  },

  'a click that is the user\'s own': async (page) => {
    await ask(page, 'order');
    await page.getByText('Your turn: use “Place order”').waitFor();
    const button = page.getByRole('button', { name: 'Place order' });
    expect('it is shown', (await button.getAttribute('data-agent-waiting')) === '');
    await button.evaluate((b) => b.dispatchEvent(new MouseEvent('click')));
    expect('a click by script does not count', (await button.getAttribute('data-agent-waiting')) === '');
    await shot(page, 'your-turn');
    await button.click();
    await log(page).getByText('It is ordered.').waitFor();
    expect('it is shown no more', (await button.getAttribute('data-agent-waiting')) === null);
    await seen(page);
  },

  'an approval in the chat': async (page) => {
    await ask(page, 'mail');
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await card.getByText('Careful: This address was never written to.').waitFor();
    expect('it is not loading', !(await prop(page, 'isLoading')));
    const text = card.getByRole('group', { name: 'Message' });
    const [told, seen0] = await text.evaluate((el) => [el.textContent.length, el.scrollTop]);
    expect(`all ${told} characters are in the box`,
      told === 400 && seen0 === 0 && (await card.locator('details').count()) === 0);
    await text.focus();
    await page.keyboard.press('End');
    await settled('its end is reached by the keyboard',
      () => text.evaluate((el) => el.scrollHeight > el.clientHeight
        && el.scrollTop + el.clientHeight > el.scrollHeight - 2));
    await shot(page, 'approval');
    await accessible(page, 'with an approval');
    await card.getByRole('button', { name: 'Approve' }).click();
    await log(page).getByText('The mail is sent.').waitFor();
    const { resolved, looks } = await seen(page);
    expect(`the end came with the answer to the decision, and ${looks} looks`, looks === 0);
    expect(JSON.stringify(resolved),
      resolved.length === 1 && resolved[0].argsHash === 'hash-yes' && resolved[0].decision === 'approve_once');
    expect('the card is gone', (await card.count()) === 0);
  },

  'calls of the page and an approval, mixed; a rejection': async (page) => {
    const count = Number(await state(page, 'count').innerText());
    await ask(page, 'mixed');
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await settled('the page was used', async () => Number(await state(page, 'count').innerText()) === count + 1);
    await settled('it waits', async () => !(await prop(page, 'isLoading')));
    await card.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('Both are done.').waitFor();
    const { resolved, results } = await seen(page);
    expect('it was rejected, and the page answered once', resolved[0].decision === 'reject' && results.length === 1);
  },

  'a double click decides about one card': async (page) => {
    await ask(page, 'pair');
    const yes = page.getByRole('region', { name: 'Approval: Send an e-mail' }).getByRole('button', { name: 'Approve' });
    await settled('two cards wait', async () => (await yes.count()) === 2);
    await yes.evaluateAll((all) => all.forEach((b) => b.click())); // immediately after they appeared
    expect('what has just come is not decided', (await yes.count()) === 2);
    await yes.first().click();
    await yes.evaluateAll((all) => all.forEach((b) => b.click())); // the second click of a double click
    expect('the next card waits', (await yes.count()) === 1);
    expect('one decision was sent', (await seen(page)).resolved.length === 1);
    await yes.click(); // after half a second
    await log(page).getByText('Both were decided.').waitFor();
    expect('the second was sent', (await seen(page)).resolved.length === 1);
  },

  'an approval that expires': async (page) => {
    await ask(page, 'late');
    await page.getByText('This has expired.').waitFor();
    await log(page).getByText('That has expired.').waitFor({ timeout: 20000 });
    expect('nothing was decided', (await seen(page)).resolved === null);
  },

  'a yes can be taken back while it is held': async (page) => {
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    const undo = card.getByRole('button', { name: 'Undo' });
    const approve = async (what) => {
      await ask(page, what);
      await card.getByRole('button', { name: 'Approve' }).click();
      await undo.waitFor();
    };
    await approve('held');
    await card.getByText('Approved. You can undo it until it begins.').waitFor();
    await settled('the seconds are counted',
      async () => /^Begins in (5\d|60) s$/.test(await card.locator('[part=approval-held]').innerText()));
    expect('nothing else can be said to it', (await card.getByRole('button').count()) === 1);
    expect('nothing else can be asked meanwhile', (await prop(page, 'isLoading')) && (await send(page).isHidden()));
    await accessible(page, 'while a yes is held');
    await shot(page, 'held');
    await undo.click();
    await log(page).getByText('You took it back.').waitFor();
    await log(page).getByText('Undone: Send an e-mail').waitFor({ state: 'attached' });
    expect('two decisions', JSON.stringify((await seen(page)).resolved.map((r) => r.decision))
      === '["approve_once","undo"]');

    await approve('passes');
    await log(page).getByText('It is sent after a while.').waitFor();
    await seen(page);

    await approve('tardy');
    await undo.click();
    await log(page).getByText('It was too late.').waitFor();
    expect('it is told as done',
      /Note: Done: Send an e-mail$/.test(await log(page).locator('.system').last().textContent()));
    await seen(page);

    await approve('halts');
    await page.getByRole('button', { name: 'Stop' }).click();
    await log(page).getByText('Undone: Send an e-mail').last().waitFor();
    expect('to stop takes it back',
      (await card.count()) === 0 && (await seen(page)).resolved.at(-1).decision === 'undo');

    await ask(page, 'elsewhere');
    // approved on another page, and undone there
    await card.getByText('Approved. You can undo it until it begins.').waitFor();
    await log(page).getByText('Somebody took it back.').waitFor();
    expect('here nothing was decided', (await seen(page)).resolved === null);
  },

  'a decision that the page itself cannot send is told in its card': async (page) => {
    await ask(page, 'always');
    await page.locator('gemini-chat').evaluate(({ chat }) => {
      const { transport } = chat;
      const ask = async (method, ...more) => {
        if (method !== 'POST') return transport.ask(method, ...more);
        chat.transport = transport;
        throw new TypeError('nothing is a function');
      };
      chat.transport = { ahead: 0, chat: transport.chat.bind(transport), ask };
    });
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await card.getByRole('button', { name: 'Reject' }).click();
    await card.getByText('It is not known whether your decision has arrived. Please decide again.').waitFor();
    const always = 'Always allow mails to ana@example.com and ken@example.org (90 days)';
    expect('what would be always allowed is named', await card.getByRole('button', { name: always }).isVisible());
    await accessible(page, 'after a decision that failed');
    await card.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('It was not sent.').waitFor();
    expect('it was sent once', (await seen(page)).resolved.length === 1);
  },

  'the card of a plan names tools as people do, and what strangers wrote': async (page) => {
    await ask(page, 'plan');
    const card = page.getByRole('region', { name: 'Approval: Confirm a plan' });
    await card.getByText('Create issue, Send an e-mail').waitFor();
    await card.getByText('The assistant made up this address, and what it has read may be in it:').waitFor();
    await card.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('It was not planned.').waitFor();
    await seen(page);
  },

  'what the model writes is text': async (page) => {
    await ask(page, 'hostile');
    await log(page).getByText('<img src=x').waitFor();
    const answer = log(page).locator('[part~=assistant]').last();
    expect('no element came of it', (await answer.locator('img, button, script').count()) === 0);
    const links = await answer.getByRole('link').evaluateAll((all) => all.map((a) => a.href));
    expect(`only a web link is one: ${links}`, links.length === 1 && links[0] === 'https://evil.example/x');
    expect('and says where it leads', (await answer.innerText()).includes('(evil.example)'));
    expect('nothing ran', (await page.title()) === 'A shop of somebody else');
    await shot(page, 'hostile');
  },

  'an error, and another try': async (page) => {
    await ask(page, 'fault');
    await page.getByText('The model has too much to do').waitFor();
    expect('the error is told', (await prop(page, 'hasError'))
      && (await prop(page, 'errorMessage')).startsWith('The model'));
    await shot(page, 'error');
    await input(page).fill('typed meanwhile');
    await page.getByRole('button', { name: 'Try again' }).click();
    await log(page).getByText('Back again.').waitFor();
    expect('what was typed is there', (await input(page).inputValue()) === 'typed meanwhile');
    await ask(page, 'broken');
    await page.getByText('The connection broke').waitFor();
    await page.route('**/api/agent/chat', (r) => r.abort());
    await ask(page, 'out there');
    await page.getByText('The server cannot be reached').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await log(page).getByText('You said: out there').waitFor();
    expect('no error is left', !(await prop(page, 'hasError')));
  },

  'a token is asked for again once': async (page) => {
    await page.locator('gemini-chat').evaluate((el) => {
      globalThis.asked = [];
      el.getToken = async ({ refused }) => (globalThis.asked.push(refused), refused ? 'good' : 'old');
    });
    await ask(page, 'who am I');
    await log(page).getByText('You said: who am I').waitFor();
    expect('twice in all', (await page.evaluate(() => globalThis.asked.join())) === 'false,true');
    await page.locator('gemini-chat').evaluate((el) => (el.getToken = async () => 'bad'));
    await ask(page, 'who now');
    await page.getByText('You are not signed in').waitFor();
    await page.locator('gemini-chat').evaluate((el) => (el.getToken = null));
  },

  'stop, and one request at a time': async (page) => {
    await ask(page, 'hold');
    await page.getByText('Late, b').waitFor();
    await input(page).fill('too soon');
    await input(page).press('Enter');
    expect('what was typed stays', (await input(page).inputValue()) === 'too soon');
    await shot(page, 'streaming');
    await page.getByRole('button', { name: 'Stop' }).click();
    await log(page).getByText('Stopped.').last().waitFor();
    expect('it is not loading', !(await prop(page, 'isLoading')));
    await ask(page, 'loop');
    await page.getByText('more than 24 steps').waitFor({ timeout: 30000 });
  },

  'a reload in the middle': async (page) => {
    await input(page).fill('a draft');
    await page.reload();
    expect('the draft is there', (await input(page).inputValue()) === 'a draft');
    await ask(page, 'reload');
    await page.getByText('Your turn').waitFor();
    await page.reload();
    await log(page).getByText('After the reload.').waitFor();
    const { results } = await seen(page);
    expect('it is told that nobody knows', /loaded anew/.test(results.at(-1).result));
    await page.route('**/api/agent/chat', () => {});
    await ask(page, 'in flight');
    await settled('it loads', () => prop(page, 'isLoading'));
    await page.reload();
    await page.getByText('the answer was lost').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await log(page).getByText('You said: in flight').waitFor();
    await page.getByRole('button', { name: 'New conversation' }).click();
    expect('it is empty', !(await prop(page, 'hasMessages')));
  },

  'a large page is told of within its bounds': async () => {
    const page = await visit();
    const found = await page.evaluate(async () => {
      const add = (parent, name, data, text = '') => {
        const el = parent.appendChild(document.createElement(name));
        Object.assign(el.dataset, data);
        el.textContent = text;
        return el;
      };
      for (let i = 0; i < 300; i++) add(document.body, 'button', { agentRef: `b ${i} ü` }, 'x'.repeat(500));
      for (const name of ['a', 'b']) {
        const list = add(document.body, 'ul', { agentList: name });
        for (let i = 0; i < 150; i++) {
          add(add(list, 'li', { agentKey: `${name}-${i}` }), 'button', { agentRef: 'same', agentState: 'words' },
            'y'.repeat(300));
        }
      }
      const { createAutomation, buildTools } = await import('/widget/automation.js');
      const automation = createAutomation();
      const tools = buildTools(automation);
      const last = await tools[0].execute({ coordinate: ['b', 'b-149', 'same'] });
      const wrong = await tools[1].execute({ coordinate: ['count'] });
      return { names: tools.map((t) => t.name), bytes: new Blob([JSON.stringify(automation.getPageState())]).size,
        says: tools[0].description, state: JSON.stringify(automation.getPageState()), last: last.ok, wrong };
    });
    expect('128 tools with names of their own',
      found.names.length === 128 && new Set(found.names).size === 128
        && found.names.every((n) => /^[A-Za-z][A-Za-z0-9_.-]{0,62}$/.test(n)));
    expect('it is said how many have none', /have no tool of their own/.test(found.says) && found.last);
    expect(`the state has ${found.bytes} bytes`,
      found.bytes <= 32768 && found.state.includes('"leftOut"') && found.state.includes('more characters'));
    expect('what is missing is named', found.wrong.ok === false && found.wrong.error === 'value: this is required.');
    await page.context().close();
  },

  'fields, frameworks and changes': async () => {
    const page = await visit();
    const found = await page.evaluate(async () => {
      const { createAutomation } = await import('/widget/automation.js');
      const note = document.querySelector('[data-agent-ref=note]');
      let own = 0;
      Object.defineProperty(note, 'value', { configurable: true, get: () => 'mine', set: () => own++ });
      const search = document.querySelector('[data-agent-ref=search]');
      search.type = 'number';
      search.value = '7';
      const automation = createAutomation();
      let changes = 0;
      const stop = automation.onStateChange(() => changes++);
      const outcomes = [await automation.triggerEvent('change', ['note'], { value: 'hello' }),
        await automation.triggerEvent('change', ['search'], { value: 'many' }),
        await automation.triggerEvent('drag', ['note']), await automation.triggerEvent('click', ['gift']),
        await automation.triggerEvent('click', ['gift'])];
      await new Promise((go) => setTimeout(go, 300));
      stop();
      delete note.value;
      const password = document.querySelector('[data-agent-ref=password]');
      password.type = 'text';
      return { outcomes, own, changes, note: note.value, search: search.value,
        shown: JSON.stringify(automation.getPageState()),
        element: automation.getInteraction(['note']).element === note };
    });
    expect('the setter of the browser is used', found.own === 0 && found.note === 'hello');
    expect(`a field that takes no words says so ${JSON.stringify(found.outcomes)}`,
      /field of type number/.test(found.outcomes[1].error) && found.search === '7' && found.outcomes[2].ok === false
        && found.outcomes[4].ok);
    expect(`changes are told together (${found.changes})`, found.changes === 1);
    expect('a password that is shown stays secret', !found.shown.includes('hunter2') && found.element);
    await page.context().close();
  },

  'a page that brings its own automation': async () => {
    const page = await visit();
    const found = await page.evaluate(async () => {
      const button = document.querySelector('[data-agent-ref=add-to-cart]');
      const order = document.querySelector('[data-agent-confirm]');
      const password = document.querySelector('[data-agent-ref=password]');
      const heard = [];
      const all = [
        { refName: 'add', coordinate: ['add'], element: button, elementType: 'HTMLButtonElement',
          supportedEvents: ['click'], description: 'Add' },
        { refName: 'order', items: [{ coordinate: ['o1', 'order'], element: order, events: ['click'] }] },
        { refName: 'password', coordinate: ['password'], element: password, supportedEvents: ['input'] },
      ];
      window.__jay = { automation: {
        getPageState: () => ({ viewState: { here: true }, interactions: all, customEvents: [{ name: 'added' }] }),
        getInteraction: (c) => [...all, ...all[1].items].find((i) => i.coordinate?.join() === c.join()),
        triggerEvent: (type, c) => void heard.push(`${type} ${c}`), onStateChange: () => () => {},
      } };
      const { createAutomation, buildTools } = await import('/widget/automation.js');
      const automation = createAutomation(document, { userClickMs: 100 });
      const tools = Object.fromEntries(buildTools(automation).map((t) => [t.name, t]));
      const clicked = await tools['click-add'].execute({});
      const ordered = await tools['click-order'].execute({ key: 'o1' });
      document.body.dataset.agentPolicy = 'ask';
      const asked = [];
      automation.onAsk(async (question) => (asked.push(question.title), false));
      const refused = await tools['click-add'].execute({});
      return { names: Object.keys(tools), clicked, ordered, heard, asked, refused,
        private: automation.getInteraction(['password']) };
    });
    expect(`its tools: ${found.names}`,
      found.names.join() === 'trigger-interaction,fill-input,click-add,click-order' && found.private === null);
    expect('it is used', found.heard.join() === 'click add' && found.clicked.ok && !('pageState' in found.clicked)
      && JSON.stringify(found.clicked.changed) === '{}');
    expect(`the policy of the page holds there too (${found.asked})`,
      found.asked.join() === 'Click “Add to cart”' && /rejected/.test(found.refused.error));
    expect('the click of the user was waited for, for a while', /did not use/.test(found.ordered.error));
    await page.context().close();
  },

  'a page whose policy is to ask first': async () => {
    const page = await visit();
    const card = (title) => page.getByRole('region', { name: `Approval: ${title}` });
    const decide = (title, word) => card(title).getByRole('button', { name: word }).click();
    const value = (name) => state(page, name).evaluate((el) => el.value ?? el.innerText);
    await page.evaluate(() => { document.body.dataset.agentPolicy = 'ask'; });
    await seen(page);
    await ask(page, 'policy');
    const click = card('Click “Add to cart”');
    await click.getByText('products, mug-1').waitFor();
    expect('nothing is done before the yes', (await value('count')) === '0' && !(await prop(page, 'isLoading')));
    await accessible(page, 'a page that asks first');
    await shot(page, 'policy');
    await decide('Click “Add to cart”', 'Approve');
    await card('Fill in “Note”').getByText('two\nlines').waitFor();
    expect('what was approved is done', (await value('count')) === '1' && (await click.count()) === 0);
    await decide('Fill in “Note”', 'Reject');
    await page.getByText('Your turn').waitFor();
    expect('what only the user may click is not asked about besides',
      (await page.getByRole('region', { name: /^Approval/ }).count()) === 0);
    await page.getByRole('button', { name: 'Place order' }).click();
    await log(page).getByText('As you said.').waitFor();
    const { results } = await seen(page);
    expect(`the model is told ${JSON.stringify(results[1])}`,
      results.length === 3 && results[1].isError && /rejected/.test(results[1].result) && (await value('note')) === '');
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await page.reload(); // this also removes the policy, unlike a real page's
    await log(page).getByText('I looked.').waitFor();
    await page.evaluate(() => { document.querySelector('#search').dataset.agentPolicy = 'ask'; });
    await ask(page, 'gift');
    await log(page).getByText('It is a gift.').waitFor(); // outside the element with the policy
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await page.evaluate(() => {
      document.querySelector('#search label').firstChild.data = 'Delete ';
      document.querySelector('[data-agent-state=query]').textContent = '';
    });
    await seen(page);
    await decide('Fill in “Search”', 'Approve');
    await log(page).getByText('I looked.').nth(1).waitFor();
    const told = (await seen(page)).results[0];
    expect(`what changed meanwhile is not used: ${JSON.stringify(told)}`,
      /changed/.test(told.result) && (await value('query')) === '');
    await ask(page, 'search');
    await card('Fill in “Delete”').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await log(page).getByText('Stopped.').waitFor();
    expect('nothing is asked any more', (await page.getByRole('region', { name: /^Approval/ }).count()) === 0);
    const nobody = await page.evaluate(async () => {
      const { createAutomation } = await import('/widget/automation.js');
      return createAutomation().triggerEvent('change', ['search'], { value: 'x' });
    });
    expect('where nobody can be asked, nothing is done', !nobody.ok && /nobody/.test(nobody.error));
    await page.context().close();
  },

  'a question of the page\'s policy outlives a reload, and is asked about the page as it is then': async () => {
    const page = await visit();
    const cards = page.getByRole('region', { name: /^Approval/ });
    const card = (title) => page.getByRole('region', { name: `Approval: ${title}` });
    const decide = (title, word) => card(title).getByRole('button', { name: word }).click();
    const value = (name) => state(page, name).evaluate((el) => el.value ?? el.innerText);
    let now = (html) => html;
    await page.route(`${BASE_URL}/`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response,
        body: now((await response.text()).replace('<main>', '<main data-agent-policy="ask">')) });
    });
    const reload = async (change = (html) => html) => {
      now = change;
      await page.reload();
      await input(page).waitFor();
    };
    await reload();
    await seen(page);
    await ask(page, 'policy');
    await decide('Click “Add to cart”', 'Approve');
    await card('Fill in “Note”').waitFor();
    expect('what was approved is done', (await value('count')) === '1');
    for (let n = 0; n < 2; n += 1) {
      await reload();
      await card('Fill in “Note”').getByText('two\nlines').waitFor();
      expect('it is asked about once, and nothing is done meanwhile',
        (await cards.count()) === 1 && (await value('note')) === '' && !(await prop(page, 'isLoading')));
    }
    expect('what was done before is not done again', (await value('count')) === '0');
    await accessible(page, 'after a reload of a page that asks first');
    await decide('Fill in “Note”', 'Approve');
    await page.getByText('Your turn').waitFor();
    expect('what was approved after a reload is done',
      (await value('note')) === 'two\nlines' && (await cards.count()) === 0);
    await page.getByRole('button', { name: 'Place order' }).click();
    await log(page).getByText('As you said.').waitFor();
    const { results } = await seen(page);
    expect(`the model is told of each once: ${JSON.stringify(results)}`,
      results.length === 3 && results.every((r) => !r.isError));

    const found = log(page).getByText('I looked.');
    const told = async (n) => {
      await found.nth(n).waitFor();
      const { results: last } = await seen(page);
      expect(`one result: ${JSON.stringify(last)}`, last.length === 1);
      return last[0].result;
    };
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload();
    await decide('Fill in “Search”', 'Reject');
    expect('a no after a reload is a no', /rejected/.test(await told(0)) && (await value('query')) === '');

    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload((html) => html.replace('<label>Search ', '<label>Delete '));
    await card('Fill in “Delete”').waitFor();
    expect('the card names what would be filled now, and no other is left',
      (await cards.count()) === 1 && (await value('query')) === '');
    await decide('Fill in “Delete”', 'Approve');
    expect('that is done', JSON.parse(await told(1)).ok && (await value('query')) === 'blue');

    await reload();
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload((html) => html.replace(' data-agent-ref="search"', ''));
    expect('what is not there any more is not asked about',
      /no tool fill-search/.test(await told(2)) && (await cards.count()) === 0);

    await reload();
    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload();
    await card('Fill in “Search”').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await log(page).getByText('Stopped.').waitFor();
    await reload();
    await log(page).getByText('Stopped.').waitFor();
    expect('what was stopped is not asked about again',
      (await cards.count()) === 0 && (await value('query')) === '' && !(await prop(page, 'isLoading')));

    await ask(page, 'search');
    await card('Fill in “Search”').waitFor();
    await reload();
    await card('Fill in “Search”').waitFor();
    await ask(page, 'gift'); // goes on without an answer
    await card('Tick “As a gift”').waitFor();
    expect('what was left unanswered is asked about no more, and not done',
      (await cards.count()) === 1 && (await value('query')) === '');
    await page.context().close();
  },

  'odd names and words of a page are text, and what cannot be seen is written out': async () => {
    const page = await visit();
    await page.evaluate(() => {
      document.body.dataset.agentPolicy = 'ask';
      const odd = document.body.appendChild(document.createElement('button'));
      odd.dataset.agentRef = "<img src=x onerror=document.title='owned'>\u202e";
      odd.dataset.agentLabel = '</h3><b>Save\u202e\u200b\u0007';
      odd.textContent = 'Odd';
      odd.onclick = () => { document.body.dataset.odd = 'clicked'; };
    });
    await ask(page, 'odd');
    const first = page.getByRole('region', { name: /^Approval: Click/ });
    await first.getByText('Click “</h3><b>Save⟨U+202E⟩⟨U+200B⟩⟨U+0007⟩”').waitFor();
    await first.getByRole('button', { name: 'Approve' }).click();
    const second = page.getByRole('region', { name: /^Approval: Fill in/ });
    await second.getByText('⟨U+202E⟩gnp.exe⟨U+200B⟩<i>x</i>').waitFor();
    await shot(page, 'odd');
    await second.getByRole('button', { name: 'Reject' }).click();
    await log(page).getByText('It was odd.').waitFor();
    expect('the button was clicked', await page.evaluate(() => document.body.dataset.odd === 'clicked'));
    expect('nothing of it became an element',
      (await page.locator('gemini-chat').locator('img, b, i').count()) === 0
        && (await page.title()) === 'A shop of somebody else');
    const { problems: wrong } = await seen(page);
    expect(`the definitions are in order: ${wrong}`, !wrong?.length);
    await page.context().close();
  },

  'where the browser is, and what its clock shows': async () => {
    for (const [timezoneId, locale, own] of [['Asia/Kolkata', 'en-IN', '4:30'], ['Europe/Berlin', 'de-DE', ''],
      ['Europe/Paris', 'fr-FR', '']]) {
      const page = await visit({ timezoneId, locale });
      await ask(page, 'when');
      const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
      await card.getByText('12:00 (Europe/Berlin').waitFor();
      const { region } = await seen(page);
      expect(`the server was told ${region}`, region.replace('Calcutta', 'Kolkata') === `${timezoneId} ${locale}`);
      const words = await card.locator('dd').innerText();
      expect(`beside it stands the reader's clock: ${words}`,
        own ? /By your clock: .*4:30/.test(words) : !words.includes('your clock'));
      await accessible(page, `in ${timezoneId}`);
      await shot(page, `zone-${timezoneId.replace('/', '-')}`);
      await page.context().close();
    }
    const page = await visit({ timezoneId: 'Antarctica/Troll' });
    await ask(page, 'hello');
    await log(page).getByText('Hello you').waitFor();
    expect('a zone that the server does not know stops nothing', (await seen(page)).region.startsWith(' '));
    await page.context().close();
  },

  'behind a button, with the count of what waits': async () => {
    const page = await visit({ reducedMotion: 'reduce' }); // axe-core may not look while it rises
    await page.bringToFront();
    const button = page.getByRole('button', { name: 'Open the chat: Shop assistant' });
    const focused = (name) => page.locator('gemini-chat')
      .evaluate((el, n) => el.shadowRoot.activeElement?.getAttribute('part') === n, name);
    await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('launcher', ''));
    await button.waitFor();
    expect('the chat is closed', await page.getByRole('dialog').isHidden() && await input(page).isHidden());
    expect('nothing waits', (await button.innerText()) === '');
    await accessible(page, 'behind its button');
    await shot(page, 'launcher');
    await button.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Shop assistant' }).waitFor();
    expect('one may write at once', await focused('message-input'));
    await page.keyboard.type('behind');
    await page.keyboard.press('Enter');
    const card = page.getByRole('region', { name: 'Approval: Send an e-mail' });
    await card.waitFor();
    await accessible(page, 'open, with an approval');
    await shot(page, 'launcher-open');
    await page.keyboard.press('Escape');
    const waiting = page.getByRole('button', { name: 'Open the chat: Shop assistant, 1 waits for you' });
    await waiting.waitFor();
    expect('it is closed, and the focus is where it came from', await card.isHidden() && await focused('launcher'));
    expect('the badge counts', (await waiting.innerText()) === '1');
    await accessible(page, 'with a badge');
    await shot(page, 'launcher-badge');
    await waiting.click();
    await card.getByRole('button', { name: 'Approve' }).click();
    await log(page).getByText('It is sent.').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await settled('nothing waits any more', async () => (await button.innerText()) === '' && focused('launcher'));
    await page.evaluate(() => document.querySelector('gemini-chat').removeAttribute('launcher'));
    await input(page).waitFor();
    expect('it lies in the page again', (await page.getByRole('dialog').count()) === 0 && (await button.count()) === 0);
    await page.context().close();
  },

  'behind a button, at 320 pixels: the focus stays, and the page is seen where its user must act': async () => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme, reducedMotion: 'reduce' });
      await page.bringToFront();
      await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('launcher', ''));
      await page.getByRole('button', { name: 'Open the chat: Shop assistant' }).click();
      await page.locator('section[aria-modal=true]').waitFor();
      for (let i = 0; i < 8; i++) {
        await page.keyboard.press('Tab');
        expect('the focus stays in the chat',
          await page.evaluate(() => document.activeElement?.localName === 'gemini-chat'));
      }
      await accessible(page, `${colorScheme}, and over the page`);
      await shot(page, `launcher-narrow-${colorScheme}`);
      await ask(page, 'order');
      await page.getByRole('button', { name: 'Open the chat: Shop assistant, 1 waits for you' }).waitFor();
      expect('it is said what is to be done',
        await page.getByText('Your turn: use “Place order” on the page', { exact: true }).isVisible());
      await accessible(page, `${colorScheme}, and it is the user's turn`);
      await shot(page, `launcher-turn-${colorScheme}`);
      const before = Number(await state(page, 'orders').innerText());
      await page.locator('[data-agent-waiting]').click();
      await settled('the order is placed', async () => Number(await state(page, 'orders').innerText()) === before + 1);
      await page.getByRole('button', { name: 'Open the chat: Shop assistant', exact: true }).click();
      await log(page).getByText('It is ordered.').waitFor();
      await page.context().close();
    }
  },

  'in forced colours everything has an edge': async () => {
    const page = await visit({ forcedColors: 'active' });
    await ask(page, 'looks');
    await page.getByRole('region', { name: 'Approval: Send an e-mail' }).waitFor();
    const edges = await page.locator('gemini-chat')
      .evaluate((el) => ['.chat', '.card', '.composer', 'button.main', '.user']
      .filter((part) => getComputedStyle(el.shadowRoot.querySelector(part)).borderTopStyle !== 'solid'));
    expect(`these have none: ${edges}`, edges.length === 0);
    await shot(page, 'forced-colours');
    await page.evaluate(() => document.querySelector('gemini-chat').setAttribute('launcher', ''));
    const button = page.getByRole('button', { name: 'Open the chat: Shop assistant, 1 waits for you' });
    await button.waitFor();
    expect('the button has one', await button.evaluate((b) => getComputedStyle(b).borderTopStyle === 'solid'));
    await button.focus();
    await shot(page, 'forced-colours-launcher');
    await page.context().close();
  },

  'by keyboard alone, at 320 pixels, in light and dark': async () => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme, reducedMotion: 'reduce' });
      await page.bringToFront();
      await input(page).focus();
      await page.keyboard.type('one');
      await page.keyboard.press('Shift+Enter');
      await page.keyboard.type('two');
      await page.keyboard.press('Enter');
      await log(page).getByText('You said: one').waitFor();
      await accessible(page, `${colorScheme} and compact`);
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Enter');
      expect('it is expanded', await prop(page, 'isExpanded'));
      await accessible(page, `${colorScheme} and expanded`);
      const mail = page.getByRole('region', { name: 'Approval: Send an e-mail' });
      await input(page).focus();
      await page.keyboard.type('mixed');
      await page.keyboard.press('Enter');
      await log(page).getByText('Both are done.').or(mail).first().waitFor();
      await page.locator('gemini-chat').scrollIntoViewIfNeeded();
      const wide = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(`nothing is wider than the screen (by ${wide} pixels)`, wide <= 0);
      await shot(page, `narrow-${colorScheme}`);
      await page.evaluate(() => { document.body.dataset.agentPolicy = 'ask'; });
      await input(page).focus();
      await page.keyboard.type('policy');
      await page.keyboard.press('Enter');
      const yes = page.getByRole('region', { name: 'Approval: Click “Add to cart”' })
        .getByRole('button', { name: 'Approve' });
      await yes.waitFor();
      await accessible(page, `${colorScheme} and asked first`);
      await settled('it can be decided', async () => !(await yes.getAttribute('aria-disabled')));
      await input(page).focus();
      await settled('the keyboard reaches Approve', async () => {
        await page.keyboard.press('Shift+Tab');
        return yes.evaluate((b) => b.getRootNode().activeElement === b);
      });
      await page.keyboard.press('Enter');
      await page.getByRole('region', { name: 'Approval: Fill in “Note”' }).waitFor();
      const wider = await page.evaluate(() =>
        document.documentElement.scrollWidth - document.documentElement.clientWidth);
      expect(`nothing of a question is wider than the screen (by ${wider} pixels)`, wider <= 0);
      await page.locator('gemini-chat').scrollIntoViewIfNeeded();
      await shot(page, `narrow-question-${colorScheme}`);
      await page.context().close();
    }
  },
};

let code = 0;
const page = await visit();
for (const [name, step] of Object.entries(steps)) {
  try {
    await step(page);
    if (problems.length) throw new Error(problems.splice(0).join('; '));
    console.log(`ok ${name}`);
  } catch (err) {
    console.log(`failed ${name}: ${err.stack}`);
    console.log(await page.locator('gemini-chat').ariaSnapshot().catch(() => 'no snapshot'));
    console.log(problems.join('; '));
    await shot(page, 'failed');
    code = 1;
    break;
  }
}
await browser.close();
process.exit(code);
