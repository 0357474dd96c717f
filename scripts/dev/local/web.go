package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/localweb"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/base/netguard"
	reading "github.com/countersign-run/countersign/shared/tools/fetch"
)

// startWeb starts the local web on a separate port, so that nothing else of this server can be fetched. It returns the
// part that fetches from there and from the public web. The local web stops with the server.
func (s *server) startWeb(dir string) (app.Part, error) {
	if !s.reads() {
		return fetch.Part, nil
	}
	dir = filepath.Join(dir, "local-web")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return app.Part{}, err
	}
	ln, port, err := listenAgain(filepath.Join(dir, "port"))
	if err != nil {
		return app.Part{}, err
	}
	at := net.JoinHostPort(loopback, strconv.Itoa(port))
	s.web = "http://" + at
	site := &http.Server{Handler: localweb.Handler(), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- site.Serve(ln) }()
	s.closers = append(s.closers, func() error { return errors.Join(site.Close(), ignoreClosed(<-ended)) })
	open, err := netguard.Parse(at)
	return fetch.With(reading.Options{Guard: netguard.Options{Open: []netguard.Opening{open}}}), err
}

// reads reports whether agents can read the web.
func (s *server) reads() bool { return s.env.get("WEB_TOOLS") == "on" }

// webPart describes the web, for the greeting.
func (s *server) webPart() string {
	if s.web == "" {
		return "none: WEB_TOOLS is off"
	}
	return "some pages at " + s.web + ", and the public web; the demo model's searches find only the local pages"
}
