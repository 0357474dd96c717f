package app_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/testkit"
)

// BenchmarkTrip measures a run that waits for approval, the approval, the effect and the model's last words over HTTP:
// two requests, on the embedded store, with a model and an endpoint that answer at once. cpu-us/op is the time of the
// whole process, clients and servers included.
//
//	go test ./shared/app -run '^$' -bench Trip -benchmem -cpu 1
func BenchmarkTrip(b *testing.B) {
	once := buys(b, b.TempDir())
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		once()
	}
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// buys starts Countersign with its store in the directory, and an action of a shop. once is one trip of BenchmarkTrip.
func buys(t testing.TB, dir string) (once func()) {
	outside := shopAndModel(t)
	files := t.TempDir()
	for name, text := range map[string]string{
		"plugin.yaml": "name: shop\nactions:\n  - {name: cart.add, action: ./cart.add.jay-action}\n",
		"cart.add.jay-action": strings.NewReplacer("NAME", "cart.add", "URL",
			outside+"/cart.add").Replace(declared),
	} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := testkit.Open(t, testkit.Options{Dir: dir, App: []app.Option{app.Working(), app.Replace(actions.With(nil))},
		Settings: append([]string{"GOOGLE_GEMINI_BASE_URL=" + outside, "ACTIONS=" + files, "MAX_APPROVALS_PER_DAY=0",
			"ACTION_KEY=0123456789abcdef0123456789abcdef"}, testkit.Unlimited...)})
	ctx, cancel := context.WithCancel(t.Context())
	var moving sync.WaitGroup
	moving.Go(func() { d.App.Work(ctx) })
	t.Cleanup(func() { cancel(); moving.Wait() })
	ana, err := d.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		a, err := ana.Ask(t.Context(), "Put the mug into my cart")
		if err != nil || len(a.Approvals) != 1 {
			t.Fatalf("%v %s; want len(a.Approvals) 1", err, a.Body)
		}
		if a, err = ana.Resolve(t.Context(), a.Approvals[0], "approve_once", testkit.Wait...); err != nil ||
			a.Status != "completed" {
			t.Fatalf("%v %s; want a.Status “completed”", err, a.Body)
		}
	}
}

// shopAndModel starts a model that puts something into a cart, and the shop with the cart. Both answer at once.
func shopAndModel(t testing.TB) (address string) {
	const answer = `{"candidates":[{"content":{"parts":[PART],"role":"model"},"finishReason":"STOP","index":0}],` +
		`"usageMetadata":{"promptTokenCount":812,"candidatesTokenCount":9,"totalTokenCount":821},"modelVersion":"fake"}`
	reply := func(part string) string { return strings.Replace(answer, "PART", part, 1) }
	call := reply(`{"functionCall":{"name":"action_cart_add","args":{"id":"mug"},"id":"c1"},"thoughtSignature":"c2ln"}`)
	words := reply(`{"text":"It is in your cart."}`)
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/cart.add":
			_, _ = io.WriteString(w, `{"items":1}`)
		case strings.Contains(string(body), "functionResponse"):
			_, _ = io.WriteString(w, words)
		default:
			_, _ = io.WriteString(w, call)
		}
	}))
	t.Cleanup(outside.Close)
	return outside.URL
}

// cpuTime returns the processor time that this process has used.
func cpuTime(t testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
