package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is a line of the table: a figure of each contestant, and the target for ours.
type row struct {
	what    string
	work    work
	clients int
	figure  func(block) float64
	format  string
	goal    float64 // what ours may be; 0: anything
	most    bool    // the goal is the most that it may be, not the least
	than    base    // what the goal is a multiple of
}

// base is the figure with which ours is compared, from the same run.
type base struct {
	name    string
	from    string // a contestant
	work    work
	clients int
}

func p50(b block) float64       { return b.P50 }
func perSecond(b block) float64 { return b.PerSecond }
func cpuMs(b block) float64     { return b.CPU }
func tail(b block) float64      { return b.P99 / max(b.P50, 0.001) }

// beside is the figure of the bare handler for a task.
func beside(w work, clients int) base { return base{"bare", bare, w, clients} }

// own is our figure with 16 clients, below which it must not fall with more clients. A difference within the noise of
// two measurements does not count.
func own(w work) base { return base{"its own with 16 clients", ours, w, 16} }

var rows = []row{
	{"durable text turn, 1 client, p50 ms", text, 1, p50, "%.2f", 1.8, true, beside(text, 1)},
	{"the same, 16 clients, turns/s", text, 16, perSecond, "%.0f", 0.55, false, beside(text, 16)},
	{"run, yes, effect, last words: an action, 1 client, p50 ms", action, 1, p50, "%.2f", 2.5, true, beside(action, 1)},
	{"the same, 16 clients, trips/s", action, 16, perSecond, "%.0f", 0.5, false, beside(action, 16)},
	{"run, yes, effect, last words: an e-mail by its draft, 1 client, p50 ms", mail, 1, p50, "%.2f", 0, true,
		beside(action, 1)},
	{"the same, 16 clients, trips/s", mail, 16, perSecond, "%.0f", 0, false, beside(action, 16)},
	{"CPU of a text turn, 16 clients, ms", text, 16, cpuMs, "%.2f", 0, true, beside(text, 16)},
	{"CPU of a trip with an action, 16 clients, ms", action, 16, cpuMs, "%.2f", 0, true, beside(action, 16)},
	{"overload: text, 64 clients, turns/s", text, 64, perSecond, "%.0f", 0.95, false, own(text)},
	{"the same, p99 as a multiple of p50", text, 64, tail, "%.1f", 20, true, base{}},
	{"overload: an action, 64 clients, trips/s", action, 64, perSecond, "%.0f", 0.95, false, own(action)},
	{"the same, p99 as a multiple of p50", action, 64, tail, "%.1f", 20, true, base{}},
}

// median returns a contestant's median, or false if the contestant does not perform this task.
func (b *bench) median(name string, w work, clients int, figure func(block) float64) (float64, bool) {
	var all []float64
	for _, bl := range b.blocks {
		if bl.Contestant == name && bl.Work == w && bl.Clients == clients {
			all = append(all, figure(bl))
		}
	}
	return middle(all), len(all) > 0
}

func middle(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// report writes the table, and the file of figures.
func (b *bench) report(w io.Writer) error {
	names := []string{}
	for _, s := range b.running {
		names = append(names, s.name)
	}
	fmt.Fprintf(w, "| work | %s | goal |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+2))
	for _, r := range rows {
		cells := []string{r.what}
		for _, name := range names {
			cell := ""
			if v, ok := b.median(name, r.work, r.clients, r.figure); ok {
				cell = fmt.Sprintf(r.format, v)
			}
			cells = append(cells, cell)
		}
		fmt.Fprintf(w, "| %s | %s |\n", strings.Join(cells, " | "), b.verdict(r))
	}
	line := func(what, goal string, cell func(name string) string) {
		cells := []string{what}
		for _, name := range names {
			cells = append(cells, cell(name))
		}
		fmt.Fprintf(w, "| %s | %s |\n", strings.Join(cells, " | "), goal)
	}
	line("two approvals at once: 20 calls run", "20", func(name string) string {
		return fmt.Sprint(b.twice[name])
	})
	line("from the start of the process to its first answered turn, ms", "", func(name string) string {
		return fmt.Sprintf("%.0f", middle(b.colds[name]))
	})
	fmt.Fprintf(w, "\n%s; %d turns of %v for each; other processes took %.2f of the %d cores meanwhile.\n",
		time.Now().UTC().Format(time.DateOnly), b.repeat, b.length, b.others, runtime.NumCPU())
	for _, s := range b.running {
		fmt.Fprintf(w, "`%s`: %s. ", s.name, s.about)
	}
	fmt.Fprintln(w)
	if b.json == "" {
		return nil
	}
	out, err := json.MarshalIndent(map[string]any{"blocks": b.blocks, "startMs": b.colds, "effectsOf20": b.twice,
		"otherCores": b.others}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(b.json, append(out, '\n'), 0o644)
}

// verdict returns the target of a row, our figure, and whether the target is met.
func (b *bench) verdict(r row) string {
	got, has := b.median(ours, r.work, r.clients, r.figure)
	if !has {
		return ""
	}
	sign, met, unit := "≥", got >= r.goal, ""
	if r.than.name != "" {
		than, has := b.median(r.than.from, r.than.work, r.than.clients, r.figure)
		if !has || than == 0 {
			return ""
		}
		got, unit = got/than, " × "+r.than.name
		met = got >= r.goal
	}
	if r.goal == 0 {
		return fmt.Sprintf("(is %.2f%s)", got, unit)
	}
	if r.most {
		sign, met = "≤", got <= r.goal
	}
	verdict := "**missed**"
	if met {
		verdict = "met"
	}
	return fmt.Sprintf("%s %v%s; is %.2f, %s", sign, r.goal, unit, got, verdict)
}
