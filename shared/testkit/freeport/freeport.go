// Package freeport finds ports for programs that need a port number before they listen.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// first and last limit the range of ports. It is below the ports that systems assign (32768 and up on Linux, 49152 and
// up on others), because the system could assign such a port to a connection before the program starts.
const first, last = 10_000, 32_767

// given holds the ports that Port has returned. Their programs may not listen yet, or may be about to restart.
var given sync.Map

// Port returns a free port of 127.0.0.1, and each port only once. It tries 100 ports; the error is that of the last.
func Port() (port string, err error) {
	for range 100 {
		port = strconv.Itoa(first + rand.IntN(last-first+1))
		if _, was := given.LoadOrStore(port, true); was {
			err = errors.New("every port that was tried was returned before")
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}

// For is like Port. It fails the test if there is an error.
func For(t interface {
	Helper()
	Fatalf(format string, args ...any)
}) (port string) {
	t.Helper()
	port, err := Port()
	if err != nil {
		t.Fatalf("a free port: %v", err)
	}
	return port
}
