// Uses a host in Chromium as its owner would: added by its fingerprint, with a key of one's own, on a real sshd. Run by
// TestTerminalOnSSHD, which says through the environment where that is. A line "restart" asks the test to kill the
// server with -9 and to start it again.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { accessible, expect, restart, run, settled, shot, signIn, view } from './driver.mjs';
import { panes } from './panes.mjs';

const { SSHD_HOME, SSHD_PORT, SSHD_USER, SSHD_KEY, SSHD_PRINT } = process.env;
const { pane, talk, screen, shows, idle, type, ask, decide } = panes('box');

async function command(page, text) {
  await ask(page, `run \`${text}\``);
  await decide(page, 'Approve once');
}

await run({
  'a host is added by its fingerprint (002-14)': async (page) => {
    await signIn(page, 'nova');
    await view(page, 'Terminal');
    await page.getByLabel('Host', { exact: true }).fill('127.0.0.1');
    await page.getByLabel('Port').fill(SSHD_PORT);
    await page.getByLabel('User name').fill(SSHD_USER);
    await page.getByLabel('Name (optional').fill('box');
    await page.getByLabel('My private key').check();
    await page.getByLabel('Private key (OpenSSH or PEM)').fill(readFileSync(SSHD_KEY, 'utf8'));
    await page.getByRole('button', { name: 'Show fingerprint' }).click();
    await page.getByText(SSHD_PRINT).waitFor();
    await page.getByRole('button', { name: 'The fingerprint matches' }).click();
    await page.getByRole('button', { name: 'Check box' }).click();
    await page.getByText('Connection works: Linux').waitFor();
    await page.getByRole('button', { name: 'Open a terminal on box' }).click();
    await page.getByText('Connected').waitFor();
  },

  'the person\'s own shell, and what was missed (002-09)': async (page) => {
    await type(page, 'echo from-the-$((40+2)); tty; stty size');
    await shows(page, 'from-the-42');
    await shows(page, '/dev/pts/');
    const size = async () => (await screen(page)).match(/^(\d+) (\d+)$/m);
    await settled('its size is told', async () => (await size()) !== null);
    const [rows, cols] = (await size()).slice(1).map(Number);
    expect(`the shell knows the size (${rows} ${cols})`, rows > 20 && cols > 40);
    const [go, went] = ['go', 'went'].map((name) => join(SSHD_HOME, name));
    await type(page, 'x=kept; until test -e go; do sleep .1; done; echo "$x while away"; touch went');
    await shows(page, 'while away"');
    await page.context().setOffline(true);
    await page.getByText('The connection was lost').waitFor();
    writeFileSync(go, '');
    await settled('it was printed', () => existsSync(went));
    await page.context().setOffline(false);
    await shows(page, 'kept while away');
    await Promise.all([restart(), page.waitForEvent('websocket')]); // the page connects again by itself
    await page.getByText('Connected').waitFor();
    await shows(page, 'from-the-42');
    await type(page, 'echo "again $x"');
    await shows(page, 'again kept');
  },

  'a command of the agent is seen, and asks for input': async (page) => {
    await talk(page).getByRole('button', { name: '⚡ Agent' }).click();
    await command(page, 'read -rsp "pass word: " p; echo; echo "it has ${#p}"');
    await pane(page).getByText('It asks for input').waitFor();
    await accessible(page, 'a command that asks');
    await type(page, 'secret');
    await shows(page, 'it has 6');
    await talk(page).getByText('it has 6').first().waitFor();
    await idle(page);
    expect('what was typed is nowhere',
      !(await screen(page)).includes('secret') && !(await talk(page).innerText()).includes('secret'));
    await shot(page, 'terminal-sshd');
  },

  'the directory of the agent carries over, and is not the person\'s': async (page) => {
    await command(page, 'mkdir -p over && cd over');
    await idle(page);
    await command(page, 'touch here; pwd');
    await talk(page).getByText('/over').last().waitFor();
    await idle(page);
    await type(page, 'ls over; basename "$PWD" | tr a-z A-Z');
    await shows(page, 'here');
  },
});
