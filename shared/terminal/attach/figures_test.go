package attach

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/figures"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// BenchmarkAttached attaches 200 terminals of 10 users. It reports the memory of this process, which contains the
// server and the clients, and the goroutines that are left when the terminals are closed.
//
//	go test ./shared/terminal/attach -run '^$' -bench Attached -benchtime 1x -benchmem
func BenchmarkAttached(b *testing.B) {
	const users, each = 10, 20
	w := newWorld(b, sshd.Start(b, sshd.Options{}), Times{Answer: time.Minute})
	for u := range users {
		for i := range each {
			w.add(userOf(u), hostID, fmt.Sprintf("%s-%026d", hostID, i))
		}
	}
	for b.Loop() {
		before, goroutines := heap(), runtime.NumGoroutine()
		var all []*client
		for u := range users {
			for i := range each {
				c := w.attach(userOf(u), fmt.Sprintf("%s-%026d", hostID, i))
				c.types("echo he''re\r")
				c.sees("here")
				all = append(all, c)
			}
		}
		b.ReportMetric((heap()-before)/(1<<20), "MiB")
		b.ReportMetric(float64(w.pool.Open()), "connections")
		for _, c := range all {
			_ = c.conn.CloseNow()
		}
		w.serving.Wait()
		if err := w.pool.Close(); err != nil {
			b.Error(err)
		}
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines-left")
	}
}

func userOf(n int) string { return fmt.Sprintf("user-%d", n) }

// heap returns the bytes that the heap and the stacks use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}

// BenchmarkEcho reports the time until the echo of a key arrives from an attached terminal, and the same for a plain
// PTY over the same connection.
//
//	go test ./shared/terminal/attach -run '^$' -bench Echo -benchtime 200x -benchmem
func BenchmarkEcho(b *testing.B) {
	w := newWorld(b, sshd.Start(b, sshd.Options{}), Times{})
	its, err := terminal.ReadHost(b.Context(), w.store, "ana", hostID)
	if err != nil {
		b.Fatal(err)
	}
	conn, release, err := w.Get(b.Context(), &its)
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	in, typed := io.Pipe()
	printed := make(chan []byte, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = conn.Exec(b.Context(), supervisor.Exec{Line: "cat", Stdin: in, PTY: &supervisor.Size{Cols: 80, Rows: 24},
			Stdout: writer(func(p []byte) (int, error) { printed <- bytes.Clone(p); return len(p), nil })})
	}()
	c := w.attach("ana", terminalID)
	c.types("stty -icanon; cat\r")
	c.sees("cat\r\n")
	var plain, attached figures.Times
	for n := 0; b.Loop(); n++ {
		key := string(rune('a' + n%26)) // a different key each time: cat prints the last one again
		began := time.Now()
		if _, err := io.WriteString(typed, key); err != nil {
			b.Fatal(err)
		}
		for !bytes.Contains(<-printed, []byte(key)) {
		}
		plain.Since(began)
		c.screen.Reset()
		began = time.Now()
		c.types(key)
		c.sees(key)
		attached.Since(began)
	}
	plain.Report(b, "plain")
	attached.Report(b, "attached")
	_ = typed.Close()
	_ = c.conn.CloseNow()
	w.serving.Wait()
	if err := w.pool.Close(); err != nil {
		b.Error(err)
	}
	<-done
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
