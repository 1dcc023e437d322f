// Package socket reads from TCP connections and writes to them with little work. It knows no protocol and starts no goroutine.
package socket
