// Further steps of run.mjs: what was delivered, uploads, requests that are tried again, and a look at every operation that the client library has.
import assert from "node:assert/strict";
import http from "node:http";

/** What the library can ask of Video and System and the service does not have: each is refused with a reason. */
const notSupported = `
  video.assets.deleteShots video.assets.generateShots video.assets.retrieveShots
  system.usageExports.list
`.trim().split(/\s+/);

/** Those of playback, which is beside the API: media.mjs calls them. */
const beside = "video.playback.";

/** operations are the methods of the library's Video and System by their names. */
function operations(mux) {
  const found = new Map();
  for (const area of ["video", "system"]) {
    for (const [name, resource] of Object.entries(mux[area])) {
      if (name.startsWith("_") || resource === null || typeof resource !== "object") continue;
      for (const method of Object.getOwnPropertyNames(Object.getPrototypeOf(resource))) {
        if (method !== "constructor") found.set(`${area}.${name}.${method}`, { resource, method });
      }
    }
  }
  return found;
}

/** something calls a method with an ID that nothing has, and with empty bodies and queries. */
function something({ resource, method }) {
  const [, list] = /\(([^)]*)\)/.exec(resource[method].toString());
  const args = list.split(",").map((p) => p.split("=")[0].trim()).filter((p) => p && p !== "options");
  return resource[method](...args.map((p) => (/id$/i.test(p) ? "nothingHasThisID" : {})));
}

