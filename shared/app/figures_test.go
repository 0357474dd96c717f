package app_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/figures"
)

// BenchmarkStop measures the time from Stop until no process of a command runs on the host, for a command that
// ends at ^C and for one that ignores ^C and SIGTERM.
//
//	go test ./shared/app -run '^$' -bench Stop -benchtime 20x -benchmem
func BenchmarkStop(b *testing.B) {
	for name, line := range map[string]string{"ends": "touch begun; sleep 4711",
		"ignores": "trap '' INT TERM; touch begun; sleep 4711"} {
		b.Run(name, func(b *testing.B) {
			h := onTerminal(b, nil, append([]string{"MAX_COMMANDS_PER_DAY=0"}, testkit.Unlimited...)...)
			h.SetModel((&commands{lines: []string{line}}).turn)
			var took figures.Times
			for b.Loop() {
				asked := h.askOn("Do it.")
				h.resolve(asked.Approvals[0], "approve_once", nil)
				wait := h.moving()
				await.That(b, "the command begins", func() bool {
					return h.exists("begun") && len(h.alive("sleep 4711")) > 0
				})
				ended := make(chan time.Duration)
				began := time.Now()
				go func() {
					for len(h.alive("sleep 4711")) > 0 {
						time.Sleep(5 * time.Millisecond)
					}
					ended <- time.Since(began)
				}()
				h.stop(asked)
				took = append(took, <-ended)
				wait()
				if got := h.run(asked); !cancelled(got) {
					b.Fatalf("%s", got.Body)
				}
				if err := os.Remove(filepath.Join(h.srv.Home, "begun")); err != nil {
					b.Fatal(err)
				}
			}
			took.Report(b, "stop")
		})
	}
}
