// Large pages, frameworks, pages with an automation of their own.

import { expect } from '../../../testkit/browsertest/driver.mjs';
import { input, state, visit } from './chat.mjs';

export const pages = {
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
    expect('what is missing is named', found.wrong.ok === false && found.wrong.error === 'value: required.');
    await page.context().close();
  },

  'a group of radios is called by its legend, or as it says itself': async () => {
    const page = await visit();
    const names = await page.evaluate(async () => {
      const { nameOf } = await import('/widget/read.js');
      const make = (name, attributes, ...inside) => {
        const el = document.createElement(name);
        for (const [key, value] of Object.entries(attributes)) el.setAttribute(key, value);
        el.append(...inside);
        return el;
      };
      const name = (...inside) => {
        const form = document.body.appendChild(make('form', {}, ...inside));
        return nameOf(form.querySelector('input'));
      };
      const legend = () => make('legend', {}, 'Delivery');
      const slow = () => make('label', {}, make('input', { type: 'radio', name: 'r' }), ' Slow');
      return [name(make('fieldset', {}, legend(), slow())),
        name(make('div', { role: 'radiogroup', 'aria-label': 'Speed' }, slow())),
        name(make('b', { id: 'l' }, 'Pace'), make('p', { role: 'radiogroup', 'aria-labelledby': 'l' }, slow())),
        name(make('fieldset', {}, legend(), make('input', { type: 'radio', 'data-agent-label': 'Post' }))),
        name(slow()),
        name(make('fieldset', {}, legend(), make('label', {}, make('input', { type: 'checkbox' }), ' Gift')))];
    });
    expect(`the names are ${names}`, names.join() === 'Delivery,Speed,Pace,Post,Slow,Gift');
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
      let told = () => {};
      const telling = new Promise((go) => { told = go; });
      const stop = automation.onStateChange(() => { changes++; told(); });
      const outcomes = [await automation.triggerEvent('change', ['note'], { value: 'hello' }),
        await automation.triggerEvent('change', ['search'], { value: 'many' }),
        await automation.triggerEvent('drag', ['note']), await automation.triggerEvent('click', ['gift']),
        await automation.triggerEvent('click', ['gift'])];
      await telling;
      for (let i = 0; i < 2; i++) await new Promise((go) => requestAnimationFrame(go));
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
};
