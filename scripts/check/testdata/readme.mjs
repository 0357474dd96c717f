// Uses the agent of README in Chromium: chosen by its link, it asks before it writes its note. Run by TestReadme.

import { accessible, ask, cards, expect, press, run, settled, shot, signIn } from './driver.mjs';

await run({
  'the agent of a file, its tool, and a yes': async (page) => {
    await signIn(page, 'nova');
    await page.goto(page.url().replace(/#.*|$/, '#/new?agent=scribe'));
    await settled('the agent is chosen', async () => (await page.getByLabel('Agent').inputValue()) === 'scribe');
    await ask(page, 'write a note: the demo is at ten');
    const card = cards(page).first();
    await card.getByText('Write down: the demo is at ten').waitFor();
    await accessible(page, 'a card of a tool of one\'s own');
    await shot(page, 'own-tool');
    await press(card.getByRole('button', { name: 'Approve once' }));
    await page.locator('.message.assistant').getByText('“note_write” was done.').waitFor();
    expect('nothing waits any more', (await cards(page).count()) === 0);
    await shot(page, 'own-tool-done');
  },
});
