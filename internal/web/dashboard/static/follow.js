// Keeps a page as the server has it: an event has parts of the page, as they are now, and what of them is not as it was
// is put in its place. It is the last script of a page: when it says that the page is kept up to date, the others act.
const box = document.querySelector('[data-follow]');
const say = document.getElementById('link-state');
const LOST = 5000; // ms after which it is said that the page is not kept up to date
const AGAIN = 3000; // ms until the next attempt after a refusal
const HIDDEN = 60000; // ms after which a page that nobody sees lets go
const MOST = 50; // uploads of this page that the server takes

const was = new Map([...document.querySelectorAll('[data-part]')].map((el) => [el.id, look(el)]));
let source = null;
let lost = 0;
let hides = 0;
let over = false;
let leaving = false; // a form was sent, whose response is another page
let uploads = []; // IDs of those that this page makes: what becomes of them is shown at once

// look is what a part shows, without the air time, which goes on here.
function look(el) {
  const copy = el.cloneNode(true);
  for (const up of copy.querySelectorAll('[data-up]')) up.textContent = '';
  return copy.outerHTML;
}

function put(html) {
  const page = new DOMParser().parseFromString(html, 'text/html');
  const added = [];
  for (const part of page.querySelectorAll('[data-part]')) {
    const now = document.getElementById(part.id);
    const shown = look(part);
    if (!now && part.matches('tr')) added.unshift(part);
    else if (!now || was.get(part.id) === shown) continue;
    was.set(part.id, shown);
    if (!now) continue;
    if (part.dataset.key && part.dataset.key === now.dataset.key) continue; // the player plays on
    const focused = now.contains(document.activeElement) ? document.activeElement.id : '';
    const open = [...now.querySelectorAll('details[id][open]')].map((el) => el.id);
    if (part.dataset.key || now.dataset.key) now.replaceWith(document.importNode(part, true));
    else change(now, part);
    for (const id of open) document.getElementById(id)?.setAttribute('open', '');
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
  }
  if (added.length) add(added);
  document.dispatchEvent(new Event('millrace:parts'));
}

// add puts rows into the list, the oldest first: each before those that were made before it. What is read stays where it
// is on the screen.
function add(rows) {
  const body = box.querySelector('tbody');
  const stays = read(body);
  const top = stays?.getBoundingClientRect().top;
  for (const row of rows) {
    const older = [...body.rows].find((other) => made(other) && made(other) <= made(row));
    body.insertBefore(document.importNode(row, true), older ?? null);
  }
  body.closest('.tblw').hidden = false;
  box.querySelector('.empty')?.remove();
  if (stays) scrollBy({ top: stays.getBoundingClientRect().top - top, behavior: 'instant' });
}

// made is when what a row is about was made, in a form that sorts; empty: a row that says that it is deleted.
function made(row) { return row.querySelector('td:last-child time')?.dateTime ?? ''; }

// read is the row that somebody looks at: under the pointer, with the focus, or the first that is seen of a list whose
// head is out of sight; null: the head is seen, and what is added appears below it.
function read(body) {
  const rows = [...body.rows];
  const sight = document.querySelector('.top').getBoundingClientRect().bottom;
  const below = (edge) => (row) => row.getBoundingClientRect()[edge] > sight;
  if (rows.length && !below('top')(rows[0])) return rows.find(below('bottom')) ?? null;
  return rows.find((row) => row.matches(':hover, :focus-within')) ?? null;
}

// change makes an element what another one is, and leaves alone what is the same in both: what has the focus or is
// selected keeps it, pictures do not flicker, and open menus stay open.
function change(now, then) {
  if (now.nodeName !== then.nodeName || now.id !== then.id) {
    now.replaceWith(document.importNode(then, true));
    return;
  }
  if (now.nodeType !== Node.ELEMENT_NODE) {
    if (now.data !== then.data) now.data = then.data;
    return;
  }
  if (then.dateTime && now.dateTime === then.dateTime) return; // it is shown in the browser's zone
  if (then.dataset.newest && now.dataset.newest === then.dataset.newest) return; // list.js has a newer picture
  const runs = now.dataset.up && now.dataset.up === then.dataset.up; // the air time goes on here
  for (const { name } of [...now.attributes]) if (!then.hasAttribute(name) && name !== 'open') now.removeAttribute(name);
  for (const { name, value } of then.attributes) if (now.getAttribute(name) !== value) now.setAttribute(name, value);
  if (runs) return;
  const old = [...now.childNodes];
  const next = [...then.childNodes];
  next.forEach((node, i) => (old[i] ? change(old[i], node) : now.append(document.importNode(node, true))));
  for (const node of old.slice(next.length)) node.remove();
}

function tell(kind, text) {
  say.hidden = false;
  say.className = 'state ' + kind;
  if (say.textContent !== text) say.textContent = text;
}

function follow() {
  source?.close();
  source = new EventSource(box.dataset.follow + uploads.map((id) => '&upload=' + encodeURIComponent(id)).join(''));
  source.addEventListener('open', () => { clearTimeout(lost); lost = 0; tell('ok', 'Kept up to date'); });
  source.addEventListener('page', (e) => put(e.data));
  source.addEventListener('over', (e) => {
    over = true;
    source.close();
    if (e.data === 'deleted' && leaving) return;
    if (e.data === 'deleted') location.href = box.dataset.list;
    else location.reload(); // it leads to the sign-in
  });
  source.addEventListener('error', () => {
    if (over) return;
    const since = new Date().toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
    lost ||= setTimeout(() => tell('warn', 'Not live since ' + since + ', trying again'), LOST);
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => { if (!over && source.readyState === EventSource.CLOSED) follow(); }, AGAIN);
  });
}

document.addEventListener('visibilitychange', () => {
  clearTimeout(hides);
  if (document.hidden) hides = setTimeout(() => source.close(), HIDDEN);
  else if (!over && source.readyState === EventSource.CLOSED) follow();
});
document.addEventListener('millrace:upload', ({ detail }) => {
  if (uploads.includes(detail)) return;
  uploads = [...uploads, detail].slice(-MOST);
  if (!over && source.readyState !== EventSource.CLOSED) follow();
});
document.addEventListener('submit', (e) => { leaving = !e.defaultPrevented; });
addEventListener('pagehide', () => source?.close());
addEventListener('pageshow', (e) => { if (e.persisted && !over) follow(); });
follow();
