package sdkcode

import (
	"strconv"
	"strings"
)

// plainGo writes a Request for which mux-go has no method.
func (r Request) plainGo(base string) string {
	// Between backquotes everything is as it is written, but for the backquote.
	body := notation{
		key:  quoted,
		text: func(text string) string { return strings.ReplaceAll(quoted(text), "`", `\u0060`) },
	}.object(r.Body, "")
	method, status := capitalised(strings.ToLower(r.verb())), "Created"
	if r.Method != "" {
		status = "OK"
	}
	return `package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
)

const body = ` + "`" + body + "`" + `

func main() {
	// Mux's library for Go has no method for this.
	r, err := http.NewRequest(http.Method` + method + ", " + strconv.Quote(base+r.Path) + `, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	r.SetBasicAuth(os.Getenv("MUX_TOKEN_ID"), os.Getenv("MUX_TOKEN_SECRET"))
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.Status` + status + ` {
		log.Panic(response.Status)
	}
	var ` + r.outcome() + " " + r.goData() + `
	if err := json.NewDecoder(response.Body).Decode(&` + r.outcome() + `); err != nil {
		log.Panic(err)
	}
	fmt.Println(` + r.goPrints() + `
}
`
}

// goData is the type of what is read of the response.
func (r Request) goData() string {
	if r.Once == "" {
		return "struct{ Data struct{ ID string } }"
	}
	return "struct {\n\t\tData struct {\n\t\t\tID     string\n\t\t\tSecret string `json:" + strconv.Quote(r.Once) +
		"`\n\t\t}\n\t}"
}

// goPrints ends the line that prints the ID, and a secret.
func (r Request) goPrints() string {
	data := r.outcome() + ".Data."
	if r.Once == "" {
		return data + "ID)"
	}
	return data + "ID, " + data + "Secret) // the secret is shown only once"
}
