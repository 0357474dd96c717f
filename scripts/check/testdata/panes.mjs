// What the scripts that use terminals have in common: the parts of the view, and what people do there.

import { lain, press, settled } from './driver.mjs';

/**
 * panes returns the words for terminals.
 * @param {string} standard a host, whose first terminal is meant where none is named
 */
export function panes(standard) {
  const pane = (page, name = standard) => page.getByRole('region', { name: `Terminal on ${name}`, exact: true });
  const talk = (page, name = standard) => page.getByRole('region', { name: `Chat about ${name}`, exact: true });
  const stop = (page, name) => talk(page, name).getByRole('button', { name: '■ Stop' });
  const rows = (page, name) => pane(page, name).locator('.xterm-rows');
  const screen = async (page, name) => (await rows(page, name).innerText()).replaceAll('\u00a0', ' ');
  const shows = (page, words, name) =>
    settled(`the pane shows ${words}`,
      async () => (await screen(page, name)).replaceAll('\n', '').includes(words)); // which may wrap
  const idle = (page, name) => settled('nothing is under way', async () => !(await stop(page, name).isVisible()));

  async function type(page, keys, name) {
    await pane(page, name).locator('textarea').focus();
    await page.keyboard.type(keys);
    await page.keyboard.press('Enter');
  }

  async function ask(page, words, name) {
    await idle(page, name);
    await talk(page, name).locator('textarea').last().fill(words);
    await page.keyboard.press('Enter');
  }

  /** decide presses a button of the card that waits, and types the host's name where that is asked for. */
  async function decide(page, decision, name) {
    const card = talk(page, name).locator('.card').first();
    await card.waitFor();
    await lain(page);
    const sure = card.getByLabel('To approve, type');
    if (await sure.count()) await sure.fill(standard);
    await press(card.getByRole('button', { name: decision }));
  }

  return { pane, talk, stop, rows, screen, shows, idle, type, ask, decide };
}
