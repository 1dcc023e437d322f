// Calls every endpoint that the client library has and the server serves, and ends with status 1 at the first surprise.
// Usage: node run.mjs BASE_URL TOKEN_ID TOKEN_SECRET
// The server handles POST /test/… by doing what an encoder would do.
import assert from "node:assert/strict";
import Mux from "@mux/mux-node";
import { furtherSteps } from "./operations.mjs";

const [baseURL, tokenId, tokenSecret] = process.argv.slice(2);
const mux = new Mux({ baseURL, tokenId, tokenSecret, maxRetries: 0 });
const { liveStreams, assets, playbackIds } = mux.video;

const steps = [];
const step = (name, run) => steps.push({ name, run });

/** refused runs call and returns the library's error, which must be of the given class and status. */
async function refused(kind, status, call) {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof kind, `${error?.constructor?.name} instead of ${kind.name}: ${error}`);
    assert.equal(error.status, status);
    assert.ok(error.error.error.messages.length > 0);
    return error.error.error;
  }
  assert.fail(`not refused with ${status}`);
}

async function encoder(key, what) {
  const response = await fetch(`${baseURL}/test/encoder/${what}?key=${key}`, { method: "POST" });
  assert.equal(response.status, 204, await response.text());
}

async function collect(pages) {
  const out = [];
  for await (const item of pages) out.push(item);
  return out;
}

step("whoami", async () => {
  const me = await mux.system.utilities.whoami();
  assert.equal(me.environment_type, "production");
  assert.ok(me.permissions.includes("video:write"));
});

step("wrong credentials", async () => {
  const stranger = new Mux({ baseURL, tokenId, tokenSecret: "wrong-secret", maxRetries: 0 });
  const error = await refused(Mux.AuthenticationError, 401, () => stranger.video.assets.list());
  assert.equal(error.type, "unauthorized");
  assert.equal(error.messages[0], "Unauthorized request");
  assert.match(error.messages[1], /millrace token create/);
});

step("live stream: create, retrieve, update", async () => {
  const made = await liveStreams.create({
    playback_policies: ["public"],
    new_asset_settings: { playback_policies: ["public"], passthrough: "recorded", meta: { title: "Recording" } },
    latency_mode: "low",
    passthrough: "first",
    meta: { title: "Talk 😀" },
  });
  assert.equal(made.status, "idle");
  assert.equal(made.latency_mode, "low");
  assert.equal(made.reconnect_window, 0);
  assert.equal(made.max_continuous_duration, 43200);
  assert.match(made.created_at, /^\d{10}$/);
  assert.equal(made.playback_ids[0].policy, "public");
  assert.deepEqual(made.new_asset_settings.playback_policies, ["public"]);
  assert.deepEqual(await liveStreams.retrieve(made.id), made);

  const changed = await liveStreams.update(made.id, { latency_mode: "standard", reconnect_window: 30, passthrough: "" });
  assert.equal(changed.reconnect_window, 30);
  assert.equal("passthrough" in changed, false);
  assert.equal("low_latency" in changed, false);
  await liveStreams.delete(made.id);
  await refused(Mux.NotFoundError, 404, () => liveStreams.retrieve(made.id));
});

step("live stream: bad requests", async () => {
  const error = await refused(Mux.BadRequestError, 400, () =>
    liveStreams.create({ latency_mode: "instant", reconnect_window: 1801, passthrough: "x".repeat(256) }));
  assert.equal(error.type, "invalid_parameters");
  for (const field of ["latency_mode", "reconnect_window", "passthrough"]) {
    assert.ok(error.messages.some((m) => m.startsWith(field)), `nothing about ${field} in ${error.messages}`);
  }
  await refused(Mux.BadRequestError, 400, () => liveStreams.create({ playback_policies: ["drm"] }));
  await refused(Mux.BadRequestError, 400, () => liveStreams.create({ reconnect_window: "60" }));
  await refused(Mux.NotFoundError, 404, () => liveStreams.complete("nobody"));
});

step("live stream: pages and filters", async () => {
  const made = [];
  for (let i = 0; i < 5; i++) made.unshift((await liveStreams.create({})).id);
  const listed = await collect(liveStreams.list({ limit: 2 }));
  assert.deepEqual(listed.map((s) => s.id), made);
  const byKey = await collect(liveStreams.list({ stream_key: listed[2].stream_key }));
  assert.deepEqual(byKey.map((s) => s.id), [made[2]]);
  assert.equal((await collect(liveStreams.list({ status: "active" }))).length, 0);
  for (const id of made) await liveStreams.delete(id);
  assert.equal((await liveStreams.list()).data.length, 0);
});

