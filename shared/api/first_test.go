package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/figures"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// BenchmarkFirstByte measures the time from a request to the first and the last byte of each protocol's stream. The
// protocols take turns, so other load on the machine affects all of them equally.
//
//	go test ./shared/api -run '^$' -bench FirstByte -benchtime 400x -benchmem
func BenchmarkFirstByte(b *testing.B) {
	w := newEnv(b)
	token := w.token("ana")
	faces := []struct {
		name, path   string
		asks         func(n int) string
		first, whole figures.Times
	}{
		{"own", "/api/agent/run/stream", func(int) string { return `{"prompt":"hello"}` }, nil, nil},
		{"ui", uiPath, func(n int) string { return says(fmt.Sprint("ui", n), "m", "hello") }, nil, nil},
		{"agui", aguiPath, func(n int) string { return input(fmt.Sprint("agui", n), "r", "hello", "") }, nil, nil},
	}
	for n := 0; b.Loop(); n++ {
		for i := range faces {
			f := &faces[(n+i)%len(faces)]
			w.model.Then(script.Turn{Text: "Hello."})
			began := time.Now()
			body := w.opens(b, token, f.path, f.asks(n))
			if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
				b.Fatal(err)
			}
			f.first.Since(began)
			if rest, err := io.ReadAll(body); err != nil || !strings.Contains(string(rest), "Hello.") {
				b.Fatalf("%s: %v, %s; want rest with “Hello.”", f.name, err, rest)
			}
			f.whole.Since(began)
			_ = body.Close()
		}
	}
	for _, f := range faces {
		f.first.Report(b, f.name+"-first")
		f.whole.Report(b, f.name+"-whole")
	}
}

// opens requests a stream.
func (w *env) opens(b *testing.B, token, path, body string) io.ReadCloser {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), "POST", w.url+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		b.Fatalf("%s answered %d", path, res.StatusCode)
	}
	return res.Body
}
