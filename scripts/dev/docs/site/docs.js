// Signs the page's reader in as ana, where the local server signs its users in, so that requests can be tried.

const viewer = document.querySelector('openapi-explorer');

viewer.addEventListener('spec-loaded', async () => {
  const { signIn } = await (await fetch('/config.json')).json();
  if (signIn.kind !== 'local') return;
  const res = await fetch('/dev/token', { method: 'POST', body: JSON.stringify({ uid: 'ana' }) });
  const { token } = await res.json();
  viewer.setAuthenticationConfiguration('user', { token });
});
