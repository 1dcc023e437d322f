package sdkcode

import "strings"

// nodeJS writes requests with mux-node.
func (c requests) nodeJS(base string) string {
	write := notation{
		key: func(name string) string { return name }, text: quoted,
		secret: func(v Secret) string { return "process.env." + string(v) },
	}
	var steps strings.Builder
	for i, one := range c {
		if one.Node == "" {
			steps.WriteString("// Mux's library for Node has no method for this.\n")
		}
		if i == len(c)-1 {
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
` + steps.String() + "console.log(" + c.last().nodePrints() + "\n"
}

// nodeCall is a Request by the library's method, or where it has none, by that of HTTP.
func (c Request) nodeCall(write notation) string {
	body := write.object(c.Body, "")
	if c.Node == "" {
		return strings.ToLower(c.verb()) + "(" + quoted(c.Path) + ", { body: " + body + " })"
	}
	return c.Node + "(" + c.first() + body + ")"
}

// nodeOutcome takes what the response has: the library's methods give its data.
func (c Request) nodeOutcome() string {
	if c.Node == "" {
		return "{ data: " + c.outcome() + " }"
	}
	return c.outcome()
}

// nodePrints ends the line that prints the ID, and a secret.
func (c Request) nodePrints() string {
	id := c.outcome() + ".id"
	if c.Once == "" {
		return id + ");"
	}
	return id + ", " + c.outcome() + "." + c.Once + "); // the secret is shown this once"
}
