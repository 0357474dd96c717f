// Reads cards in the language of the browser and by its clock. Run by TestClocks.

import { accessible, ask, cards, expect, lain, newThread, press, run, settled, shot, signIn, view, visit }
  from './driver.mjs';

const english = /day\b|\b(Jan|Febr)uary|\b(AM|PM)\b|UTC/; // of the server's own words for times
const german = /(Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch/;

/** times returns what a card says of times: its lines, and what stands below them. */
const times = async (card) => [...await card.locator('dd').allInnerTexts(),
  await card.locator('.card-foot').innerText()].join('\n');

async function approve(page) {
  await lain(page);
  await press(cards(page).first().getByRole('button', { name: 'Approve once' }));
  await settled('it is done', async () => await cards(page).count() === 0);
}

await run({
  'an event in the zone of the reader has one clock': async (page) => {
    await signIn(page, 'kenji');
    await ask(page, 'schedule lunch with ana@example.com tomorrow at noon');
    const card = cards(page).first();
    await card.getByText(/12:00 \(Asia\/Tokyo\)/).first().waitFor();
    const words = await times(card);
    expect(`the times are in the reader's language: ${words}`, german.test(words) && !english.test(words));
    expect('one clock is enough', !words.includes('your clock'));
    expect(`what has no zone on the card names its own: ${words}`, /Requested .*GMT\+9/.test(words));
    await accessible(page, 'a card in two languages');
    await shot(page, 'clocks-tokyo');
  },

  'elsewhere it has both, with their zones': async () => {
    const there = await visit({ timezoneId: 'Europe/Berlin', locale: 'de-DE' });
    await signIn(there, 'kenji');
    await view(there, 'Inbox');
    const card = cards(there).first();
    await card.getByText(/12:00 \(Asia\/Tokyo\)/).first().waitFor();
    const words = await times(card);
    expect(`both clocks have names: ${words}`, /By your clock: .*0?[345]:00 (MEZ|MESZ)/.test(words));
    expect(`nothing is in the server's words: ${words}`, german.test(words) && !english.test(words));
    await shot(there, 'clocks-berlin');
    await there.context().close();
  },

  'the record says it as the card did': async (page) => {
    await approve(page);
    await page.getByRole('button', { name: 'Exact details' }).or(page.getByText('Exact details')).first().click();
    const record = page.locator('.record');
    await record.getByText(/12:00 \(Asia\/Tokyo\)/).first().waitFor();
    const words = await record.locator('dd').allInnerTexts();
    expect(`nothing is in the server's words: ${words.join('; ')}`, !words.some((w) => english.test(w)));
    await shot(page, 'clocks-record');
  },

  'the sentence about it says it as the card did, in the conversation and in the details': async (page) => {
    const told = async (place) => {
      await place.getByText(/12:00 \(Asia\/Tokyo\)/).first().waitFor();
      const words = await place.innerText();
      expect(`the times are in the reader's language: ${words}`, german.test(words) && !/day\b|UTC/.test(words));
    };
    await told(page.locator('p.record').last());
    await accessible(page, 'an outcome in two languages');
    await shot(page, 'clocks-outcome');
    await page.getByRole('link', { name: 'Details' }).last().click();
    await told(page.locator('dt:text-is("On record") + dd'));
    await page.goBack();
  },

  'when the same was sent before is told by the reader\u2019s clock': async (page) => {
    await newThread(page);
    await ask(page, 'email ken@example.org that the build is green');
    await approve(page);
    await ask(page, 'email ken@example.org that the build is green');
    const warning = cards(page).first().getByRole('list', { name: 'Check carefully' });
    await warning.getByText('You already sent exactly this at').waitFor();
    const words = await warning.innerText();
    expect(`it names the day and the zone: ${words}`, german.test(words) && /\d\d:\d\d GMT\+9/.test(words));
    await shot(page, 'clocks-repeated');
  },

  'a limit says when more is possible by the reader\u2019s clock': async (page) => {
    const error = { class: 'PolicyError', code: 'budget', requestId: 'x',
      message: 'The limit is reached. More is possible from 2 January, 00:00 UTC.',
      moments: [{ text: '2 January, 00:00 UTC', at: '2027-01-02T00:00:00Z' }] };
    await newThread(page);
    await page.route('**/run/stream', (r) => r.fulfill({ status: 429, json: { ok: false, error } }));
    await ask(page, 'email ken@example.org that the build is red');
    const words = await page.getByText('More is possible from').first().innerText();
    expect(`it is in the reader's language: ${words}`, /Samstag.*09:00 GMT\+9/.test(words) && !words.includes('UTC'));
    await page.unroute('**/run/stream');
  },
}, { timezoneId: 'Asia/Tokyo', locale: 'de-DE' });
