// Package socket reads from and writes to TCP connections at low cost, and waits for many of them at once. It knows no
// protocol and starts no goroutine: whoever creates a Poller runs it.
package socket
