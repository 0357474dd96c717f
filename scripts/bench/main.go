// Command bench compares Countersign's local server with a bare handler and other agent frameworks: the same work,
// one pinned core for each, and a fake Gemini that answers at once.
//
//	scripts/bench/install                      the other frameworks, in pinned versions
//	go -C scripts/bench run .                  measure the installed ones in turns; print the medians
//	go -C scripts/bench run . -only bare,countersign -for 1s -repeat 3
//	go -C scripts/bench run . -profile         what Countersign spends its time on
//
// It is a module of its own, so that no other framework is among Countersign's dependencies. It needs Linux, two cores,
// and taskset: one core is the measured server's alone, and the other has this program, which is the model and the
// users.
package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed peers/*.mjs
var peers embed.FS

// options are the flags.
type options struct {
	only    []string
	length  time.Duration
	repeat  int
	json    string
	profile bool
	dir     string
}

const usage = `usage: go run . [flags]     in scripts/bench

Compares Countersign with the other frameworks that are installed, at the same work on this machine.

  go run . -only countersign -for 1s -repeat 1     a short look at Countersign alone
  go run . -json all.json                          all, and every figure in a file

`

func main() {
	var o options
	only := flag.String("only", "", "names of contestants, with commas between them; all that are installed if empty")
	flag.DurationVar(&o.length, "for", 2*time.Second, "how long each work is done at a time")
	flag.IntVar(&o.repeat, "repeat", 5, "how often each contestant's turn comes; the medians are reported")
	flag.StringVar(&o.json, "json", "", "a file for all that was measured, as JSON")
	flag.BoolVar(&o.profile, "profile", false, "profile Countersign alone at each work, and print what costs most")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := execute(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func execute(ctx context.Context, o options) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	o.dir = cmp.Or(os.Getenv("BENCH_DIR"), filepath.Join(cache, "countersign", "bench-1"))
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	list, err := o.contestants()
	if err != nil {
		return err
	}
	if err := build(ctx, o, list); err != nil {
		return err
	}
	if err := takeCore(ctx, 0, os.Getpid()); err != nil {
		return err
	}
	model, err := startModel()
	if err != nil {
		return err
	}
	defer model.Close()
	data, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	b := &bench{options: o, model: model.url, data: data}
	defer b.stop()
	if o.profile {
		return b.profiles(ctx)
	}
	if err := b.measure(ctx, list); err != nil {
		return err
	}
	return b.report(os.Stdout)
}

// contestants returns the selected contestants that are installed, and prints the missing ones.
func (o options) contestants() (list []*contestant, err error) {
	all := contestants(o.dir)
	for _, name := range o.only {
		if !slices.ContainsFunc(all, func(c *contestant) bool { return c.name == name }) {
			return nil, fmt.Errorf("-only %s: unknown contestant", name)
		}
	}
	for _, c := range all {
		if len(o.only) > 0 && !slices.Contains(o.only, c.name) {
			continue
		}
		if missing := c.missing(); missing != "" {
			fmt.Fprintf(os.Stderr, "skipping %s: %s is missing; scripts/bench/install installs it\n", c.name,
				missing)
			continue
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("no contestant is installed")
	}
	return list, nil
}

// build builds the programs of this repository, with the settings of their module, and puts the peers' own sources next
// to their installed packages.
func build(ctx context.Context, o options, list []*contestant) error {
	if err := o.writePeers(); err != nil {
		return err
	}
	for _, c := range list {
		if len(c.build) == 0 {
			continue
		}
		cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath"}, c.build...)...)
		cmd.Dir, cmd.Stderr = c.buildIn, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %s: %w", c.name, strings.Join(cmd.Args, " "), err)
		}
	}
	return nil
}

func (o options) writePeers() error {
	files, err := peers.ReadDir("peers")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(o.dir, "peers"), 0o755); err != nil {
		return err
	}
	for _, f := range files {
		text, err := peers.ReadFile("peers/" + f.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.dir, "peers", f.Name()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// takeCore pins all threads of a process to one core.
func takeCore(ctx context.Context, core, pid int) error {
	out, err := exec.CommandContext(ctx, "taskset", "-apc", strconv.Itoa(core), strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskset: %w: %s", err, out)
	}
	return nil
}

// bench is a run of this program.
type bench struct {
	options
	model   string // its URL
	data    string // a folder for what the contestants keep
	running []*server

	blocks []block
	colds  map[string][]float64 // ms from the start of a process to its first answer, by contestant
	twice  map[string]int       // effects of 20 calls with two yeses each
	others float64              // cores that other processes took meanwhile, on average
}

func (b *bench) stop() {
	for _, s := range b.running {
		s.kill()
	}
}

// measure starts all contestants, and measures them in turns.
func (b *bench) measure(ctx context.Context, list []*contestant) error {
	b.colds, b.twice = map[string][]float64{}, map[string]int{}
	for i, c := range list {
		s := &server{contestant: c, port: 9300 + i, model: b.model, data: filepath.Join(b.data, c.name)}
		b.running = append(b.running, s)
		if err := b.prepare(ctx, s); err != nil {
			return fmt.Errorf("%s: %w; its output: %s", c.name, err, s.output())
		}
	}
	busy, own, began := machineBusy(), b.spent(), time.Now()
	for turn := range b.repeat {
		for i := range b.running {
			s := b.running[(i+turn)%len(b.running)] // each of them is sometimes the first
			if err := b.turn(ctx, s); err != nil {
				return fmt.Errorf("%s: %w; its output: %s", s.name, err, s.output())
			}
		}
		fmt.Fprintf(os.Stderr, "turn %d of %d is done\n", turn+1, b.repeat)
	}
	b.others = max(0, (machineBusy()-busy)-(b.spent()-own)) / time.Since(began).Seconds()
	return nil
}

// prepare starts a server several times, checks its behaviour, and warms it up.
func (b *bench) prepare(ctx context.Context, s *server) error {
	for range b.repeat + 1 { // the first one makes the files
		took, err := s.start(ctx)
		if err != nil {
			return err
		}
		b.colds[s.name] = append(b.colds[s.name], took)
		if len(b.colds[s.name]) <= b.repeat {
			s.kill()
		}
	}
	b.colds[s.name] = b.colds[s.name][1:]
	n, err := s.twice(ctx)
	if err != nil {
		return fmt.Errorf("two approvals at once: %w", err)
	}
	b.twice[s.name] = n
	for w := range s.prompts {
		if _, err := s.do(ctx, w, 4, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// turn measures each task of a server.
func (b *bench) turn(ctx context.Context, s *server) error {
	for _, w := range works {
		for _, clients := range []int{1, 16, 64} {
			if s.prompts[w] == "" {
				continue
			}
			bl, err := s.do(ctx, w, clients, b.length)
			if err != nil {
				return err
			}
			b.blocks = append(b.blocks, bl)
		}
	}
	return ctx.Err()
}

// spent returns the seconds of CPU time of this program and of its child processes.
func (b *bench) spent() float64 {
	sum := cpu(os.Getpid())
	for _, s := range b.running {
		sum += s.cpu()
	}
	return sum
}

func getOK(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err == nil && res.StatusCode != http.StatusOK {
		res.Body.Close()
		err = fmt.Errorf("%s answered %s", url, res.Status)
	}
	return res, err
}
