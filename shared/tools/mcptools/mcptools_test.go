package mcptools_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
	"github.com/countersign-run/countersign/shared/tools/mcptools"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestProgramsOnlyLocally checks that a server that is a program is refused where programs are not started.
func TestProgramsOnlyLocally(t *testing.T) {
	file := []mcpfile.Server{{Name: "files", At: "mcpServers/files", Type: mcpfile.Stdio, Command: "true"}}
	o := mcptools.Options{Lookup: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	if err := mcptools.Check(file, o); err == nil || fault.As(err).Field != "mcpServers/files/type" {
		t.Errorf("deployed: %v", err)
	}
	o.Programs = true
	if err := mcptools.Check(file, o); err != nil {
		t.Errorf("on one machine: %v", err)
	}
}

// TestServerUnreachable tests an unreachable server. It has no tools, and the renewal of one of its tools fails. A name
// without its prefix belongs to no server.
func TestServerUnreachable(t *testing.T) {
	now := time.Now()
	s, err := mcptools.Open([]mcpfile.Server{{Name: "gone", Type: mcpfile.HTTP, URL: "http://127.0.0.1:1/mcp"}},
		mcptools.Options{Lookup: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	s.Await(t.Context())
	if set := s.Tools(); len(set) != 0 {
		t.Errorf("it has %v", set.Names())
	}
	if err := s.Renew(t.Context(), "gone_write"); !fault.Is(err, fault.Tool, "server_unavailable") {
		t.Errorf("a tool of it: %v", err)
	}
	if err := s.Renew(t.Context(), "other_write"); err != nil {
		t.Errorf("another's tool: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Renew(t.Context(), "gone_write"); err == nil {
		t.Error("after Close it is reached")
	}
}