step("live stream: keys and playback IDs", async () => {
  const stream = await liveStreams.create({});
  assert.equal("playback_ids" in stream, false);
  const reset = await liveStreams.resetStreamKey(stream.id);
  assert.notEqual(reset.stream_key, stream.stream_key);
  const added = await liveStreams.createPlaybackId(stream.id, { policy: "signed" });
  assert.deepEqual(await liveStreams.retrievePlaybackId(stream.id, added.id), added);
  const found = await playbackIds.retrieve(added.id);
  assert.deepEqual(found, { id: added.id, policy: "signed", object: { type: "live_stream", id: stream.id } });
  await liveStreams.deletePlaybackId(stream.id, added.id);
  await refused(Mux.NotFoundError, 404, () => playbackIds.retrieve(added.id));
  await liveStreams.delete(stream.id);
});

step("live stream: a broadcast", async () => {
  const stream = await liveStreams.create({ new_asset_settings: { playback_policies: ["public"] } });
  await encoder(stream.stream_key, "connect");
  const active = await liveStreams.retrieve(stream.id);
  assert.equal(active.status, "active");
  assert.equal(active.active_ingest_protocol, "rtmp");
  await refused(Mux.BadRequestError, 400, () => liveStreams.update(stream.id, { latency_mode: "low" }));
  const recording = await assets.retrieve(active.active_asset_id);
  assert.equal(recording.live_stream_id, stream.id);
  assert.equal(recording.is_live, true);
  assert.deepEqual(recording.progress, { state: "live", progress: -1 });
  assert.equal(recording.ingest_type, "live_rtmp");
  assert.equal(recording.playback_ids.length, 1);
  await liveStreams.complete(stream.id);
  await encoder(stream.stream_key, "end");
  const ended = await liveStreams.retrieve(stream.id);
  assert.equal(ended.status, "idle");
  assert.deepEqual(ended.recent_asset_ids, [recording.id]);
  const [stretch] = (await assets.retrieve(recording.id)).recording_times;
  assert.deepEqual({ ...stretch, started_at: "" }, { started_at: "", duration: 10, type: "content" });
  assert.ok(Math.abs(Date.parse(stretch.started_at) - Date.now()) < 60_000);
  assert.deepEqual((await collect(assets.list({ live_stream_id: stream.id }))).map((a) => a.id), [recording.id]);
  await liveStreams.disable(stream.id);
  assert.equal((await liveStreams.retrieve(stream.id)).status, "disabled");
  await liveStreams.enable(stream.id);
  assert.equal((await liveStreams.retrieve(stream.id)).status, "idle");
  await liveStreams.delete(stream.id);
});

step("live stream: simulcast targets", async () => {
  const stream = await liveStreams.create({
    new_asset_settings: { playback_policies: ["public"] },
    simulcast_targets: [{ url: "rtmp://example.com/app", stream_key: "k1", passthrough: "first" }],
  });
  const [first] = stream.simulcast_targets;
  assert.deepEqual(first, { id: first.id, status: "idle", url: "rtmp://example.com/app", stream_key: "k1", passthrough: "first" });
  const second = await liveStreams.createSimulcastTarget(stream.id, { url: "srt://example.com:6000?streamid=a&passphrase=0123456789" });
  assert.equal(second.status, "idle");
  assert.equal("stream_key" in second, false);
  assert.deepEqual(await liveStreams.retrieveSimulcastTarget(stream.id, second.id), second);
  assert.deepEqual((await liveStreams.retrieve(stream.id)).simulcast_targets, [first, second]);
  const error = await refused(Mux.BadRequestError, 400, () => liveStreams.createSimulcastTarget(stream.id, { url: "http://example.com/app" }));
  assert.ok(error.messages[0].startsWith("url must have the form"), error.messages[0]);
  await refused(Mux.BadRequestError, 400, () => liveStreams.create({ simulcast_targets: Array(7).fill({ url: "rtmp://example.com/app" }) }));
  await encoder(stream.stream_key, "connect");
  assert.deepEqual((await liveStreams.retrieve(stream.id)).simulcast_targets.map((t) => t.status), ["starting", "starting"]);
  await refused(Mux.BadRequestError, 400, () => liveStreams.createSimulcastTarget(stream.id, { url: "rtmp://example.com/app" }));
  await refused(Mux.BadRequestError, 400, () => liveStreams.deleteSimulcastTarget(stream.id, first.id));
  await liveStreams.complete(stream.id);
  await encoder(stream.stream_key, "end");
  await liveStreams.deleteSimulcastTarget(stream.id, first.id);
  await refused(Mux.NotFoundError, 404, () => liveStreams.retrieveSimulcastTarget(stream.id, first.id));
  assert.deepEqual((await liveStreams.retrieve(stream.id)).simulcast_targets, [second]);
  await liveStreams.delete(stream.id);
});

