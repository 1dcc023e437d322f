// Shows the OpenAPI document of this server. Everything is built as text nodes: nothing of the document is ever read as HTML.
"use strict";
(() => {
  const methods = ["get", "post", "put", "patch", "delete"];
  const maxDepth = 5;
  let doc;

  const byId = (name) => document.getElementById(name);

  /** el makes an element with attributes and children (strings become text). */
  function el(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== ""));
    return node;
  }

  function resolve(schema) {
    if (!schema || !schema.$ref) return schema || {};
    const found = doc.components.schemas[schema.$ref.split("/").pop()] || {};
    return schema.description ? { ...found, description: schema.description, deprecated: schema.deprecated } : found;
  }

  const typeOf = (s) => (Array.isArray(s.type) ? s.type.join(" or ") : s.type);

  /** type says in words what a schema allows. */
  function type(schema, within = ", or ") {
    const s = resolve(schema);
    if (s.oneOf) return [...new Set(s.oneOf.map((o) => type(o)))].join(within);
    if (s.type === "array") return "array of " + type(s.items, " and ");
    return typeOf(s) || "anything";
  }

  /** inner finds the objects that a schema leads to, for nesting. */
  function inner(schema) {
    const s = resolve(schema);
    if (s.oneOf) return s.oneOf.map(inner).find(Boolean);
    if (s.type === "array") return inner(s.items);
    return s.properties ? s : undefined;
  }

  function limits(schema) {
    const s = resolve(schema);
    const each = s.type === "array" ? resolve(s.items) : s.oneOf ? s.oneOf.map(resolve).find((o) => o.enum) || s : s;
    const words = [];
    if (each.enum) words.push("one of " + each.enum.join(", "));
    if (s.minimum !== undefined && s.maximum !== undefined) words.push(`${s.minimum} to ${s.maximum}`);
    if (s.maxLength !== undefined) words.push(`at most ${s.maxLength} characters`);
    if (s.default !== undefined) words.push(`default ${s.default}`);
    const text = words.join("; ");
    return text && text[0].toUpperCase() + text.slice(1) + ".";
  }

  /** fieldRow shows one field; mark is what is said of one that is always there. */
  function fieldRow(name, schema, mark, depth) {
    const s = resolve(schema);
    const text = [s.description, limits(schema)].filter(Boolean).join(" ");
    const cell = el("td", {}, text);
    const object = depth < maxDepth ? inner(schema) : undefined;
    if (object) cell.append(el("details", {}, el("summary", {}, "Fields"), el("div", { class: "nested" }, fields(object, mark, depth + 1))));
    return el("tr", {},
      el("td", {}, el("code", {}, name), mark ? el("span", { class: "tag" }, mark) : null, s.deprecated ? el("span", { class: "tag" }, "deprecated") : null),
      el("td", { class: "soft" }, type(schema)), cell);
  }

  function table(rows) {
    const head = el("thead", {}, el("tr", {}, ...["Field", "Type", "Meaning"].map((t) => el("th", { scope: "col" }, t))));
    return el("table", {}, head, el("tbody", {}, rows));
  }

  function fields(schema, mark, depth) {
    const required = schema.required || [];
    return table(Object.entries(schema.properties).map(([name, s]) => fieldRow(name, s, required.includes(name) ? mark : "", depth)));
  }

  function body(title, schema, mark) {
    const object = inner(schema);
    if (!object || Object.keys(object.properties).length === 0) return [];
    return [el("h4", {}, title), fields(object, mark, 0)];
  }

  /** sample makes a request body of the fields that are required, or of the first that is not. */
  function sample(schema) {
    const s = resolve(schema);
    const out = {};
    for (const name of s.required || []) {
      const field = resolve(s.properties[name]);
      out[name] = field.enum ? field.enum[0] : name === "url" ? "https://example.com/subtitles.srt" : name === "language_code" ? "en" : "";
    }
    if (s.properties.playback_policies) out.playback_policies = ["public"];
    if (s.properties.inputs) out.inputs = [{ url: "https://example.com/video.mp4" }];
    if (s.properties.policy) out.policy = "public";
    if (!Object.keys(out).length && s.properties.passthrough) out.passthrough = "example";
    return out;
  }

  function curl(path, method, operation) {
    const server = doc.servers[0].url === "/" ? location.origin : doc.servers[0].url;
    const request = operation.requestBody && operation.requestBody.content["application/json"].schema;
    let line = `curl -u "$TOKEN_ID:$TOKEN_SECRET"`;
    if (method !== "get") line += ` -X ${method.toUpperCase()}`;
    line += ` '${server}${path}'`;
    if (request) line += ` \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(sample(request))}'`;
    return line;
  }

  function responses(operation) {
    const rows = Object.entries(operation.responses).map(([code, r]) => {
      const schema = r.content && r.content["application/json"] && r.content["application/json"].schema;
      return el("tr", {}, el("td", {}, el("code", {}, code)), el("td", {}, r.description), el("td", { class: "soft" }, schema && schema.$ref ? schema.$ref.split("/").pop() : ""));
    });
    const head = el("thead", {}, el("tr", {}, ...["Status", "Meaning", "Body"].map((t) => el("th", { scope: "col" }, t))));
    return el("details", {}, el("summary", {}, "All responses"), el("table", {}, head, el("tbody", {}, rows)));
  }

  /** permissions are those that an operation needs, each a role of its security requirement. */
  function permissions(operation) {
    return (operation.security || doc.security).flatMap((alternative) => alternative.accessToken || []);
  }

  function needs(operation) {
    const needed = permissions(operation);
    if (!needed.length) return el("p", { class: "needs" }, "Needs any access token.");
    return el("p", { class: "needs" }, "Needs an access token with the permission ", el("code", {}, needed.join(", ")), ".");
  }

  function operationSection(path, method, operation) {
    const request = operation.requestBody && operation.requestBody.content["application/json"].schema;
    const [, success] = Object.entries(operation.responses).find(([code]) => code.startsWith("2")) || [];
    const response = success && success.content && success.content["application/json"].schema;
    const data = response && resolve(response).properties.data;
    const params = (operation.parameters || []).map((p) =>
      fieldRow(p.name, { ...p.schema, description: [p.in === "path" ? "In the path." : "", p.description].filter(Boolean).join(" ") }, p.required ? "required" : "", 0));
    return el("section", { class: "op", id: operation.operationId, "aria-labelledby": operation.operationId + "-title" },
      el("h3", { id: operation.operationId + "-title" }, operation.summary),
      el("p", { class: "route" }, el("span", { class: "method " + method }, method.toUpperCase()), el("code", {}, path)),
      needs(operation),
      operation.description ? el("p", {}, operation.description) : null,
      params.length ? [el("h4", {}, "Parameters"), table(params)] : null,
      request ? body("Request", request, "required") : null,
      data ? body("Response: data", data, "always") : null,
      responses(operation),
      el("h4", {}, "Example"), el("pre", { tabindex: "0" }, el("code", {}, curl(path, method, operation))));
  }

  /** words is what the search looks into. */
  function words(path, method, operation) {
    const names = new Set([path, method, operation.operationId, operation.summary, operation.description || ""]);
    for (const permission of permissions(operation)) names.add(permission);
    const seen = new Set();
    const walk = (schema) => {
      if (!schema || seen.has(schema)) return;
      seen.add(schema);
      const s = resolve(schema);
      for (const [name, property] of Object.entries(s.properties || {})) { names.add(name); walk(property); }
      for (const alternative of s.oneOf || []) walk(alternative);
      walk(s.items);
    };
    if (operation.requestBody) walk(operation.requestBody.content["application/json"].schema);
    for (const p of operation.parameters || []) names.add(p.name);
    return [...names].join(" ").toLowerCase();
  }

  function show() {
    const main = byId("main");
    document.title = doc.info.title;
    byId("title").textContent = doc.info.title;
    main.replaceChildren(el("h2", {}, `${doc.info.title} ${doc.info.version}`), ...doc.info.description.split("\n\n").map((p) => el("p", {}, p)));
    const entries = [];
    for (const tag of doc.tags) {
      const list = el("ul", {});
      const heading = el("h2", {}, tag.name);
      const group = el("div", {}, heading, list);
      byId("index").append(group);
      const title = el("h2", {}, tag.name, tag.description ? el("span", { class: "soft" }, " – " + tag.description) : null);
      main.append(title);
      for (const [path, item] of Object.entries(doc.paths)) {
        for (const method of methods.filter((m) => item[m] && item[m].tags.includes(tag.name))) {
          const operation = item[method];
          const section = operationSection(path, method, operation);
          const link = el("li", {}, el("a", { href: "#" + operation.operationId }, el("span", { class: "method " + method }, method.toUpperCase()), operation.summary));
          main.append(section);
          list.append(link);
          entries.push({ section, link, title, group, words: words(path, method, operation) });
        }
      }
    }
    return entries;
  }

  function search(entries, text) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const entry of entries) {
      const hit = wanted.every((w) => entry.words.includes(w));
      entry.section.hidden = entry.link.hidden = !hit;
      if (hit) count++;
    }
    for (const entry of entries) {
      const any = entries.some((e) => e.group === entry.group && !e.link.hidden);
      entry.group.hidden = entry.title.hidden = !any;
    }
    byId("found").textContent = wanted.length ? `${count} of ${entries.length} operations` : "";
  }

  async function start() {
    try {
      const response = await fetch("/openapi.json", { credentials: "omit" });
      if (!response.ok) throw new Error("status " + response.status);
      doc = await response.json();
    } catch (error) {
      byId("state").textContent = "The document could not be read: " + error.message;
      return;
    }
    const entries = show();
    byId("search").addEventListener("input", (event) => search(entries, event.target.value));
    if (location.hash) {
      const target = byId(location.hash.slice(1));
      if (target) target.scrollIntoView();
    }
  }

  start();
})();
