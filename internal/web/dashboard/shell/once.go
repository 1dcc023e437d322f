package shell

// SecretPage is the page that shows a secret, this once: it is the response to the form that made it, so the secret is
// in no address, and no other page has it.
type SecretPage struct {
	Heading, Secret       string // Secret is what is shown only once, as a sentence begins with it
	Keep, Use             string // what to do with it, and how it is used
	Name                  string // of what it belongs to
	ListAddress, ListName string // the list that this belongs to
	To                    string // the page that follows
	Lines                 []CopyLine
	PEM                   string // the line that can be saved as a .pem file; empty: none
	File                  string // the name of that file
}

// CopyLine is a text to copy, and what it is.
type CopyLine struct{ What, Text string }
