// Drives Chromium for test/browser. One JSON command a line on stdin, one JSON response a line on stdout, not in the
// order of the commands: {"id":1,"do":"open","browser":1,"url":…} → {"id":1,"value":…} or {"id":1,"error":"…"}. It ends,
// and all browsers with it, when stdin ends.
import { createInterface } from 'node:readline';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

// Without the background flags Chromium calls home at each start; the machine under test is closed.
const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync', '--disable-dev-shm-usage', '--autoplay-policy=no-user-gesture-required', '--mute-audio',
  // a camera and a microphone of its own, and WebRTC to this machine where it has no network
  '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', '--allow-loopback-in-peer-connection'];
const PATIENCE = 110000; // ms for what a busy machine may take long for, less than who asked waits
const browsers = new Map();
const pages = new Map();
let count = 0; // of browsers and pages

// probe runs in the page; it reads all that a test asks about.
function probe() {
  const v = document.querySelector('video');
  const m = window.millrace || {};
  const hls = m.hls || window.hls;
  if (!v) return null;
  const ranges = (r) => Array.from({ length: r.length }, (_, i) => [r.start(i), r.end(i)]);
  const finite = (n) => (Number.isFinite(n) ? n : -1);
  const q = v.getVideoPlaybackQuality();
  const level = hls && (hls.levels[hls.currentLevel] || hls.levels[hls.loadLevel]);
  return {
    state: document.body.dataset.state || '', sentence: document.getElementById('sentence')?.textContent || '',
    time: v.currentTime, duration: finite(v.duration), paused: v.paused, ended: v.ended, readyState: v.readyState, rate: v.playbackRate,
    width: v.videoWidth, height: v.videoHeight, frames: q.totalVideoFrames, dropped: q.droppedVideoFrames,
    audioBytes: v.webkitAudioDecodedByteCount || 0, buffered: ranges(v.buffered), seekable: ranges(v.seekable), error: v.error ? v.error.message : '',
    live: Boolean(level && level.details && level.details.live), latency: hls ? finite(hls.latency) : -1, targetLatency: hls ? finite(hls.targetLatency) : -1,
    liveSync: hls ? finite(hls.liveSyncPosition ?? -1) : -1, playingDate: hls && hls.playingDate ? hls.playingDate.getTime() : 0, now: Date.now(),
    stalls: m.seen ? m.seen.stalls : 0, restarts: m.seen ? m.seen.restarts : 0, errors: m.seen ? m.seen.errors : [],
    levels: hls ? hls.levels.map((l) => l.height || 0) : [],
    loaders: hls ? Array.from(hls.networkControllers || [], (c) => String(c.state || '')).filter(Boolean) : [],
    audioTracks: hls ? hls.audioTracks.map((t) => t.name) : [], audioTrack: hls ? hls.audioTrack : -1,
    subtitleTracks: hls ? hls.subtitleTracks.map((t) => t.name) : [], subtitleTrack: hls ? hls.subtitleTrack : -1,
    textTracks: Array.from(v.textTracks, (t) => ({
      label: t.label, language: t.language, mode: t.mode,
      cues: Array.from(t.cues || [], (c) => ({ start: c.startTime, end: c.endTime, text: c.text })),
      active: Array.from(t.activeCues || [], (c) => c.text),
    })),
  };
}

// frame is one of a page's: 0 is the page itself, the others are numbered as they came.
function frame(c) {
  const found = pages.get(c.page).page.frames()[c.frame || 0];
  if (!found) throw new Error(`there is no frame ${c.frame}`);
  return found;
}

// ready is a frame whose modules have run: before that, nothing listens to what is pressed.
async function ready(c) {
  const found = frame(c);
  await found.waitForLoadState('domcontentloaded', { timeout: PATIENCE });
  return found;
}

// keep writes down what a page asks for and complains of, and gives it a number. Dialogs are closed.
function keep(page) {
  const log = { requests: [], failed: [], console: [], errors: [], dialogs: [], trace: [] };
  const began = Date.now();
  const under = new Map(); // requests without a response yet
  const trace = (r, how) => {
    log.trace.push(`${under.get(r) ?? '?'} to ${Date.now() - began} ${how}${r.url()}`);
    if (log.trace.length > 60) log.trace.shift();
    under.delete(r);
  };
  page.on('request', (r) => {
    if (!/^https?:/.test(r.url())) return;
    log.requests.push(r.url());
    under.set(r, Date.now() - began);
  });
  page.on('requestfinished', (r) => trace(r, ''));
  page.on('requestfailed', (r) => trace(r, 'failed '));
  page.on('response', (r) => { if (r.status() >= 400) log.failed.push(r.status() + ' ' + r.url()); });
  page.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') log.console.push(m.text()); });
  page.on('pageerror', (e) => log.errors.push(String(e.message)));
  page.on('dialog', (d) => { log.dialogs.push(d.message()); d.dismiss().catch(() => {}); });
  pages.set(++count, { page, log });
  return count;
}

