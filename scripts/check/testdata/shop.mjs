// Uses the example shop in Chromium: first as a plain shop, then through the assistant. Run by TestShop; see
// driver.mjs.

import { accessible, expect, run, settled, shot, visit } from './driver.mjs';

const { BASE_URL } = process.env;
const cart = (page) => page.locator('#cart-items li');
const chat = (page) => page.locator('gemini-chat');
const inCart = async (page) => (await cart(page).locator('p').allInnerTexts()).join(', ');

async function open(page) {
  await page.goto(`${BASE_URL}/shop`);
  await page.getByRole('heading', { name: 'Mugs and what goes with them' }).waitFor();
}

/** inView tells whether what is there is also seen: nothing lies over it, and it is within the screen. */
const inView = (part) => part.evaluate((el) => {
  const { left, top, right, bottom } = el.getBoundingClientRect();
  const hit = el.getRootNode().elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return top >= 0 && bottom <= innerHeight && (hit === el || el.contains(hit));
});

/** ask tells the assistant, which answers with words that contain these. */
async function ask(page, words, answer) {
  const box = chat(page).getByRole('textbox', { name: 'Your message' });
  // the words of the last answer are seen before it is whole
  await chat(page).getByRole('button', { name: 'Send' }).waitFor();
  await box.fill(words);
  await box.press('Enter');
  if (answer) await chat(page).getByText(answer).last().waitFor();
}

