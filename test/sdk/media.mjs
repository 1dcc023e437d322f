// Uploads a file through the client library, plays what comes of it, and reads what was delivered. Ends with status 1 at the first surprise.
// Usage: node media.mjs BASE_URL TOKEN_ID TOKEN_SECRET FILE, an MP4 of 9 seconds, 640x360, with sound.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import Mux from "@mux/mux-node";

const [baseURL, tokenId, tokenSecret, file] = process.argv.slice(2);
const mux = new Mux({ baseURL, tokenId, tokenSecret });
const { assets, uploads, playback, deliveryUsage } = mux.video;
const seconds = 9;

/** until asks again and again until what comes is as wanted. */
async function until(what, ask, ok) {
  for (let i = 0; ; i++) {
    const got = await ask();
    if (ok(got)) return got;
    if (i === 600) assert.fail(`${what}: ${JSON.stringify(got)}`);
    await pause(100);
  }
}

async function refused(kind, status, call) {
  const error = await call().then(() => assert.fail(`not refused with ${status}`), (e) => e);
  assert.ok(error instanceof kind && error.status === status, String(error));
  return error.error.error.messages.join();
}

const upload = await uploads.create({
  cors_origin: "*", new_asset_settings: { playback_policies: ["public"], meta: { title: "Holiday" }, static_renditions: [{ resolution: "highest" }] },
});
const sent = await fetch(upload.url, { method: "PUT", body: await readFile(file) });
assert.ok(sent.ok, `${sent.status} ${await sent.text()}`);
const { asset_id: id } = await until("the upload", () => uploads.retrieve(upload.id), (u) => u.status === "asset_created" || u.status === "errored");
const asset = await until("the asset", () => assets.retrieve(id), (a) => a.status !== "preparing" && a.static_renditions?.files?.[0]?.status === "ready");
assert.equal(asset.status, "ready", JSON.stringify(asset));
assert.equal(asset.upload_id, upload.id);
assert.deepEqual((await assets.list({ upload_id: upload.id })).data.map((a) => a.id), [id]);
assert.ok((await uploads.list()).data.some((u) => u.id === upload.id && u.status === "asset_created"));
const unwanted = await uploads.create({ cors_origin: "https://example.com", timeout: 60, test: true });
assert.equal((await uploads.cancel(unwanted.id)).status, "cancelled");
await refused(Mux.PermissionDeniedError, 403, () => uploads.cancel(unwanted.id));
const [{ id: playbackId }] = asset.playback_ids;

/** Every segment of the first variant. */
const list = await (await playback.hls(playbackId)).text();
assert.match(list, /#EXT-X-SESSION-DATA:DATA-ID="com.apple.hls.chapters"/);
const variant = new URL(list.split("\n").find((line) => line && !line.startsWith("#")), `${baseURL}/`);
const media = await (await fetch(variant)).text();
const segments = media.split("\n").filter((line) => line && !line.startsWith("#"));
for (const segment of segments) assert.ok((await fetch(new URL(segment, variant))).ok, segment);
const length = media.match(/#EXTINF:[\d.]+/g).reduce((sum, tag) => sum + Number(tag.slice(8)), 0);
assert.ok(Math.abs(length - seconds) < 0.2, `${length} s of segments`);

const bytes = async (response) => new Uint8Array(await response.arrayBuffer());
assert.deepEqual([...(await bytes(await playback.thumbnail(playbackId, "jpg", { time: 2, width: 320 })))].slice(0, 2), [0xff, 0xd8]);
assert.equal(new TextDecoder().decode((await bytes(await playback.animated(playbackId, "gif", { start: 1, end: 2, width: 160 }))).slice(0, 3)), "GIF");
assert.deepEqual([...(await bytes(await playback.storyboard(playbackId, "jpg")))].slice(0, 2), [0xff, 0xd8]);
assert.match(await playback.storyboardVtt(playbackId), /^WEBVTT/);
assert.ok(JSON.stringify(await playback.storyboardMeta(playbackId)).includes("tile_width"));
assert.equal((await bytes(await playback.staticRendition(playbackId, "highest.mp4"))).length, Number(asset.static_renditions.files[0].filesize));
await refused(Mux.NotFoundError, 404, () => playback.track(playbackId, "nothingHasThisID"));
assert.match(await refused(Mux.NotFoundError, 404, () => playback.transcript(playbackId, "nothingHasThisID")), /text track/);
assert.deepEqual((await (await fetch(`${baseURL}/${playbackId}/metadata.json`)).json())[0].metadata, [{ key: "title", value: "Holiday" }]);
const counts = await fetch(`${baseURL}/counts?token=a.b.c`);
assert.equal(counts.status, 403);
assert.match((await counts.json()).error.messages[0], /token/);

/** Watched once by segments, and downloaded once. */
const now = Math.floor(Date.now() / 1000);
const timeframe = [String(now - 3600), String(now + 3600)];
const [report] = await until("what was delivered", async () => (await deliveryUsage.list({ timeframe, asset_id: id })).data,
  (all) => all[0]?.delivered_seconds > 2 * seconds - 0.5);
assert.ok(report.delivered_seconds < 2 * seconds + 0.5, JSON.stringify(report));
assert.deepEqual(report.delivered_seconds_by_resolution, { tier_720p: report.delivered_seconds });
assert.equal(report.asset_resolution_tier, "720p");
await assets.delete(id);
assert.equal((await deliveryUsage.list({ timeframe, asset_id: id })).data[0].asset_state, "deleted");
await refused(Mux.NotFoundError, 404, () => playback.hls(playbackId));
console.log("ok");