const commands = {
  // launch opens a browser with a profile of its own, and gives it a number.
  async launch({ file, flags = [] }) {
    const opened = { profile: mkdtempSync(path.join(tmpdir(), 'millrace-chromium-')) };
    const name = ++count;
    browsers.set(name, opened);
    opened.context = await chromium.launchPersistentContext(opened.profile,
      { executablePath: file, headless: true, args: [...args, ...flags], timeout: PATIENCE });
    return name;
  },
  async quit({ browser }) {
    const { context, profile } = browsers.get(browser);
    browsers.delete(browser);
    for (const [name, { page }] of pages) if (page.context() === context) pages.delete(name);
    await context?.close();
    rmSync(profile, { recursive: true, force: true });
    return true;
  },
  async open({ browser, url, width, height, scriptless }) {
    const page = await browsers.get(browser).context.newPage();
    await page.setViewportSize({ width: width || 1280, height: height || 800 });
    if (scriptless) {
      const session = await page.context().newCDPSession(page); // for as long as the page is open
      await session.send('Emulation.setScriptExecutionDisabled', { value: true });
    }
    const name = keep(page);
    await page.goto(url, { waitUntil: 'domcontentloaded', timeout: PATIENCE });
    return name;
  },
  // beside presses what opens a tab of its own, and gives that once it is where it was to go: it begins as about:blank.
  async beside({ page, selector }) {
    let name = 0;
    const opener = await ready({ page });
    const opened = opener.page().context().waitForEvent('page',
      { timeout: PATIENCE, predicate: (p) => (name = keep(p)) > 0 });
    const [tab] = await Promise.all([opened,
      opener.click(selector, { modifiers: ['Control'], timeout: PATIENCE })]);
    await tab.setViewportSize(pages.get(page).page.viewportSize());
    await tab.waitForURL((at) => at.href !== 'about:blank', { waitUntil: 'domcontentloaded', timeout: PATIENCE });
    return name;
  },
  probe: (c) => frame(c).evaluate(probe),
  // The page's policy forbids eval, so the code runs through the debugger's own evaluation.
  eval: (c) => frame(c).evaluate(c.code),
  click: async (c) => (await ready(c)).click(c.selector, { timeout: PATIENCE }).then(() => true),
  fill: async (c) => (await ready(c)).fill(c.selector, c.label, { timeout: PATIENCE }).then(() => true),
  select: async (c) => (await ready(c)).selectOption(c.selector, { label: c.label }, { timeout: PATIENCE }),
  choose: async (c) => (await ready(c)).setInputFiles(c.selector, c.file, { timeout: PATIENCE }).then(() => true),
  // cues gives the boxes of the texts that the video element shows, in CSS pixels of the page: browsers have them in a
  // tree of their own, which only the debugger sees.
  async cues({ page }) {
    const of = pages.get(page).page;
    const session = await of.context().newCDPSession(of);
    await session.send('DOM.enable');
    const { nodes } = await session.send('DOM.getFlattenedDocument', { depth: -1, pierce: true });
    const boxes = [];
    for (const { nodeId, attributes = [] } of nodes) {
      if (!attributes.includes('cue')) continue;
      const { quads } = await session.send('DOM.getContentQuads', { nodeId }).catch(() => ({ quads: [] }));
      for (const [left, top, , , right, bottom] of quads) boxes.push({ left, top, right, bottom });
    }
    await session.detach();
    return boxes;
  },
  resize: ({ page, width, height }) => pages.get(page).page.setViewportSize({ width, height }).then(() => true),
  screenshot: ({ page, file }) => pages.get(page).page.screenshot({ path: file }).then(() => true),
  // forget empties the cache of all tabs.
  async forget({ browser }) {
    const { context } = browsers.get(browser);
    const session = await context.newCDPSession(context.pages()[0]);
    await session.send('Network.clearBrowserCache');
    await session.detach();
    return true;
  },
  frames: ({ page }) => pages.get(page).page.mainFrame().childFrames().map((f) => f.url()),
  log: ({ page }) => pages.get(page).log,
  async close({ page }) {
    await pages.get(page).page.close();
    pages.delete(page);
    return true;
  },
};

function respond(a) { process.stdout.write(JSON.stringify(a) + '\n'); }

async function end(code) {
  setTimeout(() => process.exit(code), 10000); // a browser that hangs is killed with this program
  await Promise.allSettled([...browsers.keys()].map((browser) => commands.quit({ browser })));
  process.exit(code);
}

for (const s of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(s, () => end(1));
const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const c = JSON.parse(line);
  try {
    respond({ id: c.id, value: await commands[c.do](c) });
  } catch (e) {
    respond({ id: c.id, error: String(e.message) });
  }
});
lines.on('close', () => end(0));
