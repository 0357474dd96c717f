// The chat on pages: the shop, with the chat beside it, and behind its button.

import { visit } from '../driver.mjs';
import { look } from './look.mjs';

const { BASE_URL } = process.env;
const chat = (page) => page.locator('gemini-chat');

export const elsewhere = {
  'the shop, and its chat beside it and behind its button': async () => {
    const page = await visit({ hasTouch: true });
    await page.goto(`${BASE_URL}/shop`);
    await page.getByRole('heading', { name: 'Mugs and what goes with them' }).waitFor();
    await look(page, 'shop');
    await chat(page).getByRole('textbox', { name: 'Your message' }).fill('rate the blue mug 5 stars');
    await chat(page).getByRole('textbox', { name: 'Your message' }).press('Enter');
    await chat(page).getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await look(page, 'widget');
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByRole('button', { name: /^Open the chat/ }).click();
    await chat(page).getByRole('button', { name: 'Approve', exact: true }).waitFor();
    await look(page, 'launcher');
    await page.context().close();
  },
};
