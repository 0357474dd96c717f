// Passkeys of a device and of a security key. Run by TestPasskeys; see driver.mjs.

import { accessible, ask, cards, expect, inSight, lain, newThread, press, run, settled, shot, signIn }
  from './driver.mjs';

const { VERA, WALT } = process.env;
const code = (said) => said.match(/[A-Z2-7]{4}(?:-[A-Z2-7]{4}){3}/)[0];
const error = (page) => cards(page).locator('.error');

/** authenticator adds a virtual authenticator to the page. @returns its CDP session and ID */
async function authenticator(page, transport, verified = true) {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('WebAuthn.enable');
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options: { protocol: 'ctap2',
    transport, hasResidentKey: true, hasUserVerification: true, isUserVerified: verified,
    automaticPresenceSimulation: true } });
  return { cdp, authenticatorId };
}

const mail = async (page, words) => {
  await newThread(page);
  await ask(page, `email ken@example.com that ${words}`);
  await lain(page);
};

const approve = (page) => press(cards(page).getByRole('button', { name: 'Approve with passkey' }));

async function add(page, name, text) {
  await page.getByLabel('Name of the device or security key').fill(name);
  await page.getByLabel('One-time code from your administrator').fill(text);
  await page.getByRole('button', { name: 'Add a passkey' }).click();
}

let device;

await run({
  'a card says that a passkey is missing, and leads to the page where one is added': async (page) => {
    await signIn(page, 'vera');
    device = await authenticator(page, 'internal');
    await mail(page, 'lunch is ready');
    await accessible(page, 'a card that needs a passkey');
    await shot(page, 'passkey-card');
    await approve(page);
    await cards(page).getByRole('link', { name: 'Add a passkey' }).click();
    await page.getByRole('heading', { name: 'Passkeys' }).waitFor();
    await add(page, 'Laptop', 'AAAA-AAAA-AAAA-AAAA');
    await page.getByText('This code does not count').waitFor();
    await add(page, 'Laptop', code(VERA));
    await cards(page).getByRole('button', { name: 'Approve with passkey' }).waitFor();
  },

  'the device confirms the card': async (page) => {
    await approve(page);
    await page.locator('.card').waitFor({ state: 'detached' });
    const { credentials } = await device.cdp.send('WebAuthn.getCredentials',
      { authenticatorId: device.authenticatorId });
    expect(`the device has signed: ${credentials[0].signCount}`, credentials.length === 1
      && credentials[0].signCount > 1);
  },

  'without the check of the person, nothing is decided': async (page) => {
    await mail(page, 'tea is ready');
    await device.cdp.send('WebAuthn.setUserVerified', { authenticatorId: device.authenticatorId,
      isUserVerified: false });
    await approve(page);
    await error(page).getByText('Nothing was decided.').waitFor();
    await device.cdp.send('WebAuthn.setUserVerified', { authenticatorId: device.authenticatorId,
      isUserVerified: true });
  },

  'a copy of the passkey that has counted less is refused': async (page) => {
    const { authenticatorId, cdp } = device;
    const { credentials: [own] } = await cdp.send('WebAuthn.getCredentials', { authenticatorId });
    await cdp.send('WebAuthn.removeCredential', { authenticatorId, credentialId: own.credentialId });
    await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: { ...own, signCount: 0 } });
    await approve(page);
    await error(page).getByText('does not confirm this decision').waitFor();
    await cdp.send('WebAuthn.removeCredential', { authenticatorId, credentialId: own.credentialId });
    await cdp.send('WebAuthn.addCredential', { authenticatorId, credential: { ...own, signCount: own.signCount + 9 } });
    await approve(page);
    await settled('the card is decided', async () => (await cards(page).count()) === 0);
  },

  'passkeys are listed, renamed and removed': async (page) => {
    await page.getByRole('link', { name: 'Linked accounts' }).click();
    await page.getByRole('link', { name: 'Your passkeys' }).click();
    await page.getByRole('button', { name: 'Rename Laptop' }).click();
    await page.getByLabel('New name of Laptop').fill('Größe 😀');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Remove Größe 😀' }).waitFor();
    await accessible(page, 'passkeys');
    await shot(page, 'passkeys');
    await page.setViewportSize({ width: 390, height: 800 });
    expect('Remove is in sight on a phone',
      await inSight(page.getByRole('button', { name: 'Remove Größe 😀' })));
    await shot(page, 'passkeys-phone');
    await page.getByRole('button', { name: 'Remove Größe 😀' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('No passkeys yet.').waitFor();
  },
});

await run({
  'a security key of another user confirms an always-allow': async (page) => {
    await signIn(page, 'walt');
    await authenticator(page, 'usb');
    await page.evaluate(() => void (location.hash = '#/passkeys'));
    await add(page, 'Key ring', code(WALT));
    await page.getByText('Key ring').first().waitFor();
    await mail(page, 'dinner is ready');
    await press(cards(page).getByRole('button', { name: /^Always allow .* with passkey$/ }));
    await settled('the card is decided', async () => (await cards(page).count()) === 0);
    await page.evaluate(() => void (location.hash = '#/allowed'));
    await page.locator('.item strong').getByText('ken@example.com').waitFor();
  },
}, { colorScheme: 'dark' });
