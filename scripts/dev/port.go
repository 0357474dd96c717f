package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// wanted returns the address that the server will listen on with these flags. It does not validate the flags; the
// server does.
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

// release finds the release in the response of a local server to /health.
var release = regexp.MustCompile(`"release":"([^"]*)","store":"`)

// taken returns nil if the address is free. Otherwise its error says what uses the address, and what to do.
func taken(addr string) error {
	if err := valid(addr); err != nil {
		return err
	}
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil
	}
	defer conn.Close()
	// Another program may not answer at all, so the wait is limited.
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n")
	said, err := io.ReadAll(io.LimitReader(conn, 64<<10))
	if found := release.FindSubmatch(said); found != nil {
		return fmt.Errorf("release %s of Countersign already runs at http://%s/: open it, or stop it first. To run "+
			"a second one, set another -addr 127.0.0.1:PORT and another DATA_DIR", found[1], addr)
	}
	if len(said) == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s is used by a program that does not answer: if that is a server you suspended with "+
			"Ctrl-Z, continue it with fg; otherwise choose another port with -addr 127.0.0.1:PORT, or set PORT", addr)
	}
	return fmt.Errorf("%s is used by another program: choose another port with -addr 127.0.0.1:PORT, or "+
		"set PORT", addr)
}

// valid checks that the address has a numeric port.
func valid(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is no address to listen on: choose one with -addr 127.0.0.1:PORT, or set PORT to a "+
			"number from 0 to 65535", addr)
	}
	return nil
}
