package app_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
)

// BenchmarkTurn measures a text turn over HTTP, from the prompt to the stored answer, on the embedded store with a
// model that answers at once.
//
//	go test ./shared/app -run '^$' -bench Turn -benchmem
func BenchmarkTurn(b *testing.B) {
	const answer = `{"candidates":[{"content":{"parts":[{"text":"It is ten o'clock.","thoughtSignature":"c2ln"}],` +
		`"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":812,` +
		`"candidatesTokenCount":9,"totalTokenCount":821},"modelVersion":"fake"}`
	gemini := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("alt") == "sse" {
			fmt.Fprintf(w, "data: %s\n\n", answer)
			return
		}
		fmt.Fprint(w, answer)
	}))
	defer gemini.Close()
	d := testkit.Open(b, testkit.Options{Settings: append([]string{"GOOGLE_GEMINI_BASE_URL=" + gemini.URL},
		testkit.Unlimited...)})
	ana, err := d.As(b.Context(), "ana")
	if err != nil {
		b.Fatal(err)
	}
	token, err := d.SignIn(b.Context(), "ana")
	if err != nil {
		b.Fatal(err)
	}
	for name, turn := range map[string]func() (testkit.Answer, error){
		"whole": func() (testkit.Answer, error) { return ana.Ask(b.Context(), "hi") },
		"stream": func() (testkit.Answer, error) {
			return testkit.Stream(b.Context(), nil, d.Base, token, "POST", streamPath, hello,
				func(testkit.Line) bool { return true })
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if a, err := turn(); err != nil || a.HTTP != http.StatusOK {
					b.Fatal(a, err)
				}
			}
		})
	}
}

// BenchmarkTold measures a turn with no telemetry, metrics, traces, or both. The collector takes no time, and neither
// does the model, which takes a second or more in reality. Telemetry is sent after the answer, but before the next turn
// begins.
//
//	go test ./shared/app -run '^$' -bench Told -benchmem
func BenchmarkTold(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	for _, told := range tellings(collector.URL) {
		b.Run(told.of, func(b *testing.B) {
			d := testkit.Open(b, testkit.Options{Settings: append(told.settings, testkit.Unlimited...)})
			d.SetModel(testkit.Says("It is ten o'clock."))
			ana, err := d.As(b.Context(), "ana")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if a, err := ana.Ask(b.Context(), "hi"); err != nil || a.HTTP != http.StatusOK {
					b.Fatal(a, err)
				}
			}
		})
	}
}

// telling maps settings to the telemetry that they enable.
type telling struct {
	of       string
	settings []string
}

func tellings(collector string) []telling {
	to := "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector
	return []telling{{"nothing", nil}, {"metrics", []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=" + collector}},
		{"traces", []string{to, "OTEL_METRICS_EXPORTER=none"}}, {"both", []string{to}}}
}

// BenchmarkToldCPU measures the processor time and allocations of traces and metrics, relative to the same runs without
// them: an e-mail that is requested, approved and sent, one after the other and eight at once. The two variants take
// turns, so a busy machine slows both. The process includes the client, the model and Google; the collector is another
// process.
//
//	go test ./shared/app -run '^$' -bench ToldCPU -benchtime 30x -cpu 1
func BenchmarkToldCPU(b *testing.B) {
	collector := collectorApart(b)
	for _, told := range tellings(collector) {
		for _, atOnce := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d", told.of, atOnce), func(b *testing.B) {
				silent, telling := mailing(b), mailing(b, told.settings...)
				var cpu, allocated []float64
				for b.Loop() {
					cpuOff, allocsOff := spent(b, atOnce, silent)
					cpuOn, allocsOn := spent(b, atOnce, telling)
					cpu, allocated = append(cpu, cpuOn/cpuOff), append(allocated, allocsOn/allocsOff)
				}
				slices.Sort(cpu)
				slices.Sort(allocated)
				b.ReportMetric((cpu[len(cpu)/2]-1)*100, "cpu-%")
				b.ReportMetric((allocated[len(allocated)/2]-1)*100, "allocs-%")
			})
		}
	}
}

// collectorApart starts a collector that reads nothing, in its own process, and returns its address.
func collectorApart(b *testing.B) string {
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), beCollector+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// beCollector is the variable that makes this program a collector instead of a test.
const beCollector = "BE_COLLECTOR"

func serveCollector() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("http://%s\n", ln.Addr())
	panic(http.Serve(ln, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
}

// mailing is a deployment with the settings. It returns a function that does one run.
func mailing(b *testing.B, settings ...string) (once func()) {
	d := testkit.Open(b, testkit.Options{Settings: append(append(settings, "MAX_APPROVALS_PER_DAY=0"),
		testkit.Unlimited...)})
	w := &proved{d, b}
	w.mail()
	return func() {
		a := w.ask()
		if len(a.Approvals) != 1 {
			b.Errorf("%s; want len(a.Approvals) 1", a.Body)
			return
		}
		if got, err := w.Resolve(b.Context(), "ana", a.Approvals[0], "approve_once"); err != nil || got.HTTP != 200 {
			b.Errorf("%v: %s; want got.HTTP 200", err, got.Body)
			return
		}
		w.deliver()
	}
}

// spent returns the processor time in seconds and the allocations of some concurrent runs.
func spent(b *testing.B, atOnce int, once func()) (cpu, allocs float64) {
	const runs = 24
	runtime.GC() // collect the garbage of earlier runs
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime(b)
	var each sync.WaitGroup
	for range atOnce {
		each.Go(func() {
			for range runs / atOnce {
				once()
			}
		})
	}
	each.Wait()
	cpu = (cpuTime(b) - began).Seconds()
	runtime.ReadMemStats(&after)
	return cpu, float64(after.Mallocs - before.Mallocs)
}
