// Package offline lets a program of the cookbook run without a key: importing it starts a scripted Gemini in the
// process and sets the environment to its address, unless the environment configures a real one. The script answers
// only the cookbook's own prompts; for any other prompt, it says so. The program ends with the `go run` that has
// started it.
package offline

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/gorun"
)

func init() {
	gorun.Follow()
	if c, err := config.LoadModel(os.Getenv); err == nil && (c.GeminiAPIKey.IsSet() || c.VertexProject != "") {
		return
	} else if missing, ok := errors.AsType[config.Problems](err); !ok || len(missing) > 1 ||
		missing[0].Variable != "GEMINI_API_KEY" {
		return // something is wrong, and New says what
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, "offline: neither a key nor a scripted Gemini is available:", err)
		return
	}
	go func() { _ = http.Serve(l, fakegemini.New(answer)) }() // ends with the process
	for name, value := range map[string]string{"GEMINI_API_KEY": "offline-000000000000000000000000000000",
		"GOOGLE_GEMINI_BASE_URL": "http://" + l.Addr().String()} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, "offline:", err)
		}
	}
	fmt.Fprintln(os.Stderr, "(No key is set, so a scripted Gemini answers. GEMINI_API_KEY asks the real one.)")
}