step("asset: create, retrieve, update, delete", async () => {
  const made = await assets.create({
    inputs: [{ url: "https://example.com/film.mp4" }],
    playback_policies: ["public", "signed"],
    video_quality: "plus",
    meta: { title: "Film", creator_id: "c", external_id: "e" },
  });
  assert.equal(made.status, "preparing");
  assert.equal(made.encoding_tier, "smart");
  assert.equal(made.max_resolution_tier, "1080p");
  assert.equal(made.master_access, "none");
  assert.equal(made.playback_ids.length, 2);
  const changed = await assets.update(made.id, { passthrough: "p", meta: { title: "New" } });
  assert.equal(changed.passthrough, "p");
  assert.deepEqual(changed.meta, { title: "New" });
  const info = await assets.retrieveInputInfo(made.id);
  assert.equal(info[0].settings.url, "https://example.com/film.mp4");
  const added = await assets.createPlaybackId(made.id, { policy: "public" });
  assert.deepEqual(await assets.retrievePlaybackId(made.id, added.id), added);
  await assets.deletePlaybackId(made.id, added.id);
  await assets.delete(made.id);
  await refused(Mux.NotFoundError, 404, () => assets.retrieve(made.id));
});

step("asset: pages, by cursor too", async () => {
  for (const asset of await collect(assets.list())) await assets.delete(asset.id);
  const made = [];
  for (let i = 0; i < 5; i++) made.unshift((await assets.create({ inputs: [{ url: "https://example.com/a.mp4" }] })).id);
  assert.deepEqual((await collect(assets.list({ limit: 2 }))).map((a) => a.id), made);
  const first = await assets.list({ limit: 3 });
  const second = await assets.list({ limit: 3, cursor: first.next_cursor });
  assert.deepEqual([...first.data, ...second.data].map((a) => a.id), made);
  assert.ok(!second.next_cursor);
  for (const id of made) await assets.delete(id);
});

step("asset: tracks", async () => {
  const film = await assets.create({ inputs: [{ url: "https://example.com/film.mp4" }] });
  await refused(Mux.BadRequestError, 400, () => assets.createTrack(film.id, { url: "https://example.com/a.srt", type: "text", language_code: "en" }));
  const response = await fetch(`${baseURL}/test/ready?asset=${film.id}`, { method: "POST" });
  assert.equal(response.status, 204, await response.text());
  const ready = await assets.retrieve(film.id);
  assert.equal(ready.status, "ready");
  assert.equal(ready.aspect_ratio, "16:9");
  assert.equal(ready.resolution_tier, "720p");
  assert.deepEqual(ready.tracks.map((t) => t.type), ["video", "audio"]);
  const text = await assets.createTrack(film.id, {
    url: "https://example.com/a.srt", type: "text", text_type: "subtitles", language_code: "en-US", closed_captions: true, passthrough: "p",
  });
  assert.equal(text.status, "preparing");
  assert.equal(text.text_type, "subtitles");
  assert.equal(text.closed_captions, true);
  assert.ok(text.name.length > 0);
  const renamed = await assets.updateTrack(film.id, text.id, { name: "Captions", language_code: "en" });
  assert.equal(renamed.name, "Captions");
  const sound = await assets.createTrack(film.id, { url: "https://example.com/de.m4a", type: "audio", language_code: "de" });
  await assets.deleteTrack(film.id, text.id);
  await assets.deleteTrack(film.id, sound.id);
  await refused(Mux.BadRequestError, 400, () => assets.deleteTrack(film.id, ready.tracks[1].id));
  const error = await refused(Mux.BadRequestError, 400, () => assets.createTrack(film.id, { type: "text" }));
  assert.ok(error.messages.length >= 2, error.messages.join("; "));
});

