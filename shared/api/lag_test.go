package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/figures"
)

// BenchmarkOutputLag measures how long a printed line takes to reach a reader of the run's events in another process,
// from printing and from the start of the commit that stores it. Output that is printed without a pause waits up to
// half a second between commits, because there are at most two commits a second.
//
//	go test ./shared/api -run '^$' -bench OutputLag -benchtime 4x -benchmem
func BenchmarkOutputLag(b *testing.B) {
	for _, every := range []time.Duration{50 * time.Millisecond, 230 * time.Millisecond, 700 * time.Millisecond} {
		b.Run("a line each "+every.String(), func(b *testing.B) {
			var printed, stored figures.Times
			for b.Loop() {
				st, err := embedded.OpenMemory(time.Now)
				if err != nil {
					b.Fatal(err)
				}
				var last atomic.Int64 // start of the last commit of output
				w := newEnvOn(b, faulty.Wrap(st, func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
					if c.Method == faulty.Commit && strings.Contains(c.Writes[len(c.Writes)-1].Doc.Path, "/outputs/") {
						last.Store(time.Now().UnixNano())
					}
					return next(ctx)
				}))
				w.works(tool.Required, func(_ context.Context, c tool.Call) {
					for range int(5 * time.Second / every) {
						_, _ = fmt.Fprintln(c.Output, time.Now().UnixNano())
						time.Sleep(every)
					}
				})
				w.printed(b, func(at time.Time) {
					printed.Since(at)
					stored.Since(time.Unix(0, last.Load()))
				})
			}
			printed.Report(b, "printed")
			stored.Report(b, "stored")
		})
	}
}

// printed approves and advances the run, and calls each for every line of its output with the time at which it was
// printed.
func (w *env) printed(b *testing.B, each func(at time.Time)) {
	b.Helper()
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"x"}`)
	w.send("POST", "/api/agent/approvals/resolve", "ana", fmt.Sprintf(`{"approvalId":%q,"decision":"approve_once"}`,
		a.at("actions", "0", "approvalId")))
	req, err := http.NewRequest("GET", w.url+"/api/agent/runs/"+a.at("runId")+"/events", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token("ana"))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	moved := make(chan error, 1)
	go func() { _, err := w.loop.Resume(context.Background(), w.queued[0], nil); moved <- err }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l keptLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			b.Fatal(err)
		}
		for _, text := range strings.Fields(string(l.Data)) {
			at, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			each(time.Unix(0, at))
		}
	}
	if err := <-moved; err != nil {
		b.Fatal(err)
	}
}
