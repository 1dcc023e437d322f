// Package socket reads from TCP connections and writes to them with little work, and waits for many of them together. It knows no protocol
// and starts no goroutine: who makes a Poller runs it.
package socket
