// The code below a form follows what is filled in: the server writes it, and nothing is made.
const WAIT = 300; // ms after the last key
let timer = 0;
let asking = null;

async function show(details) {
  const form = document.getElementById(details.dataset.code);
  asking?.abort();
  asking = new AbortController();
  try {
    const response = await fetch(details.querySelector('[formaction]').formAction, {
      method: 'POST', body: new URLSearchParams(new FormData(form)), signal: asking.signal,
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
  clearTimeout(timer);
  timer = setTimeout(() => show(details), WAIT);
});
