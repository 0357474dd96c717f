// The mood form: it answers on the page, and sends nothing.

const answers = {
  great: 'Lovely. Keep it up!',
  fine: 'Good to hear.',
  tired: 'Tea helps, mostly.',
  sad: 'We hope that tomorrow is kinder.',
};
const form = /** @type {HTMLFormElement} */ (document.getElementById('mood-form'));

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const mood = String(new FormData(form).get('mood'));
  document.getElementById('mood-answer').textContent = `You feel ${mood}. ${answers[mood]}`;
  form.reset();
});