const steps = {
  'it is a plain shop: search, quantity, cart, reload, check out': async (page) => {
    await open(page);
    await page.getByLabel('Search the shop').fill('blue mug');
    await page.getByText('1 product', { exact: true }).waitFor();
    expect('the others are out of sight', (await page.locator('.product:visible').count()) === 1);
    await page.getByLabel('Quantity of Blue Mug').fill('2');
    await page.getByRole('button', { name: 'Add Blue Mug to cart' }).click();
    await page.reload();
    await settled('the cart survives a reload', async () => (await inCart(page)) === '2 × Blue Mug');
    await page.getByLabel('Quantity of Blue Mug in the cart').fill('3');
    await page.getByLabel('Quantity of Blue Mug in the cart').blur();
    await page.getByText('€36.00').first().waitFor();
    await page.getByRole('button', { name: 'Check out' }).click();
    await page.getByText('Thank you. 3 pieces for €36.00').waitFor();
    expect('the cart is empty again', (await cart(page).count()) === 0);
  },

  'the mood form answers': async (page) => {
    await page.getByLabel('Tired').check();
    await page.getByRole('button', { name: 'Tell us' }).click();
    await page.getByText('You feel tired.').waitFor();
    await accessible(page, 'the shop');
  },

  'it is a shop without the assistant, too': async () => {
    const page = await visit();
    await page.route('**/widget/**', (r) => r.abort());
    await open(page);
    await page.getByRole('button', { name: 'Add Green Bowl to cart' }).click();
    await settled('the bowl is in the cart', async () => (await inCart(page)) === '1 × Green Bowl');
    await page.context().close();
  },

  'the assistant finds a mug and puts two in the cart': async (page) => {
    let signIns = 0;
    page.on('request', (r) => { if (r.url().endsWith('/dev/token')) signIns++; });
    await open(page);
    await page.getByLabel('Search the shop').fill('bowl'); // which hides the mugs
    await ask(page, 'find a blue mug and put two in the cart',
      'I put 2 × Blue Mug into the cart. In the cart: 2 × Blue Mug (€24.00). Total €24.00.');
    expect(`two are in the cart (${await inCart(page)})`, (await inCart(page)) === '2 × Blue Mug');
    expect(`its user was signed in once (${signIns})`, signIns === 1);
    await shot(page, 'shop-assistant');
    await accessible(page, 'the shop with its assistant');
  },

  'it reads the cart, fills the mood form and takes things out again': async (page) => {
    await ask(page, 'what is in my cart?', 'In the cart: 2 × Blue Mug');
    await ask(page, 'I feel great today', 'The page says: “You feel great.');
    await ask(page, 'remove the blue mug from my cart', 'The cart is empty.');
    expect('the cart is empty', (await cart(page).count()) === 0);
  },

  'a rating waits in the chat for its user, who says yes to one and no to another': async (page) => {
    await ask(page, 'rate the blue mug 5 stars');
    await chat(page).getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await shot(page, 'shop-approval');
    await chat(page).getByRole('button', { name: 'Approve', exact: true }).click();
    await chat(page).getByText('The rating of blue mug with 5 stars was submitted.').waitFor();
    await page.getByText('5.0 of 5 stars, 1 rating').waitFor(); // the page was not loaded again
    await ask(page, 'rate the red mug 1 star');
    await chat(page).getByRole('button', { name: 'Reject' }).click();
    await chat(page).getByText('The rating of red mug with 1 stars was not submitted: you rejected it.').waitFor();
    await open(page);
    await settled('one rating is on the page', async () =>
      (await page.getByText('5.0 of 5 stars, 1 rating').count()) === 1
        && (await page.getByText('not rated yet').count()) === 11);
  },

  'words take back what waits, also one of two equal wishes': async () => {
    const page = await visit({ viewport: { width: 390, height: 844 }, locale: 'de-DE', timezoneId: 'Asia/Tokyo' });
    const card = chat(page).getByRole('region', { name: 'Approval: Rate Red Mug with 2 of 5 stars' });
    const waiting = () => page.evaluate(async () => {
      const authorization = `Bearer ${await document.querySelector('gemini-chat').getToken({ refused: false })}`;
      const res = await fetch('/api/agent/approvals/pending', { headers: { authorization } });
      return (await res.json()).approvals.filter((a) => a.preview.title === 'Rate Red Mug with 2 of 5 stars').length;
    });
    await open(page);
    await page.getByRole('button', { name: 'Open the chat: Assistant' }).click();
    await ask(page, 'rate the red mug 2 stars');
    await card.waitFor();
    await ask(page, 'actually no', 'Taken back, and nothing was done: Rate Red Mug with 2 of 5 stars.');
    expect('no card is left', (await card.count()) === 0 && (await waiting()) === 0);
    await ask(page, 'rate the red mug 2 stars');
    await card.waitFor();
    await ask(page, 'rate the red mug 2 stars');
    await settled('two equal cards wait', async () => (await waiting()) === 2);
    await ask(page, 'forget it', 'Which of these do I take back?');
    expect('both still wait', (await waiting()) === 2);
    await ask(page, 'the first', 'Taken back, and nothing was done: Rate Red Mug with 2 of 5 stars.');
    await settled('one is left', async () => (await waiting()) === 1);
    await ask(page, "don't do that", 'Taken back, and nothing was done: Rate Red Mug with 2 of 5 stars.');
    await settled('none is left', async () => (await waiting()) === 0);
    await page.context().close();
  },

  'each answer has the record beside it': async (page) => {
    await ask(page, 'put a green mug in the cart', 'On record: The page ran fill-quantity, click-add-to-cart.');
    await ask(page, 'hello', 'On record: Nothing was sent or changed in this run.');
    await ask(page, 'remove the green mug from my cart', 'The cart is empty.');
  },

  'what is asked about can be changed in its place': async (page) => {
    await ask(page, 'rate the green bowl 5 stars');
    const card = chat(page).getByRole('region', { name: 'Approval: Rate Green Bowl with 5 of 5 stars' });
    await card.waitFor();
    const edit = card.getByRole('button', { name: 'Edit before approving' });
    await settled('the card has lain', async () => (await edit.getAttribute('aria-disabled')) !== 'true');
    await edit.click();
    const stars = card.getByLabel('Stars', { exact: true });
    await stars.waitFor();
    const product = card.getByLabel('Product', { exact: true });
    expect('a product has its name', (await product.locator('option:checked').innerText()) === 'Green Bowl');
    const approve = card.getByRole('button', { name: 'Approve changes' });
    await stars.fill('9');
    await settled('the form has lain', async () => (await approve.getAttribute('aria-disabled')) !== 'true');
    await approve.click();
    await card.locator('[aria-invalid=true]').waitFor();
    expect('what is wrong stands at its field, which has the focus',
      await stars.evaluate((el) => el.ariaInvalid === 'true' && el.getRootNode().activeElement === el));
    await accessible(page, 'the shop with a card that is edited');
    await shot(page, 'shop-edit');
    await stars.fill('3');
    await product.selectOption('White Plate');
    await settled('the form has lain', async () => (await approve.getAttribute('aria-disabled')) !== 'true');
    await approve.click();
    await page.getByText('3.0 of 5 stars, 1 rating').waitFor();
    expect('the plate is rated', await page.locator('[data-agent-key=plate-white]').getByText('3.0 of 5 stars')
      .isVisible());
    await chat(page).getByText('The rating of White Plate with 3 stars was submitted, with your changes.').waitFor();
    await chat(page).getByText('Done, with your changes').first().waitFor({ state: 'attached' });
  },

  'the same wish in a new chat is another wish, whatever was said to the first': async (page) => {
    for (const [words, done] of [
      ['rate the blue mug 5 stars', 'The rating of blue mug with 5 stars was submitted.'],
      ['rate the red mug 1 star', 'The rating of red mug with 1 stars was submitted.'],
      ['rate the red mug 1 star', 'The rating of red mug with 1 stars was submitted.'],
    ]) {
      await open(page);
      await ask(page, words);
      await chat(page).getByRole('button', { name: 'Approve', exact: true }).click();
      await chat(page).getByText(done).waitFor();
    }
    await open(page);
    await settled('both are on the page', async () => (await page.getByText('5.0 of 5 stars, 1 rating').count()) === 1
      && (await page.getByText('1.0 of 5 stars, 1 rating').count()) === 1);
  },

  'what cannot be done is told in the words of the page': async (page) => {
    await ask(page, 'check out',
      'That was not done: "Check out" is disabled on the page at the moment: Put something into the cart first.');
  },

  'checking out is left to the user, and so is the gift card': async (page) => {
    await ask(page, 'put a candle in the cart', 'I put 1 × Yellow Candle into the cart.');
    await ask(page, 'fill in the gift card with 1234', 'I find nothing called “gift card”');
    await ask(page, 'check out');
    await page.locator('#checkout[data-agent-waiting]').waitFor();
    expect('nothing was ordered yet', (await page.locator('#order').innerText()) === '');
    await page.locator('#checkout').click();
    await chat(page).getByText('The page says: “Thank you. 1 piece for €8.90').waitFor();
  },

  'what the assistant does not understand is answered with what can be tried on this page': async (page) => {
    await open(page);
    await ask(page, 'email ana@example.com that it works', 'I did nothing about it.');
    const example = chat(page).getByRole('button', { name: 'put 2 blue mugs into the cart', exact: true });
    await example.waitFor();
    await accessible(page, 'the shop with examples');
    await shot(page, 'shop-examples');
    await example.click();
    const box = chat(page).getByRole('textbox', { name: 'Your message' });
    expect('it can still be changed', (await box.inputValue()) === 'put 2 blue mugs into the cart');
    await box.press('Enter');
    await chat(page).getByText('I put 2 × Blue Mug into the cart.').waitFor();
  },

  'it fits 320 pixels, in light and dark, with the assistant behind a button': async () => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await visit({ viewport: { width: 320, height: 640 }, colorScheme });
      const fits = async (what) => {
        const wide = await page.evaluate(() =>
          document.documentElement.scrollWidth - document.documentElement.clientWidth);
        expect(`${what}: nothing is wider than the screen (by ${wide} pixels)`, wide <= 0);
        await accessible(page, `the narrow shop, ${colorScheme}, ${what}`);
        await shot(page, `shop-narrow-${what.replaceAll(' ', '-')}-${colorScheme}`);
      };
      await open(page);
      await page.getByRole('button', { name: 'Add Steel Travel Mug to cart' }).click();
      await fits('as a shop');
      await page.getByRole('button', { name: 'Open the chat: Assistant' }).click();
      await ask(page, 'rate the candle 4 stars');
      await chat(page).getByRole('button', { name: 'Approve', exact: true }).waitFor();
      const [head, yes] = [chat(page).getByText('Needs your approval', { exact: true }),
        chat(page).getByRole('button', { name: 'Approve', exact: true })];
      for (const part of [head, yes]) {
        await settled('the card is in view from its head to its buttons', () => inView(part));
      }
      await fits('with a card');
      await page.keyboard.press('Escape');
      await page.getByRole('button', { name: 'Open the chat: Assistant, 1 needs your decision' }).waitFor();
      await fits('with a badge');
      await page.getByRole('button', { name: 'Open the chat: Assistant' }).click();
      await chat(page).getByRole('button', { name: 'Edit before approving' }).click();
      await chat(page).getByLabel('Stars', { exact: true }).waitFor();
      await fits('with an edit');
      await page.context().close();
    }
  },

  'on a wide screen, in light and dark': async () => {
    for (const colorScheme of ['light', 'dark']) {
      const page = await visit({ colorScheme });
      await open(page);
      await shot(page, `shop-${colorScheme}`);
      await ask(page, 'rate the blue mug 2 stars');
      await chat(page).getByRole('button', { name: 'Approve', exact: true }).waitFor();
      await accessible(page, `the shop with a card, ${colorScheme}`);
      await shot(page, `shop-card-${colorScheme}`);
      await page.context().close();
    }
  },

  'in forced colours': async () => {
    const page = await visit({ forcedColors: 'active' });
    await open(page);
    await ask(page, 'rate the blue mug 2 stars');
    await chat(page).getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await accessible(page, 'the shop in forced colours');
    await shot(page, 'shop-forced-colours');
    await page.context().close();
  },
};

await run(steps);