export function furtherSteps({ Mux, mux, baseURL, tokenId, tokenSecret, refused, collect }) {
  const { assets, liveStreams, uploads, deliveryUsage } = mux.video;

  /** behind a proxy whose first responses to each request are those of a list, the library tries again. */
  async function withTrouble(statuses, retries, run) {
    const asked = new Map();
    const proxy = http.createServer((request, response) => {
      const key = `${request.method} ${request.url}`;
      const n = asked.get(key) ?? 0;
      asked.set(key, n + 1);
      const { authorization, "content-type": type } = request.headers;
      if (n < statuses.length) {
        request.resume();
        response.writeHead(statuses[n], { "content-type": "application/json", "retry-after-ms": "1" });
        response.end(JSON.stringify({ error: { type: "trouble", messages: ["again"] } }));
        return;
      }
      const further = http.request(baseURL + request.url, { method: request.method, headers: { authorization, ...(type && { "content-type": type }) } }, (got) => {
        response.writeHead(got.statusCode, got.headers);
        got.pipe(response);
      });
      request.pipe(further);
    });
    await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
    const client = new Mux({ baseURL: `http://127.0.0.1:${proxy.address().port}`, tokenId, tokenSecret, maxRetries: retries });
    try {
      await run(client, asked);
    } finally {
      proxy.closeAllConnections();
      await new Promise((done) => proxy.close(done));
    }
  }

  return [
    ["delivery usage", async () => {
      const hour = Math.floor(Date.now() / 3_600_000) * 3600 - 7200;
      const deliver = async (asset, seconds, at) => {
        const response = await fetch(`${baseURL}/test/delivered?asset=${asset}&seconds=${seconds}&at=${at}`, { method: "POST" });
        assert.equal(response.status, 204, await response.text());
      };
      const made = [];
      for (let i = 0; i < 5; i++) {
        made.push((await assets.create({ inputs: [{ url: "https://example.com/a.mp4" }], video_quality: "plus", passthrough: `p${i}` })).id);
        await deliver(made[i], 10 - i, hour + 60 * i);
      }
      await deliver(made[0], 0.5, hour + 3600);
      const timeframe = [String(hour), String(hour + 3600)];
      const reports = await collect(deliveryUsage.list({ timeframe, limit: 2 }));
      assert.deepEqual(reports.map((r) => [r.asset_id, r.delivered_seconds, r.passthrough]), made.map((id, i) => [id, 10 - i, `p${i}`]));
      assert.deepEqual(reports[0].delivered_seconds_by_resolution, { tier_720p: 10 });
      assert.equal(reports[0].asset_video_quality, "plus");
      const page = await deliveryUsage.list({ timeframe: [String(hour + 1), String(hour + 3601)], asset_id: made[0] });
      assert.deepEqual(page.timeframe, [hour, hour + 7200]);
      assert.equal(page.limit, 100);
      assert.deepEqual(page.data.map((r) => r.delivered_seconds), [10.5]);
      await assets.delete(made[4]);
      const [gone] = await collect(deliveryUsage.list({ timeframe, asset_id: made[4] }));
      assert.equal(gone.asset_state, "deleted");
      assert.match(gone.deleted_at, /^\d{10}$/);
      assert.equal(gone.passthrough, "p4");
      assert.deepEqual(await collect(deliveryUsage.list()), []);
      await refused(Mux.BadRequestError, 400, () => deliveryUsage.list({ asset_id: "a", live_stream_id: "b" }));
      for (const id of made.slice(0, 4)) await assets.delete(id);
    }],

    ["uploads", async () => {
      const made = [];
      for (let i = 0; i < 3; i++) {
        made.unshift((await uploads.create({ cors_origin: "*", timeout: 600, new_asset_settings: { playback_policies: ["public"] } })).id);
      }
      const first = await uploads.retrieve(made[0]);
      assert.equal(first.status, "waiting");
      assert.equal(first.timeout, 600);
      assert.match(first.url, /\/uploads\//);
      assert.deepEqual((await collect(uploads.list({ limit: 2 }))).map((u) => u.id), made);
      const cancelled = await uploads.cancel(made[0]);
      assert.equal(cancelled.status, "cancelled");
      assert.ok(!cancelled.url);
      await refused(Mux.PermissionDeniedError, 403, () => uploads.cancel(made[0]));
      await refused(Mux.NotFoundError, 404, () => uploads.retrieve("nobody"));
      await refused(Mux.BadRequestError, 400, () => uploads.create({ cors_origin: "*", timeout: 1 }));
    }],

    ["signing keys and playback restrictions", async () => {
      const restriction = await mux.video.playbackRestrictions.create({
        referrer: { allowed_domains: ["*.example.com"] }, user_agent: { allow_high_risk_user_agent: false },
      });
      assert.deepEqual(restriction.user_agent, { allow_no_user_agent: true, allow_high_risk_user_agent: false });
      const wider = await mux.video.playbackRestrictions.updateReferrer(restriction.id, { allowed_domains: ["*"], allow_no_referrer: true });
      assert.deepEqual(wider.referrer, { allowed_domains: ["*"], allow_no_referrer: true });
      assert.deepEqual((await collect(mux.video.playbackRestrictions.list())).map((r) => r.id), [restriction.id]);
      const key = await mux.system.signingKeys.create();
      assert.deepEqual(await collect(mux.system.signingKeys.list()), [{ id: key.id, created_at: key.created_at }]);
      const verify = async (token, status) => {
        const response = await fetch(`${baseURL}/test/verify?token=${token}`, { method: "POST" });
        assert.equal(response.status, status, await response.text());
      };
      const how = { keyId: key.id, keySecret: key.private_key, expiration: "1h" };
      const signed = await mux.jwt.signPlaybackId("pb1", { ...how, type: "video", params: { playback_restriction_id: restriction.id } });
      await verify(signed, 204);
      await verify(await mux.jwt.signPlaybackId("pb1", { ...how, type: "thumbnail", params: { width: "640" } }), 204);
      await mux.system.signingKeys.delete(key.id);
      await verify(signed, 500);
      await mux.video.playbackRestrictions.delete(restriction.id);
      await refused(Mux.NotFoundError, 404, () => mux.video.playbackRestrictions.retrieve(restriction.id));
    }],

    ["DRM configurations", async () => {
      assert.equal((await fetch(`${baseURL}/test/drm`, { method: "POST" })).status, 204);
      const [first] = await collect(mux.video.drmConfigurations.list());
      assert.deepEqual(await mux.video.drmConfigurations.retrieve(first.id), { id: first.id });
      await refused(Mux.NotFoundError, 404, () => mux.video.drmConfigurations.retrieve("absent"));
      const policies = (id) => ({ advanced_playback_policies: [{ policy: "drm", drm_configuration_id: id }] });
      const stream = await mux.video.liveStreams.create({ ...policies(first.id), new_asset_settings: policies(first.id) });
      assert.equal(stream.playback_ids[0].policy, "drm");
      assert.equal(stream.playback_ids[0].drm_configuration_id, first.id);
      await refused(Mux.BadRequestError, 400, () => mux.video.liveStreams.create(policies("absent")));
      const only = await mux.video.liveStreams.createPlaybackId(stream.id, { policy: "drm" });
      assert.equal(only.drm_configuration_id, first.id);
      assert.equal((await fetch(`${baseURL}/test/drm`, { method: "POST" })).status, 204);
      await refused(Mux.BadRequestError, 400, () => mux.video.liveStreams.createPlaybackId(stream.id, { policy: "drm" }));
      const made = await mux.video.liveStreams.createPlaybackId(stream.id, { policy: "drm", drm_configuration_id: first.id });
      assert.equal(made.drm_configuration_id, first.id);
      await mux.video.liveStreams.delete(stream.id);
    }],

    ["429 and 503 are tried again", async () => {
      await withTrouble([429, 503], 2, async (client, asked) => {
        const made = await client.video.liveStreams.create({ passthrough: "once" });
        assert.equal(asked.get("POST /video/v1/live-streams"), 3);
        assert.equal((await client.video.liveStreams.retrieve(made.id)).passthrough, "once");
        await client.video.liveStreams.delete(made.id);
        assert.deepEqual(await collect(liveStreams.list()), []);
      });
      await withTrouble([429, 429, 429], 2, async (client) => {
        const error = await client.video.assets.list().then(() => assert.fail("it was not refused"), (e) => e);
        assert.ok(error instanceof Mux.RateLimitError, String(error));
      });
      await withTrouble([503], 0, async (client) => {
        const error = await client.video.assets.list().then(() => assert.fail("it was not refused"), (e) => e);
        assert.ok(error instanceof Mux.InternalServerError, String(error));
        assert.equal(error.status, 503);
      });
    }],

    ["every operation is there, or says why not", async () => {
      const absent = [];
      for (const [name, operation] of operations(mux)) {
        if (name.startsWith(beside)) continue;
        try {
          await something(operation);
        } catch (error) {
          assert.ok(error instanceof Mux.APIError, `${name}: ${error.stack}`);
          assert.ok(error.status >= 400 && error.status < 500, `${name}: ${error}`);
          const { type, messages } = error.error.error;
          assert.ok(messages.length > 0 && messages.every((m) => m.length > 5), `${name}: ${JSON.stringify(error.error)}`);
          assert.doesNotMatch(messages.join(), /nothing under this path/, name);
          if (type === "not_supported") absent.push(name);
        }
      }
      assert.deepEqual(absent.sort(), notSupported.slice().sort());
      for (const stream of await collect(liveStreams.list())) await liveStreams.delete(stream.id);
    }],
  ];
}
