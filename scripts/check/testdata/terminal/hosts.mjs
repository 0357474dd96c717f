// Hosts: where the view is offered, and how one is added.

import { accessible, expect, settled, shot } from '../driver.mjs';
import { asked, doc } from '../fakeapi.mjs';
import { host, print, signIn } from './stage.mjs';

export const hosts = {
  'the view is offered where there is an agent for it': async (page) => {
    await signIn(page);
    const link = page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Terminal' });
    expect('it is not offered', (await link.count()) === 0);
    await doc('GET /api/agent/agents',
      { ok: true,
        agents: [{ name: 'assistant', description: '', tools: [] },
          { name: 'terminal', description: '', tools: ['run_command'], terminal: true }] });
    await page.reload();
    await link.click();
    await page.getByText('No host yet.').waitFor();
    await accessible(page, 'no host');
  },

  'a host is added once its fingerprint is confirmed (002-14)': async (page) => {
    await doc('POST /api/agent/hosts/scan', { ok: true, hostKeys: [print] });
    await doc('POST /api/agent/hosts', { ok: true, ...host });
    expect('commands that look run without asking',
      await page.getByLabel('Run read-only commands without asking').isChecked());
    await page.getByLabel('Host', { exact: true }).fill('web-1.example.com');
    await page.getByLabel('User name').fill('ana');
    await page.getByLabel('Name (optional').fill('web-1');
    await page.getByLabel('My private key').check();
    await page.getByLabel('Passphrase of the key').fill('secret');
    await accessible(page, 'a private key');
    await page.getByLabel('A new key, generated here').check();
    await page.getByText('Advanced').click();
    await page.getByLabel('Folders whose files').fill('/var/log\n\n /srv/log ');
    await page.getByRole('button', { name: 'Show fingerprint' }).click();
    await page.getByText(print.sha256).waitFor();
    expect('nothing but the address was sent',
      JSON.stringify((await asked('POST', '/api/agent/hosts/scan'))[0].body)
        === '{"host":"web-1.example.com","port":22}');
    await accessible(page, 'a fingerprint');
    await shot(page, 'terminal-connect');
    await page.getByLabel('Host', { exact: true }).fill('web-2.example.com');
    expect('another host has another fingerprint', !(await page.getByText(print.sha256).isVisible()));
    await page.getByLabel('Host', { exact: true }).fill('web-1.example.com');
    await page.getByRole('button', { name: 'Show fingerprint' }).click();
    await doc('GET /api/agent/hosts', { ok: true, hosts: [host] });
    await page.getByRole('button', { name: 'The fingerprint matches' }).click();
    await page.getByText('Add the key to web-1').waitFor();
    const [{ body }] = await asked('POST', '/api/agent/hosts');
    expect(`the host is what was typed (${JSON.stringify(body)})`,
      body.auth.kind === 'generated' && body.autoRun === 'read_only' && body.readPaths.join() === '/var/log,/srv/log'
        && body.hostKeys[0].sha256 === print.sha256 && body.port === 22);
    await doc(`POST /api/agent/hosts/${host.hostId}/check`,
      { ok: true, os: 'Linux 6.1', shells: ['bash', 'posix'], pty: true, home: '/home/ana' });
    await page.getByRole('button', { name: 'Check web-1' }).click();
    await page.getByText('Connection works: Linux 6.1').waitFor();
    await doc(`POST /api/agent/hosts/${host.hostId}`, { ok: true, ...host, autoRun: 'none' });
    await page.getByText('Run without asking', { exact: true }).click();
    await accessible(page, 'a host');
    await page.getByLabel('Read-only commands', { exact: true }).uncheck();
    await page.getByLabel('Folders whose files may be printed (one per line)').fill('/var/log');
    await page.getByRole('button', { name: 'Save what may run on web-1' }).click();
    await settled('the change is sent',
      async () => (await asked('POST', `/api/agent/hosts/${host.hostId}`)).length === 1);
    expect('it is what was chosen',
      JSON.stringify((await asked('POST', `/api/agent/hosts/${host.hostId}`))[0].body)
        === '{"autoRun":"none","readPaths":["/var/log"]}');
    await shot(page, 'terminal-hosts');
  },

  'a host with a certificate is added by lines of known_hosts, without a scan': async (page) => {
    const lines = '@cert-authority *.example.com ssh-ed25519 AAAA\n@revoked * ssh-ed25519 BBBB';
    await page.getByLabel('Host', { exact: true }).fill('db-1.example.com');
    await page.getByLabel('User name').fill('ana');
    const known = page.getByLabel('Lines of known_hosts');
    if (!(await known.isVisible())) await page.getByText('Advanced').click();
    await known.fill(lines);
    await page.getByLabel('Connect through').selectOption('web-1');
    expect('there is no fingerprint to compare',
      !(await page.getByRole('button', { name: 'Show fingerprint' }).isVisible()));
    const [before, scans] = [(await asked('POST', '/api/agent/hosts')).length,
      (await asked('POST', '/api/agent/hosts/scan')).length];
    await doc('GET /api/agent/hosts', { ok: true, hosts: [{ ...host, certAuthorities: [print] },
      { ...host, hostId: 'host000000000002', name: 'db-1', jump: host.hostId }] });
    await page.getByRole('button', { name: 'Add the host' }).click();
    await page.getByText('Certified by').waitFor();
    const sent = (await asked('POST', '/api/agent/hosts'))[before].body;
    expect(`the lines are sent (${JSON.stringify(sent)})`, sent.knownHosts === lines
      && sent.hostKeys === undefined && sent.jump === host.hostId);
    await page.getByText('through web-1').waitFor();
    expect('nothing was scanned', (await asked('POST', '/api/agent/hosts/scan')).length === scans);
    await page.getByRole('button', { name: 'Show fingerprint' }).waitFor();
    await accessible(page, 'a certificate');
    await doc('GET /api/agent/hosts', { ok: true, hosts: [host] });
  },
};
