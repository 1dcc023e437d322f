package shell

// Question is the page that asks before something is lost or ended; with a script it is a dialog.
type Question struct {
	Heading, Text, Yes, No, Class string // Class is that of the button

	Name                           string // of what it is about
	ListAddress, ListName, Address string // the list and the page that it belongs to
	To                             string // where yes leads
	MustType                       bool   // the name has to be typed
	Bad                            string // what is wrong with the answer
}
