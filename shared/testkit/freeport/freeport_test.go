package freeport_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/freeport"
)

// TestPortOnce asks for so many ports that chance would return some of them twice.
func TestPortOnce(t *testing.T) {
	given := map[string]bool{}
	for range 2000 {
		port := freeport.For(t)
		if given[port] {
			t.Fatalf("port %s was returned before", port)
		}
		given[port] = true
	}
}

func TestPort(t *testing.T) {
	port := freeport.For(t)
	if n, err := strconv.Atoi(port); err != nil || n >= 32_768 {
		t.Errorf("port %s is one that the system chooses itself (%v)", port, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if another, err := freeport.Port(); err != nil || another == port {
		t.Errorf("port %s (%v), which is taken", another, err)
	}
}
