package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
)

// BenchmarkTurn measures a text turn over HTTP, from the prompt to the stored answer: on the embedded store, with a
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

// BenchmarkTold is a turn of which a collector is told nothing, metrics, traces or both. The collector takes no time,
// and neither does the model, which in a real turn takes a second or more. What is sent is sent after the answer, but
// before the next turn begins.
//
//	go test ./shared/app -run '^$' -bench Told -benchmem
func BenchmarkTold(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	to := "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL
	for _, told := range []struct {
		of       string
		settings []string
	}{
		{"nothing", nil},
		{"metrics", []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=" + collector.URL}},
		{"traces", []string{to, "OTEL_METRICS_EXPORTER=none"}},
		{"both", []string{to}},
	} {
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
