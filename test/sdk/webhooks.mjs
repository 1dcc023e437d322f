// Makes webhooks through the official client library, takes what they are sent, and has the library, and that of Standard
// Webhooks, check the signatures.
// Usage: node webhooks.mjs BASE_URL TOKEN_ID TOKEN_SECRET
import assert from "node:assert/strict";
import http from "node:http";
import { once } from "node:events";
import Mux from "@mux/mux-node";
import { Webhook } from "standardwebhooks";

const [baseURL, tokenId, tokenSecret] = process.argv.slice(2);
const mux = new Mux({ baseURL, tokenId, tokenSecret, maxRetries: 0 });
const { webhooks } = mux.system;

// The receiver keeps each request until somebody takes it.
const received = [];
let arrived = () => {};
let status = 204;
const receiver = http.createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text) => (body += text));
  request.on("end", () => {
    received.push({ body, headers: new Headers(request.headers), method: request.method });
    response.writeHead(status, { "x-receiver": "mine" }).end("thanks");
    arrived();
  });
});
receiver.listen(0, "127.0.0.1");
await once(receiver, "listening");
/** standard is the event of a delivery, if the library of Standard Webhooks accepts its signature. */
const standard = (delivery, secret) => new Webhook(secret).verify(delivery.body, Object.fromEntries(delivery.headers));

const address = `http://127.0.0.1:${receiver.address().port}/hook?key=1`;

async function take(type) {
  for (;;) {
    const i = received.findIndex((r) => JSON.parse(r.body).type === type);
    if (i >= 0) return received.splice(i, 1)[0];
    await new Promise((resolve) => (arrived = resolve));
  }
}

// Create, list, retrieve, update.
const made = await webhooks.create({ address });
assert.equal(made.address, address);
assert.equal(made.enabled, true);
assert.match(made.created_at, /^\d{4}-\d\d-\d\dT.*Z$/);
assert.ok(made.signing_secret.length >= 32);
await assert.rejects(webhooks.create({ address }), (e) => e instanceof Mux.BadRequestError && /another webhook/.test(e.message));
await assert.rejects(webhooks.create({ address: "ftp://example.com" }), Mux.BadRequestError);
const shown = await webhooks.retrieve(made.id);
assert.equal("signing_secret" in shown, false);
const other = await webhooks.create({ address: address + "2" });
const listed = [];
for await (const hook of webhooks.list({ limit: 1 })) listed.push(hook.id);
assert.deepEqual(listed, [other.id, made.id]);
assert.equal((await webhooks.update(other.id, { enabled: false })).enabled, false);
await assert.rejects(webhooks.update(other.id, {}), Mux.BadRequestError);
await webhooks.delete(other.id);
await assert.rejects(webhooks.retrieve(other.id), Mux.NotFoundError);

// An event arrives and is genuine.
const stream = await mux.video.liveStreams.create({ playback_policies: ["public"], passthrough: "mine", meta: { title: "Talk" } });
const delivery = await take("video.live_stream.created");
assert.equal(delivery.method, "POST");
assert.equal(delivery.headers.get("content-type"), "application/json");
const event = await mux.webhooks.unwrap(delivery.body, delivery.headers, made.signing_secret);
assert.equal(event.object.type, "live");
assert.equal(event.object.id, stream.id);
assert.equal(event.data.id, stream.id);
assert.equal(event.data.stream_key, stream.stream_key);
assert.equal(event.data.srt_passphrase, stream.srt_passphrase);
assert.equal(event.data.created_at, Number(stream.created_at));
assert.equal(event.data.connected, false);
assert.equal(event.data.passthrough, "mine");
assert.equal(event.data.meta.title, "Talk");
assert.deepEqual(event.data.playback_ids, stream.playback_ids);
assert.deepEqual([event.accessor, event.accessor_source, event.attempts], [null, null, []]);
assert.match(event.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
const me = await mux.system.utilities.whoami();
assert.deepEqual(event.environment, { name: me.environment_name, id: me.environment_id });
await assert.rejects(mux.webhooks.unwrap(delivery.body + " ", delivery.headers, made.signing_secret), /No signatures found/);
await assert.rejects(mux.webhooks.unwrap(delivery.body, delivery.headers, "another"), /No signatures found/);
assert.deepEqual(standard(delivery, made.signing_secret), event);
assert.equal(delivery.headers.get("webhook-id"), event.id);
assert.throws(() => standard({ ...delivery, body: delivery.body + " " }, made.signing_secret), /No matching signature/);
assert.throws(() => standard(delivery, "whsec_" + "A".repeat(44)), /No matching signature/);

// The log of events has it too, without the keys.
const log = (await mux.get("/system/v1/events", { query: { object_id: stream.id } })).data;
assert.deepEqual(log.map((e) => e.type), ["video.live_stream.created"]);
assert.equal(log[0].id, event.id);
assert.equal("stream_key" in log[0].data, false);
assert.equal(JSON.stringify(log).includes(stream.stream_key), false);

// Both secrets are good while the new one is spread.
const rotated = (await mux.post(`/system/v1/webhooks/${made.id}/rotate-secret`)).data;
assert.notEqual(rotated.signing_secret, made.signing_secret);
const tested = (await mux.post(`/system/v1/webhooks/${made.id}/test`)).data;
const proof = await take("system.webhook.test");
for (const secret of [made.signing_secret, rotated.signing_secret]) {
  assert.equal((await mux.webhooks.unwrap(proof.body, proof.headers, secret)).id, tested.id);
  assert.equal(standard(proof, secret).id, tested.id);
}

// What is refused is tried again, and tells of the attempt before.
status = 500;
await mux.video.liveStreams.update(stream.id, { passthrough: "yours" });
const refused = JSON.parse((await take("video.live_stream.updated")).body);
status = 200;
const again = JSON.parse((await take("video.live_stream.updated")).body);
assert.equal(again.id, refused.id);
assert.equal(again.attempts[0].response_status_code, 500);
assert.equal(again.attempts[0].response_body, "thanks");
assert.equal(again.attempts[0].response_headers["X-Receiver"], "mine");
assert.equal(again.attempts[0].webhook_id, made.id);
await mux.post(`/system/v1/webhooks/${made.id}/deliveries/${event.id}/replay`);
const replayed = JSON.parse((await take("video.live_stream.created")).body);
assert.equal(replayed.id, event.id);
assert.equal(replayed.data.passthrough, "mine"); // as it was then
assert.deepEqual(replayed.attempts.map((a) => [a.webhook_id, a.response_status_code]), [[made.id, 204]]);
await webhooks.delete(made.id);

receiver.close();
receiver.closeAllConnections();
console.log("webhooks: everything as expected");
