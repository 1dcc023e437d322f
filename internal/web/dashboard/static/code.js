// The code below a form follows what is filled in: the server writes it, and nothing is made.
const WAIT = 300; // ms after the last key
const timers = new WeakMap(); // by the element with the code; a page may have several
const asking = new WeakMap();

async function show(details) {
  const form = document.getElementById(details.dataset.code);
  asking.get(details)?.abort();
  const stop = new AbortController();
  asking.set(details, stop);
  try {
    const response = await fetch(details.querySelector('[formaction]').formAction, {
      method: 'POST', body: new URLSearchParams(new FormData(form)), signal: stop.signal,
    });
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const samples = page.querySelector(`[data-code="${form.id}"] [data-samples]`);
    if (samples) details.querySelector('[data-samples]').replaceWith(document.importNode(samples, true));
  } catch { /* the next key asks again */ }
}

document.addEventListener('toggle', (e) => { if (e.target.matches('[data-code][open]')) show(e.target); }, true);
document.addEventListener('input', (e) => {
  const details = e.target.form?.id && document.querySelector(`[data-code="${e.target.form.id}"][open]`);
  if (!details) return;
  clearTimeout(timers.get(details));
  timers.set(details, setTimeout(() => show(details), WAIT));
});
