package main

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"
)

// wanted returns the address at which the server with these flags will listen. What it will refuse is not checked here.
func wanted(args []string, port string) string {
	addr := "127.0.0.1:8080"
	if port != "" {
		addr = "127.0.0.1:" + port
	}
	for i, a := range args {
		name, value, bound := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch {
		case name != "addr" || !strings.HasPrefix(a, "-"):
		case bound:
			addr = value
		case i+1 < len(args):
			addr = args[i+1]
		}
	}
	return addr
}

// release finds the release in what a server of ours answers about its health.
var release = regexp.MustCompile(`"release":"([^"]*)","store":"`)

// taken returns an error that names the listener at the address and says what to do, or nil if the address is free.
func taken(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil
	}
	defer conn.Close()
	// Another program may answer nothing, so what it says by then is all that counts.
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n")
	said, _ := io.ReadAll(io.LimitReader(conn, 64<<10))
	if found := release.FindSubmatch(said); found != nil {
		return fmt.Errorf("the release %s of Countersign already runs at http://%s/: open it, or stop it first. A "+
			"second one needs -addr 127.0.0.1:PORT and a DATA_DIR of its own", found[1], addr)
	}
	return fmt.Errorf("%s is used by another program: choose another port with -addr 127.0.0.1:PORT, or with PORT in "+
		"the environment", addr)
}
