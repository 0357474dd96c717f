// The person's own shell: what it shows, and what it must not do to the page.

import { accessible, expect, settled } from '../driver.mjs';
import { doc, frame, frames, keys, say } from '../fakeapi.mjs';
import { disk, one, pane, rows, screen, shows, style, term } from './stage.mjs';

export const shell = {
  'a terminal shows its shell, and takes keys': async (page) => {
    await doc('POST /api/agent/terminals', { ok: true, ...term(one) });
    await doc('GET /api/agent/terminals', { ok: true, terminals: [term(one)] });
    await say(one, '\u001b[1;32mana@web-1\u001b[0m:~$ \u001b[38;2;200;30;90mhello\u001b[0m ');
    await page.getByRole('button', { name: 'Open a terminal on web-1' }).click();
    await shows(page, 'ana@web-1:~$ hello');
    await page.getByText('Connected').waitFor();
    await settled('a size is told', async () => (await frames(one)).length > 0);
    const [size] = await frames(one);
    expect(`the host knows the size (${JSON.stringify(size)})`,
      size.type === 'resize' && size.cols > 40 && size.rows > 10);
    await page.getByLabel('Keys for the terminal on web-1;').focus();
    await page.keyboard.type('ls');
    await page.keyboard.press('Enter');
    await settled('the keys arrive', async () => (await keys(one)) === 'ls\r');
    await frame(one, { type: 'agent', runId: disk.id, actionId: 'line000000000001', state: 'running' });
    await say(one, 'its own line\r\n');
    await frame(one, { type: 'agent', runId: disk.id, actionId: 'line000000000001', state: 'ended' });
    await shows(page, 'its own line');
    expect('what the agent prints begins a line', /^its own line/m.test(await screen(page)));
    expect('it has the colours of the host',
      /rgb/.test(await style(rows(page).locator('span').first(), 'color'))
        && (await page.locator('style').evaluateAll((all) => all.every((s) => s.sheet?.cssRules.length > 0))));
    await accessible(page, 'a terminal');
  },

  'a shell draws its prompt over no line of a command': async (page) => {
    const sizes = async () => (await frames(one)).filter((f) => f.type === 'resize');
    const drawn = () => rows(page).locator('> div').count();
    const state = (state) => frame(one, { type: 'agent', runId: disk.id, actionId: 'size000000000001', state });
    await say(one, '\r\nana@web-1:~$ ');
    const [before, lines] = [await sizes(), await drawn()];
    await state('running');
    await pane(page).getByText('The agent runs').waitFor();
    await settled('the bar takes its room', async () => (await drawn()) < lines);
    await page.setViewportSize({ width: 1280, height: 700 });
    await settled('the screen is smaller', async () => (await drawn()) < lines - 5);
    await page.getByLabel('Keys for the terminal on web-1;').focus();
    await page.keyboard.type('k');
    await settled('a key arrives', async () => (await keys(one)).endsWith('k'));
    expect('the shell is told of no size meanwhile', (await sizes()).length === before.length);
    await say(one, 'it has 6'); // its line's end comes with the last words of the keeper
    await state('ended');
    await settled('the shell is told', async () => (await sizes()).length === before.length + 1);
    expect(`the last size (${JSON.stringify(await sizes())})`, (await sizes()).at(-1).rows === (await drawn()));
    await settled('its prompt stands below', async () => /^it has 6\s+ana@web-1:~\$\s*$/m.test(await screen(page)));
    await say(one, '\r\u001b[Kana@web-1:~$ drawn'); // as bash does
    await shows(page, 'ana@web-1:~$ drawn');
    expect('no line is gone', /^it has 6\s+ana@web-1:~\$ drawn\s*$/m.test(await screen(page)));
    await page.setViewportSize({ width: 1280, height: 900 });
    await settled('it has its room again', async () => (await sizes()).at(-1).rows === lines);
  },

  'all of the screen is in its box': async (page) => {
    for (const width of [1280, 1013, 700]) {
      await page.setViewportSize({ width, height: 871 });
      const past = () => pane(page).locator('.pane-box').evaluate((box) => {
        const [of, style] = [box.getBoundingClientRect(), getComputedStyle(box)];
        const drawn = box.querySelector('.xterm-screen').getBoundingClientRect();
        return Math.max(drawn.right - of.right + parseFloat(style.paddingRight),
          drawn.bottom - of.bottom + parseFloat(style.paddingBottom));
      });
      await settled(`nothing is hidden at ${width}`, async () => (await past()) <= 1);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
  },

  'what a host prints is only text': async (page) => {
    const title = await page.title();
    await say(one,
      '\u001b]0;owned\u0007\u001b]52;c;b3duZWQ=\u0007\u001b[c\u001b[>c\u001b[=c\u001b[6n\u001b[?6n\u001b[5n\u001b[?25$p'
      + '\u001b[18t\u001b[21t\u001b[>q\u001b[?u\u001bP$qm\u001b\\\u001bP+q544e\u001b\\\u001b]10;?\u0007'
      + '\u001b]11;?\u0007\u001b]4;1;?\u0007\u001b[?1004h\u001b[?25;1004h\u001bZ');
    await say(one, 'after \u001b]8;;https://evil.example/x\u0007link\u001b]8;;\u0007 end');
    await shows(page, 'after link end');
    await page.getByLabel('Keys for the terminal on web-1;').blur();
    await page.getByLabel('Keys for the terminal on web-1;').focus();
    await page.keyboard.type('x');
    await settled('the keys arrive', async () => (await keys(one)).endsWith('x'));
    expect(`no answer was sent as if it was typed (${JSON.stringify(await keys(one))})`,
      (await keys(one)) === 'ls\rkx');
    expect('the title is the page\'s', (await page.title()) === title);
    const at = await rows(page).getByText('link').boundingBox();
    await page.mouse.move(at.x + 4, at.y + 4, { steps: 4 });
    await page.mouse.down();
    await page.mouse.up();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('https://evil.example/x').waitFor();
    await dialog.getByRole('button', { name: 'Stay here' }).click();
    expect('nothing was opened', page.context().pages().length === 1);
  },

  'what is selected can be copied': async (page) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await say(one, '\r\nselected ');
    await shows(page, 'selected');
    const at = await rows(page).getByText('selected').boundingBox();
    await page.mouse.dblclick(at.x + 20, at.y + at.height / 2);
    const sent = await keys(one);
    await page.keyboard.press('Control+Shift+KeyC');
    await settled('it is copied', async () =>
      (await page.evaluate(() => navigator.clipboard.readText())).trim() === 'selected');
    expect('the host got no key', (await keys(one)) === sent);
  },
};
