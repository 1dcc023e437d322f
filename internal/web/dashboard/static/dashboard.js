// What every page of the dashboard shares: copy, secrets, dialogs, menus, tabs, theme, and times in the browser's own zone. Pages are
// whole without it; everything listens at the document, so that parts that are put in later work too.
const $ = (q, at = document) => at.querySelector(q);
const $$ = (q, at = document) => [...at.querySelectorAll(q)];
const SHOWN = 30000; // ms that a secret stays on the screen
const RESEND = 3000; // ms after which a form is sent once more
const UNDO = 8000; // ms that something can be undone
const TICK = 1400; // ms that a button says that it has copied

function toast(text) {
  const el = Object.assign(document.createElement('div'), { className: 'toast', textContent: text });
  $('.toasts').append(el);
  while ($('.toasts').children.length > 3) $('.toasts').firstChild.remove();
  setTimeout(() => el.remove(), 4000);
}

// What offers to undo goes after a time, in which nobody points at it or has the focus in it.
for (const el of $$('[data-fades]')) {
  const go = () => (el.matches(':hover, :focus-within') ? setTimeout(go, UNDO / 4) : el.remove());
  setTimeout(go, UNDO);
}

// secrets fetches key and passphrase of the stream whose form this is in. They are on no page until they are asked for.
async function secrets(form) {
  const response = await fetch(form.action.split('#')[0], { method: 'POST', headers: { Accept: 'application/json' } });
  if (!response.ok) throw new Error(response.status === 401 ? 'Sign in again.' : 'The key could not be read (' + response.status + ').');
  return response.json();
}

async function copy(button) {
  let text = button.dataset.copy;
  try {
    if ('secret' in button.dataset) {
      const s = await secrets(button.closest('form[data-keys]'));
      text = text.replaceAll('$STREAM_KEY', s.key).replaceAll('$PASSPHRASE', s.passphrase);
    }
    await write(text);
  } catch (e) {
    toast(e.message);
    return;
  }
  button.dataset.done = '';
  toast(button.dataset.what + ' copied.');
  setTimeout(() => delete button.dataset.done, TICK);
}

// write puts a text on the clipboard, also over plain HTTP, where browsers offer the old way alone.
async function write(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = Object.assign(document.createElement('textarea'), { value: text, className: 'vh' });
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (!done) throw new Error('This browser does not let pages copy over plain HTTP. Copy it by hand.');
}

const masks = new Map();

async function show(button) {
  const form = button.closest('form');
  const open = button.getAttribute('aria-pressed') !== 'true';
  let s = {};
  try {
    if (open) s = await secrets(form);
  } catch (e) {
    toast(e.message);
    return;
  }
  for (const code of $$('[data-shown]', form)) {
    if (!masks.has(code)) masks.set(code, code.textContent);
    code.textContent = open ? s[code.dataset.shown] : masks.get(code);
  }
  for (const b of $$('[data-show]', form)) {
    b.setAttribute('aria-pressed', String(open));
    $('span', b).textContent = open ? 'Hide' : 'Show';
  }
  clearTimeout(form.hides);
  if (open) form.hides = setTimeout(() => button.getAttribute('aria-pressed') === 'true' && show(button), SHOWN);
}

// ask opens the page that asks before an act as a dialog.
async function ask(link) {
  let form = null;
  try {
    const page = new DOMParser().parseFromString(await (await fetch(link.href)).text(), 'text/html');
    form = $('form[data-ask]', page);
  } catch { /* the page itself says what is wrong */ }
  if (!form) {
    location.href = link.href;
    return;
  }
  const dialog = document.createElement('dialog');
  form.classList.remove('alone');
  dialog.setAttribute('aria-labelledby', 'ask');
  dialog.append(document.importNode(form, true));
  document.body.append(dialog);
  dialog.addEventListener('close', () => { dialog.remove(); link.focus(); });
  dialog.showModal();
  $('[data-close]', dialog).focus();
}

document.addEventListener('click', (e) => {
  const on = (q) => e.target.closest(q);
  const inside = on('details.me');
  for (const d of $$('details.me[open]')) if (d !== inside) d.open = false;
  if (on('[data-copy]')) copy(on('[data-copy]'));
  else if (on('button[data-show]')) { e.preventDefault(); show(on('button[data-show]')); }
  else if (on('dialog [data-close]')) { e.preventDefault(); on('dialog').close(); }
  else if (on('a[data-ask]') && !e.ctrlKey && !e.metaKey && !e.shiftKey) {
    e.preventDefault();
    if (inside) inside.open = false;
    ask(on('a[data-ask]'));
  } else if (e.target.matches('dialog')) e.target.close();
});

