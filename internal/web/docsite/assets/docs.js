// What pages of the documentation do: copy code, switch colours, show the navigation on a phone, mark where one reads,
// and search. Everything is a plain script, because browsers load no modules from a disk.
'use strict';
(() => {
  const $ = (s, in_ = document) => in_.querySelector(s);
  const make = (tag, set = {}, ...inside) => {
    const e = Object.assign(document.createElement(tag), set);
    e.append(...inside);
    return e;
  };

  // Copy buttons.
  const copied = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // no permission, or no secure page
      const t = make('textarea', { value: text, className: 'vh' });
      document.body.append(t);
      t.select();
      const ok = document.execCommand('copy');
      t.remove();
      if (!ok) throw new Error('nothing was copied');
    }
  };
  for (const block of document.querySelectorAll('.code')) {
    const button = make('button', { type: 'button', className: 'btn tiny copy', textContent: 'Copy' });
    button.addEventListener('click', async () => {
      const say = (text) => { button.textContent = text; setTimeout(() => { button.textContent = 'Copy'; }, 1500); };
      try { await copied($('code', block).textContent); say('Copied'); } catch { say('Failed'); }
    });
    block.append(button);
  }

  // Light and dark.
  const theme = $('#theme');
  theme.hidden = false;
  theme.addEventListener('click', () => {
    const root = document.documentElement;
    const now = root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
    root.dataset.theme = now === 'dark' ? 'light' : 'dark';
    try { localStorage.setItem('docs-theme', root.dataset.theme); } catch { /* for this page, then */ }
  });

  // The navigation on a phone.
  const open = $('.menu-open');
  const pages = $('#pages');
  const show = (yes) => {
    pages.classList.toggle('open', yes);
    document.body.classList.toggle('held', yes);
    open.setAttribute('aria-expanded', String(yes));
  };
  open.addEventListener('click', () => show(!pages.classList.contains('open')));
  document.addEventListener('keydown', (e) => { if (e.key === 'Escape') show(false); });
  const current = $('[aria-current=page]', pages);
  if (current) pages.scrollTop = Math.max(0, current.offsetTop - pages.clientHeight / 2);

  // The section that is being read.
  const links = new Map([...document.querySelectorAll('.here a')].map((a) => [a.hash.slice(1), a]));
  const headings = [...document.querySelectorAll('article :is(h2, h3)[id]')].filter((h) => links.has(h.id));
  let marked;
  const mark = () => {
    const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
    const above = headings.filter((h) => h.getBoundingClientRect().top < (end ? innerHeight : 120));
    const next = links.get((above.at(-1) || headings[0] || {}).id);
    if (next === marked) return;
    marked?.removeAttribute('aria-current');
    next?.setAttribute('aria-current', 'true');
    marked = next;
  };
  addEventListener('scroll', mark, { passive: true });
  mark();

  // Search. The index is a script, loaded when the field is first used.
  const find = $('.find');
  const field = $('#find');
  const list = $('#found');
  find.hidden = false;
  let loading;
  const index = () => loading ??= new Promise((done, failed) => {
    document.head.append(make('script', { src: 'assets/search-index.js', onload: () => done(window.searchIndex), onerror: failed }));
  });
  const most = 12;
  const score = (s, words) => {
    const heading = (s.heading || s.page).toLowerCase();
    const page = s.page.toLowerCase();
    const text = s.text.toLowerCase();
    let sum = 0;
    for (const w of words) {
      const start = (in_) => in_.startsWith(w) || in_.includes(' ' + w);
      const n = (start(heading) ? 20 : heading.includes(w) ? 10 : 0) + (start(page) ? 8 : 0) +
        (start(text) ? 4 : text.includes(w) ? 2 : 0);
      if (!n) return 0;
      sum += n;
    }
    return sum + (s.heading ? 0 : 6);
  };
  const excerpt = (text, words) => {
    const low = text.toLowerCase();
    const at = Math.min(...words.map((w) => low.indexOf(w)).filter((i) => i >= 0), text.length);
    let from = at < 60 || at === text.length ? 0 : text.lastIndexOf(' ', at - 30) + 1;
    const out = make('span', { className: 'excerpt' });
    const part = (from ? '… ' : '') + text.slice(from, from + 150);
    let rest = part;
    for (;;) {
      const l = rest.toLowerCase();
      let i = -1;
      let w = '';
      for (const word of words) {
        const j = l.indexOf(word);
        if (j >= 0 && (i < 0 || j < i)) { i = j; w = word; }
      }
      if (i < 0) break;
      out.append(rest.slice(0, i), make('mark', { textContent: rest.slice(i, i + w.length) }));
      rest = rest.slice(i + w.length);
    }
    out.append(rest);
    return out;
  };
  let chosen = -1;
  const choose = (i) => {
    const all = [...list.querySelectorAll('a')];
    all[chosen]?.removeAttribute('aria-selected');
    chosen = all.length ? (i + all.length) % all.length : -1;
    all[chosen]?.setAttribute('aria-selected', 'true');
    all[chosen]?.scrollIntoView({ block: 'nearest' });
    field.setAttribute('aria-activedescendant', chosen < 0 ? '' : all[chosen].id);
  };
  const close = () => { list.hidden = true; field.setAttribute('aria-expanded', 'false'); };
  const search = async () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return close();
    let all;
    try { all = await index(); } catch { all = []; }
    const typed = field.value.toLowerCase().split(/\s+/).filter(Boolean).join(' ');
    if (typed !== words.join(' ')) return undefined; // a later search shows its own
    const hits = all.map((s) => [score(s, words), s]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).slice(0, most);
    list.replaceChildren(...hits.map(([, s], i) => make('a', { href: s.at, id: 'hit-' + i, role: 'option' },
      make('span', { className: 'where', textContent: s.heading ? s.page + ' › ' + s.heading : s.page }), excerpt(s.text, words))));
    if (!hits.length) list.append(make('p', { className: 'none', textContent: 'Nothing found.' }));
    list.hidden = false;
    field.setAttribute('aria-expanded', 'true');
    chosen = -1;
    choose(0);
    return undefined;
  };
  field.addEventListener('input', search);
  field.addEventListener('focus', () => { index().catch(() => {}); if (field.value) search(); });
  field.addEventListener('keydown', (e) => {
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
      e.preventDefault();
      choose(chosen + (e.key === 'ArrowDown' ? 1 : -1));
    } else if (e.key === 'Enter') {
      list.querySelectorAll('a')[chosen]?.click();
    } else if (e.key === 'Escape') {
      field.value = '';
      close();
      field.blur();
    }
  });
  list.addEventListener('click', () => { field.value = ''; close(); });
  document.addEventListener('click', (e) => { if (!find.contains(e.target)) close(); });
  document.addEventListener('keydown', (e) => {
    if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    e.preventDefault();
    field.focus();
  });
})();
