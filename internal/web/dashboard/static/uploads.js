// Files that are chosen, or dropped anywhere on the page, are uploaded in pieces, some at a time. An upload can be
// paused, goes on by itself after a lost connection, and in a new page once the same file is chosen again.
const PATH = '/dashboard/uploads';
const PIECE = 8 << 20; // bytes
const AT_ONCE = 3;
const LONGEST_PAUSE = 30000; // ms before the service is asked again
const SEEN = 60000; // ms for which an upload of another tab counts as moving
const TAB = sessionStorage.uploads ||= String(Math.random());
const $ = (q, at = document) => at.querySelector(q);
const uploads = [];

// notes are the uploads that have begun, by their file, for pages that come later.
const notes = {
  all() {
    try {
      return JSON.parse(localStorage.getItem('uploads') || '{}');
    } catch {
      return {};
    }
  },
  key: (file) => [file.name, file.size, file.lastModified].join('/'),
  put(key, note) { localStorage.setItem('uploads', JSON.stringify({ ...this.all(), [key]: note })); },
  drop(key) {
    const rest = this.all();
    delete rest[key];
    localStorage.setItem('uploads', JSON.stringify(rest));
  },
};

// tell asks the dashboard about uploads; what it refuses is an Error whose message says why.
async function tell(path, options) {
  let response;
  try {
    response = await fetch(PATH + path, { headers: { Accept: 'application/json' }, ...options });
  } catch {
    throw new Error('The service cannot be reached.');
  }
  if (response.status === 401) throw new Error('Sign in again, then choose the file once more.');
  const body = await response.json().catch(() => null);
  if (!response.ok || !body) throw new Error(body?.error || 'The service did not take it (' + response.status + ').');
  return body;
}

// quit cancels an upload. Where that fails it ends by itself within a day.
function quit(id) { tell('/' + id + '/cancel', { method: 'POST' }).catch(() => {}); }

const LOOKS = { moving: 'work', failed: 'fault', done: 'ready' };

// Upload is one file on its way, and its row.
class Upload {
  state = 'waiting';

  constructor(file) {
    this.file = file;
    this.key = notes.key(file);
    this.row = row(file.name);
    $('[data-do=pause]', this.row).addEventListener('click', () => {
      if (this.state === 'paused' || this.state === 'failed') this.resume();
      else this.pause();
    });
    $('[data-do=cancel]', this.row).addEventListener('click', () => this.cancel());
    this.#say('waiting', 'Waits for its turn');
  }

  #say(state, text) {
    this.state = state;
    const said = $('.state', this.row);
    said.className = 'state ' + (LOOKS[state] || 'off');
    if (said.textContent !== text) said.textContent = text;
    const pause = $('[data-do=pause]', this.row);
    pause.hidden = state === 'done';
    pause.textContent = { paused: 'Go on', failed: 'Try again' }[state] || 'Pause';
    $('[data-do=cancel]', this.row).textContent = state === 'done' ? 'Hide' : 'Cancel';
  }

  #sent(bytes) {
    $('progress', this.row).value = this.file.size ? bytes / this.file.size : 0;
    $('.bytes', this.row).textContent = size(bytes) + ' of ' + size(this.file.size);
  }

  async run() {
    this.#say('moving', 'Uploading');
    this.stop = new AbortController();
    const { signal } = this.stop;
    try {
      if (!this.file.size) throw new Error('The file is empty.');
      const at = await this.#open();
      await this.#send(at, signal);
      notes.drop(this.key);
      const made = await tell('/' + this.id);
      this.#sent(this.file.size);
      this.#say('done', 'Uploaded');
      link(this.row, made.asset);
    } catch (e) {
      if (!signal.aborted) this.#say('failed', e.message);
    }
    next();
  }

  // open goes on with the upload that was begun with this file, or begins one. It gives how many bytes have come;
  // null: that is to be asked.
  async #open() {
    const begun = notes.all()[this.key];
    let made = begun && await tell('/' + begun.id).catch(() => null);
    const known = made?.url || made?.asset;
    if (!known) {
      made = await tell('', { method: 'POST', body: new URLSearchParams({ name: this.file.name }) });
    }
    this.id = made.id;
    this.url = made.url;
    document.dispatchEvent(new CustomEvent('millrace:upload', { detail: this.id })); // follow.js shows what becomes of it
    if (this.state === 'cancelled') quit(this.id);
    else this.#note();
    return known ? null : 0;
  }

  #note() { notes.put(this.key, { id: this.id, name: this.file.name, tab: TAB, seen: Date.now() }); }

  // send sends what is missing, piece by piece; after a failure it asks first what has come.
  async #send(at, signal) {
    for (let pause = 1000; this.url;) {
      signal.throwIfAborted();
      const response = await put(this.url, this.file, at, (n) => this.#sent(n), signal);
      this.#note();
      if (response.status === 200) return;
      if (response.status === 308 || response.status === 416 && at !== response.kept) {
        at = response.kept;
        pause = 1000;
        this.#sent(at);
        this.#say('moving', 'Uploading');
      } else if ([0, 502, 503, 504].includes(response.status)) {
        at = null;
        this.#say('moving', 'The connection is gone. Trying again…');
        await rest(pause, signal);
        pause = Math.min(2 * pause, LONGEST_PAUSE);
      } else {
        notes.drop(this.key);
        throw new Error(response.why || 'The service did not take it (' + response.status + ').');
      }
    }
  }

  pause() {
    this.stop?.abort();
    this.#say('paused', 'Paused');
  }

  resume() {
    this.#say('waiting', 'Waits for its turn');
    next();
  }

  cancel() {
    const done = this.state === 'done';
    this.pause();
    this.state = 'cancelled';
    uploads.splice(uploads.indexOf(this), 1);
    this.row.remove();
    shown();
    notes.drop(this.key);
    if (this.id && !done) quit(this.id);
    next();
  }
}

