// Command millrace-speech recognises speech for the service, which starts it and talks to it over pipes: a program of
// its own since it loads a library of the system at run time.
package main

import (
	"os"

	"millrace/internal/media/speech/worker"
)

func main() {
	os.Exit(worker.Main(os.Stdin, os.Stdout, os.Stderr))
}
