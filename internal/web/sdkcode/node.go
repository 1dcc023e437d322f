package sdkcode

import "strings"

// nodeJS writes requests with mux-node.
func (r requests) nodeJS(base string) string {
	write := notation{
		key: func(name string) string { return name }, text: quoted,
		secret: func(v Secret) string { return "process.env." + string(v) },
	}
	var steps strings.Builder
	for i, one := range r {
		if one.Node == "" {
			steps.WriteString("// Mux's library for Node has no method for this.\n")
		}
		if i == len(r)-1 {
			steps.WriteString("const " + one.nodeOutcome() + " = ")
		}
		steps.WriteString("await mux." + one.nodeCall(write) + ";\n")
	}
	return `import Mux from "@mux/mux-node";

const mux = new Mux({
  baseURL: ` + quoted(base) + `,
  tokenId: process.env.MUX_TOKEN_ID,
  tokenSecret: process.env.MUX_TOKEN_SECRET,
});
` + steps.String() + "console.log(" + r.last().nodePrints() + "\n"
}

// nodeCall is a Request by the library's method, or where it has none, by that of HTTP.
func (r Request) nodeCall(write notation) string {
	body := write.object(r.Body, "")
	if r.Node == "" {
		return strings.ToLower(r.verb()) + "(" + quoted(r.Path) + ", { body: " + body + " })"
	}
	return r.Node + "(" + r.first() + body + ")"
}

// nodeOutcome takes what the response has: the library's methods give its data.
func (r Request) nodeOutcome() string {
	if r.Node == "" {
		return "{ data: " + r.outcome() + " }"
	}
	return r.outcome()
}

// nodePrints ends the line that prints the ID, and a secret.
func (r Request) nodePrints() string {
	id := r.outcome() + ".id"
	if r.Once == "" {
		return id + ");"
	}
	return id + ", " + r.outcome() + "." + r.Once + "); // the secret is shown only once"
}