step("asset: files to download", async () => {
  const film = await assets.create({
    inputs: [{ url: "https://example.com/film.mp4" }], static_renditions: [{ resolution: "highest", passthrough: "p" }], master_access: "temporary",
  });
  const [highest] = film.static_renditions.files;
  assert.equal(highest.name, "highest.mp4");
  assert.equal(highest.ext, "mp4");
  assert.equal(highest.type, "standard");
  assert.equal(highest.status, "preparing");
  assert.equal(highest.passthrough, "p");
  assert.equal(film.master_access, "temporary");
  assert.equal(film.master.status, "preparing");
  assert.ok(!film.master.url);
  await refused(Mux.BadRequestError, 400, () => assets.createStaticRendition(film.id, { resolution: "720p" }));
  await refused(Mux.BadRequestError, 400, () => assets.updateMP4Support(film.id, { mp4_support: "standard" }));
  const sound = await assets.createStaticRendition(film.id, { resolution: "audio-only" });
  assert.equal(sound.name, "audio.m4a");
  for (const f of [highest, sound]) await assets.deleteStaticRendition(film.id, f.id);
  await refused(Mux.NotFoundError, 404, () => assets.deleteStaticRendition(film.id, sound.id));
  assert.equal((await assets.retrieve(film.id)).static_renditions, undefined);
  const old = await assets.updateMP4Support(film.id, { mp4_support: "capped-1080p" });
  assert.equal(old.mp4_support, "capped-1080p");
  assert.equal(old.static_renditions.status, "preparing");
  assert.equal((await assets.updateMP4Support(film.id, { mp4_support: "none" })).static_renditions.status, "disabled");
  const closed = await assets.updateMasterAccess(film.id, { master_access: "none" });
  assert.equal(closed.master_access, "none");
  assert.equal(closed.master, undefined);
  await assets.delete(film.id);

  const stream = await mux.video.liveStreams.create({ new_asset_settings: { playback_policies: ["public"] } });
  const set = await mux.video.liveStreams.updateNewAssetSettingsStaticRenditions(stream.id, { static_renditions: [{ resolution: "highest" }, { resolution: "audio-only" }] });
  assert.deepEqual(set.new_asset_settings.static_renditions.map((r) => r.resolution), ["highest", "audio-only"]);
  await mux.video.liveStreams.deleteNewAssetSettingsStaticRenditions(stream.id);
  const captioned = await mux.video.liveStreams.updateEmbeddedSubtitles(stream.id, { embedded_subtitles: [{ name: "Captions", language_code: "en", language_channel: "cc1", passthrough: "p" }] });
  assert.deepEqual(captioned.embedded_subtitles, [{ name: "Captions", language_code: "en", language_channel: "cc1", passthrough: "p" }]);
  assert.equal((await mux.video.liveStreams.retrieve(stream.id)).new_asset_settings.static_renditions, undefined);
  await mux.video.liveStreams.delete(stream.id);
});

step("transcription vocabularies and generated subtitles", async () => {
  const words = mux.video.transcriptionVocabularies;
  const made = await words.create({ name: "Places", phrases: ["Quellimar", "Tabrinko Bay"], passthrough: "p" });
  assert.deepEqual(made.phrases, ["Quellimar", "Tabrinko Bay"]);
  const changed = await words.update(made.id, { phrases: ["Zorvex"] });
  assert.deepEqual([changed.name, changed.phrases, changed.passthrough], ["Places", ["Zorvex"], "p"]);
  assert.deepEqual((await words.retrieve(made.id)).phrases, ["Zorvex"]);
  assert.deepEqual((await collect(words.list({ limit: 1 }))).map((v) => v.id), [made.id]);
  await refused(Mux.BadRequestError, 400, () => words.update(made.id, { name: "no phrases" }));
  await refused(Mux.BadRequestError, 400, () => words.create({ phrases: ["x".repeat(33)] }));
  const subtitles = [{ name: "English", language_code: "en-US", transcription_vocabulary_ids: [made.id] }];
  const stream = await mux.video.liveStreams.create({ generated_subtitles: subtitles, latency_mode: "low" });
  assert.equal(stream.generated_subtitles[0].language_code, "en");
  const set = await mux.video.liveStreams.updateGeneratedSubtitles(stream.id, { generated_subtitles: [{ language_code: "fr" }] });
  assert.deepEqual(set.generated_subtitles.map((g) => [g.name, g.language_code]), [["French", "fr"]]);
  assert.equal((await mux.video.liveStreams.updateGeneratedSubtitles(stream.id, { generated_subtitles: [] })).generated_subtitles, undefined);
  await mux.video.liveStreams.delete(stream.id);
  await words.delete(made.id);
  await refused(Mux.NotFoundError, 404, () => words.retrieve(made.id));
});

for (const [name, run] of furtherSteps({ Mux, mux, baseURL, tokenId, tokenSecret, refused, collect })) step(name, run);

for (const { name, run } of steps) {
  try {
    await run();
  } catch (error) {
    console.error(`FAIL ${name}\n${error.stack}`);
    process.exit(1);
  }
  console.log(`ok ${name}`);
}
