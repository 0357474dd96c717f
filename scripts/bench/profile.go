package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// profiles runs only Countersign, and prints where each task spends its time.
func (b *bench) profiles(ctx context.Context) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return err
	}
	c, err := profiled(b.dir)
	if err != nil {
		return err
	}
	if err := build(ctx, b.options, []*contestant{c}); err != nil {
		return err
	}
	c.env = append(c.env, "BENCH_PROFILE="+addr)
	s := &server{contestant: c, port: 9300, model: b.model, data: filepath.Join(b.data, c.name)}
	b.running = append(b.running, s)
	if _, err := s.start(ctx); err != nil {
		return fmt.Errorf("%w; its output: %s", err, s.output())
	}
	for _, w := range works {
		for _, clients := range []int{1, 16, 64} {
			if err := b.profileOf(ctx, s, w, clients, addr); err != nil {
				return err
			}
		}
	}
	return nil
}

// profiled is Countersign with one additional file, which serves its profiles. Nothing in the tree changes.
func profiled(dir string) (*contestant, error) {
	c := local(filepath.Join(dir, "profiled"))
	source, err := filepath.Abs(filepath.Join("profiled", "serve.go.txt"))
	if err != nil {
		return nil, err
	}
	place, err := filepath.Abs(filepath.Join(c.buildIn, "scripts", "dev", "local", "bench_profile.go"))
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{place: source}})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "profiled"), 0o755); err != nil {
		return nil, err
	}
	overlay := filepath.Join(dir, "profiled", "overlay.json")
	c.build = append([]string{"-overlay", overlay}, c.build...)
	return c, os.WriteFile(overlay, text, 0o644)
}

// profileOf prints the top of a profile that is taken while clients work.
func (b *bench) profileOf(ctx context.Context, s *server, w work, clients int, addr string) error {
	if _, err := s.do(ctx, w, clients, time.Second); err != nil { // warm
		return err
	}
	seconds := max(3, int(b.length.Seconds()))
	name := filepath.Join(b.dir, "profiled", fmt.Sprintf("%s-%d.pprof", w, clients))
	taken := make(chan error, 1)
	go func() {
		profiles := "http://" + addr + "/debug/pprof/"
		time.Sleep(time.Second)
		err := save(ctx, profiles+"goroutine?debug=1", strings.TrimSuffix(name, ".pprof")+"-waits.txt")
		taken <- errors.Join(err, save(ctx, profiles+"profile?seconds="+strconv.Itoa(seconds-1), name))
	}()
	bl, err := s.do(ctx, w, clients, time.Duration(seconds)*time.Second)
	if takenErr := <-taken; err == nil {
		err = takenErr
	}
	if err != nil {
		return err
	}
	shares, err := shares(ctx, name)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s, %d clients: %.0f/s, p50 %.2f ms, %.2f ms of CPU and %.1f polls each, and %.2f ms of the model's "+
		"and the users' CPU (%s)\n", w, clients, bl.PerSecond, bl.P50, bl.CPU, bl.Polls, bl.Beside, name)
	for _, c := range shares {
		fmt.Printf("  %5.1f %%  %s\n", c.share, c.what)
	}
	return nil
}

// cost is a part of a request's time: the time within certain functions and their callees. Costs may overlap.
type cost struct {
	what  string
	in    []string // the ends of the functions' names; none of one cost calls another
	share float64  // of all CPU time, in percent
}

var costs = []cost{
	{what: "commits", in: []string{"store/embedded.(*Store).Commit"}},
	{what: "disk syncs of commits", in: []string{"lib._sqlite3OsSync"}},
	{what: "folding a run's events", in: []string{"journal.(*Execution).fold"}},
	{what: "waiting for a run's end, its reads included", in: []string{"api.(*request).awaitRest"}},
	{what: "reads", in: []string{"store/embedded.(*Store).Get", "store/embedded.(*Store).Query"}},
	{what: "asking the model", in: []string{"model/gemini.(*Model).Generate"}},
	{what: "what is written in a commit", in: []string{"journal.(*Tx).prepareWrites"}},
	{what: "verifying tokens", in: []string{"auth.(*Verifier).User", "auth.(*Verifier).Push"}},
	{what: "log lines", in: []string{"slog.(*Logger).logAttrs", "slog.(*Logger).log"}},
	{what: "the queue", in: []string{"queue/embedded.(*Queue).Run"}},
	{what: "the local Gmail", in: []string{"fakegoogle.(*Server).ServeHTTP"}},
	{what: "the mail tool, its draft included", in: []string{"tools/gmail.(*Tool).Execute"}},
	{what: "answering polls of a run", in: []string{"api.getRun"}},
	{what: "collecting garbage", in: []string{"runtime.gcBgMarkWorker"}},
	{what: "reading requests", in: []string{"net/http.(*conn).readRequest"}},
	{what: "the scheduler", in: []string{"runtime.schedule"}},
	{what: "calls of the kernel, wherever they are made", in: []string{"syscall/linux.Syscall6"}},
}

// shares returns the costs in a profile, the largest first.
func shares(ctx context.Context, profile string) ([]cost, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodefraction=0", "-nodecount=10000",
		profile).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool pprof: %w", err)
	}
	found := slices.Clone(costs)
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line) // flat, flat %, sum %, cum, cum %, name
		if len(f) < 6 {
			continue
		}
		share, _ := strconv.ParseFloat(strings.TrimSuffix(f[4], "%"), 64) // lines of the head have none
		for i, c := range found {
			if slices.ContainsFunc(c.in, func(end string) bool { return strings.HasSuffix(f[5], end) }) {
				found[i].share += share
			}
		}
	}
	slices.SortFunc(found, func(a, b cost) int { return cmp.Compare(b.share, a.share) })
	return slices.DeleteFunc(found, func(c cost) bool { return c.share < 1 }), nil
}

// save writes the response of a URL to a file.
func save(ctx context.Context, url, name string) error {
	res, err := getOK(ctx, url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, res.Body); err != nil {
		return err
	}
	return f.Close()
}
