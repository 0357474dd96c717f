package sdk

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/bench/fake"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

// The variables that start this binary again: as the model, and for a first answer.
const (
	modelVar = "SDK_BENCH_MODEL"
	firstVar = "SDK_BENCH_FIRST" // a contestant's name
	urlVar   = "GOOGLE_GEMINI_BASE_URL"
)

func TestMain(m *testing.M) {
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 64 // or sixteen sessions would reconnect
	switch {
	case os.Getenv(modelVar) != "":
		beModel()
	case os.Getenv(firstVar) != "":
		answerFirst()
	}
	end, err := startModel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	leaktest.Main(m, end)
}

// startModel starts the fake Gemini on another core, where there is taskset.
func startModel() (end func() error, err error) {
	cmd := exec.Command(os.Args[0])
	if taskset, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 0 {
		cmd = exec.Command(taskset, "-c", "0", os.Args[0])
	}
	cmd.Env = append(os.Environ(), modelVar+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe() // which ends it, however this process ends
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var url string
	if _, err := fmt.Fscanln(out, &url); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{urlVar: url, "GEMINI_API_KEY": "fake", "GENKIT_ENV": "prod"} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return func() error { _ = in.Close(); return cmd.Wait() }, nil
}

func beModel() {
	server := httptest.NewServer(fake.Handler(reply))
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// reply makes the call that the prompt spells out, and says words otherwise.
func reply(r fakegemini.Request) fakegemini.Turn {
	if strings.HasPrefix(r.User(), callWeather) && len(r.Responses()) == 0 && !r.NoTools {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "get_weather", Args: place{"Lisbon"}}}, Pieces: 1}
	}
	return fakegemini.Turn{Text: "That is all there is to say about it.", Pieces: 1}
}

const (
	sayHello    = "Say hello."
	callWeather = "How is Lisbon?"
	words       = "That is all there is to say about it."
)

func answerFirst() {
	ask, end, err := contestants[os.Getenv(firstVar)](os.Getenv("DATA_DIR"))
	if err == nil {
		var text string
		if text, err = ask()(context.Background(), sayHello); err == nil {
			fmt.Println(text)
			err = end()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// each runs a benchmark with each contestant, in the order of their names.
func each(b *testing.B, bench func(b *testing.B, session func() turn)) {
	var names []string
	for name := range contestants {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			session, end, err := contestants[name](b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := end(); err != nil {
					b.Error(err)
				}
			}()
			b.ReportAllocs()
			bench(b, session)
		})
	}
}

func must(b *testing.B, ask turn, prompt string) {
	if text, err := ask(b.Context(), prompt); err != nil || text != words {
		b.Fatalf("%v: %q; want text %v", err, text, words)
	}
}

func BenchmarkText(b *testing.B) {
	each(b, func(b *testing.B, session func() turn) {
		for b.Loop() {
			must(b, session(), sayHello)
		}
	})
}

func BenchmarkTool(b *testing.B) {
	each(b, func(b *testing.B, session func() turn) {
		for b.Loop() {
			must(b, session(), callWeather)
		}
	})
}

// BenchmarkLong measures turns in a session that has about 1,000 messages; it grows by two with each.
func BenchmarkLong(b *testing.B) {
	each(b, func(b *testing.B, session func() turn) {
		ask := session()
		for range 500 {
			must(b, ask, sayHello)
		}
		for b.Loop() {
			must(b, ask, sayHello)
		}
	})
}

func BenchmarkSixteen(b *testing.B) {
	each(b, func(b *testing.B, session func() turn) {
		b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
		began := time.Now()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if text, err := session()(b.Context(), sayHello); err != nil || text != words {
					b.Errorf("%v: %q; want text %v", err, text, words)
				}
			}
		})
		b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "turns/s")
	})
}

// BenchmarkFirst measures from the start of a process to its first answer.
func BenchmarkFirst(b *testing.B) {
	for name := range contestants {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), firstVar+"="+name, "DATA_DIR="+b.TempDir())
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), words) {
					b.Fatalf("%v: %s; want out with %q", err, out, words)
				}
			}
		})
	}
}

// BenchmarkIdle measures what a session takes that has answered once: bytes of the heap, and goroutines.
func BenchmarkIdle(b *testing.B) {
	each(b, func(b *testing.B, session func() turn) {
		const sessions = 500
		must(b, session(), sayHello) // what all have in common
		for b.Loop() {
			before, running := heap(), runtime.NumGoroutine()
			idle := make([]turn, sessions)
			for i := range idle {
				idle[i] = session()
				must(b, idle[i], sayHello)
			}
			b.ReportMetric(float64(int64(heap())-int64(before))/sessions, "bytes/session")
			b.ReportMetric(float64(runtime.NumGoroutine()-running), "goroutines")
			runtime.KeepAlive(idle)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestContestants has each answer with words, call its tool, and remember nothing of another session.
func TestContestants(t *testing.T) {
	for name, open := range contestants {
		t.Run(name, func(t *testing.T) {
			session, end, err := open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					ask := session()
					for _, prompt := range []string{sayHello, callWeather, sayHello} {
						before := weathered.Load()
						text, err := ask(t.Context(), prompt)
						if err != nil || text != words || prompt == callWeather && weathered.Load() == before {
							t.Errorf("%s: %v: %q", prompt, err, text)
						}
					}
				})
			}
			all.Wait()
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}