document.addEventListener('keydown', (e) => {
  const open = $('details.me[open]');
  if (e.key === 'Escape' && open) { open.open = false; $('summary', open).focus(); }
  if (e.key === '/' && !e.target.closest('input, select, textarea') && $('input[type=search]')) {
    e.preventDefault();
    $('input[type=search]').focus();
  }
});

// A filter takes effect at once.
document.addEventListener('change', (e) => { if (e.target.matches('[data-filter] input[type=radio]')) e.target.form.requestSubmit(); });

document.addEventListener('submit', (e) => {
  if (!e.target.matches('[data-themes]')) return;
  e.preventDefault();
  const root = document.documentElement;
  const dark = (root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const to = dark ? 'light' : 'dark';
  root.dataset.theme = to;
  fetch(e.target.action, { method: 'POST', body: new URLSearchParams({ theme: to }), redirect: 'manual' }).catch(() => {});
});

// Who signs in comes back to the part of the page that the address has named.
for (const form of $$('.door form')) form.action += location.hash;

// A form that makes something is sent once, however often its button is pressed. The server sees to it as well, but for
// what reaches another node of a fleet.
document.addEventListener('submit', (e) => {
  const form = e.target;
  if (!form.elements.press || e.submitter?.hasAttribute('formaction')) return;
  if ('sent' in form.dataset) e.preventDefault();
  form.dataset.sent = '';
  setTimeout(() => delete form.dataset.sent, RESEND);
});

// tabs makes one of what stands below one another (WAI-ARIA APG).
function tabs(box) {
  const panels = $$('[data-tab]', box);
  const list = Object.assign(document.createElement('div'), { className: 'tabs' });
  list.setAttribute('role', 'tablist');
  list.setAttribute('aria-label', box.getAttribute('aria-label'));
  box.removeAttribute('aria-label');
  const made = panels.map((panel, i) => {
    const name = panel.dataset.tab;
    const tab = Object.assign(document.createElement('button'), { type: 'button', id: 'tab-' + name, textContent: name });
    tab.setAttribute('role', 'tab');
    tab.setAttribute('aria-controls', 'panel-' + name);
    panel.id = 'panel-' + name;
    panel.setAttribute('role', 'tabpanel');
    panel.setAttribute('aria-labelledby', tab.id);
    $('h3', panel).hidden = true;
    tab.addEventListener('click', () => pick(i));
    return tab;
  });
  const pick = (n) => made.forEach((tab, i) => {
    tab.setAttribute('aria-selected', String(i === n));
    tab.tabIndex = i === n ? 0 : -1;
    panels[i].hidden = i !== n;
  });
  list.addEventListener('keydown', (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    const n = (made.indexOf(e.target) + step + made.length) % made.length;
    pick(n);
    made[n].focus();
  });
  list.append(...made);
  box.prepend(list);
  pick(0);
}

// times shows them in the browser's zone: today as clock, this year as day, else as date.
function times(at = document) {
  for (const el of $$('time[datetime]', at)) {
    const t = new Date(el.dateTime);
    const now = new Date();
    const today = t.toDateString() === now.toDateString();
    const o = today ? { hour: '2-digit', minute: '2-digit' } : { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' };
    if (t.getFullYear() !== now.getFullYear()) o.year = 'numeric';
    el.title = t.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' });
    el.textContent = (today ? 'today ' : '') + t.toLocaleString('en-GB', { ...o, hour12: false });
  }
}

function clock(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n) => String(n).padStart(2, '0');
  return Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) + ':' + two(s % 60);
}

setInterval(() => {
  for (const el of $$('[data-up]')) el.textContent = clock((Date.now() - new Date(el.dataset.up)) / 1000);
}, 1000);

// The local navigation marks the section that is read.
function spy() {
  const links = $$('.local a[href^="#"]');
  if (!links.length) return;
  const mark = () => {
    const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 4;
    const read = links.map((a) => $(a.hash)).filter((s) => s && s.getBoundingClientRect().top < 160);
    const now = end && scrollY > 0 ? links.at(-1).hash : '#' + (read.at(-1)?.id || links[0].hash.slice(1));
    for (const a of links) {
      if (a.hash === now) a.setAttribute('aria-current', 'true');
      else a.removeAttribute('aria-current');
    }
  };
  addEventListener('scroll', mark, { passive: true });
  mark();
}

const zone = $('[data-zone]');
if (zone) zone.textContent = 'Times in ' + (Intl.DateTimeFormat().resolvedOptions().timeZone || 'your zone').replaceAll('_', ' ');
document.addEventListener('millrace:parts', () => times());
queueMicrotask(() => setTimeout(() => { // follow.js looks at the parts before they are changed
  times();
  $$('[data-tabs]').forEach(tabs);
  spy();
}));