// put sends a piece of a file, or without a place asks what has come. Its status is 0 without a response.
function put(url, file, at, progress, signal) {
  return new Promise((resolve, reject) => {
    const end = at === null ? 0 : Math.min(at + PIECE, file.size);
    const request = new XMLHttpRequest();
    request.open('PUT', url);
    request.setRequestHeader('Content-Range', 'bytes ' + (at === null ? '*' : at + '-' + (end - 1)) + '/' + file.size);
    request.upload.addEventListener('progress', (e) => { if (at !== null) progress(at + e.loaded); });
    request.addEventListener('loadend', () => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const range = request.getResponseHeader('Range')?.match(/^bytes=0-(\d+)$/);
      resolve({ status: request.status, kept: range ? Number(range[1]) + 1 : 0, why: why(request.responseText) });
    });
    signal.addEventListener('abort', () => request.abort());
    request.send(at === null ? null : file.slice(at, end));
  });
}

// why reads the sentence in an error of the service.
function why(text) {
  try {
    return JSON.parse(text).error.messages.join(' ');
  } catch {
    return '';
  }
}

function rest(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

// next begins uploads that wait, and has the page ask before it is left while one moves.
function next() {
  for (const u of uploads) {
    if (uploads.filter((v) => v.state === 'moving').length >= AT_ONCE) break;
    if (u.state === 'waiting') u.run();
  }
}

function add(files) {
  for (const file of files) {
    if (uploads.some((u) => u.key === notes.key(file) && u.state !== 'failed')) continue;
    uploads.push(new Upload(file));
  }
  left();
  next();
}

function row(name) {
  const made = document.importNode($('#upload-row').content, true).firstElementChild;
  $('.name', made).textContent = name;
  $('progress', made).setAttribute('aria-label', name);
  $('#uploads ul').append(made);
  shown();
  return made;
}

function shown() { $('#uploads').hidden = !$('#uploads li'); }

function link(at, address) {
  const name = $('.name', at);
  const to = Object.assign(document.createElement('a'), { className: 'name', href: address });
  to.textContent = name.textContent;
  name.replaceWith(to);
}

function size(bytes) {
  if (bytes < 1e6) return Math.round(bytes / 1e3) + ' kB';
  return bytes < 1e9 ? (bytes / 1e6).toFixed(1) + ' MB' : (bytes / 1e9).toFixed(2) + ' GB';
}

// left lists the uploads that an earlier page has left behind.
function left() {
  document.querySelectorAll('#uploads [data-left]').forEach((el) => el.remove());
  for (const [key, { id, name, tab, seen }] of Object.entries(notes.all())) {
    if (Date.now() - seen > 864e5) notes.drop(key); // it has timed out
    else if (tab === TAB || Date.now() - seen > SEEN) stopped(key, id, name);
  }
  shown();
}

function stopped(key, id, name) {
  if (uploads.some((u) => u.key === key)) return;
  const made = row(name);
  made.dataset.left = '';
  $('.state', made).textContent = 'Stopped. Choose the same file to go on.';
  $('[data-do=pause]', made).hidden = true;
  $('progress', made).hidden = true;
  $('[data-do=cancel]', made).addEventListener('click', () => {
    notes.drop(key);
    quit(id);
    left();
  });
}

function dropped(e) {
  const items = [...e.dataTransfer.items].filter((i) => i.kind === 'file' && !i.webkitGetAsEntry?.()?.isDirectory);
  return items.map((i) => i.getAsFile());
}

const carries = (e) => e.dataTransfer?.types.includes('Files');
document.addEventListener('dragover', (e) => {
  if (!carries(e)) return;
  e.preventDefault();
  document.body.dataset.drop = '';
});
document.addEventListener('dragleave', (e) => { if (!e.relatedTarget) delete document.body.dataset.drop; });
document.addEventListener('drop', (e) => {
  if (!carries(e)) return;
  e.preventDefault();
  delete document.body.dataset.drop;
  add(dropped(e));
});
document.addEventListener('click', (e) => { if (e.target.closest('[data-files]')) $('#files').click(); });
$('#files').addEventListener('change', () => {
  add([...$('#files').files]);
  $('#files').value = '';
});
addEventListener('beforeunload', (e) => { if (uploads.some((u) => u.state === 'moving')) e.preventDefault(); });
left();
