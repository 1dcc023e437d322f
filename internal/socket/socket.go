// Package socket reads from TCP connections with little work. It knows no protocol and starts no goroutine.
package socket
