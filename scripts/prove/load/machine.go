package load

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The parts that share the machine. The rest of the machine's time was idle or used by other processes.
const (
	partWorker    = "worker"
	partLoad      = "clients and fakes" // this process
	partFirestore = "Firestore emulator"
	partPubSub    = "Pub/Sub emulator"
	partOthers    = "other processes"
	partIdle      = "idle"
)

const ticksPerSecond = 100 // the unit of the times in /proc, on every Linux that Go runs on

// usage holds the seconds of CPU time by part. It is empty on a system without /proc.
type usage map[string]float64

func (g *env) usage() usage {
	u := usage{partLoad: processSeconds(os.Getpid())}
	g.mu.Lock()
	u[partWorker] = g.spent
	for _, p := range g.workers {
		u[partWorker] += processSeconds(p.PID())
	}
	g.mu.Unlock()
	if g.firestore != nil {
		u[partFirestore], u[partPubSub] = processSeconds(g.firestore.PID()), processSeconds(g.pubsub.PID())
	}
	busy, idle := machineSeconds()
	u[partIdle], u[partOthers] = idle, busy
	for _, part := range []string{partLoad, partWorker, partFirestore, partPubSub} {
		u[partOthers] -= u[part]
	}
	return u
}

// watch measures until the returned function is called. That function reports the cores that each part used, and what
// limited the measurement.
func (g *env) watch(r *Report) (stop func() time.Duration) {
	start, before := time.Now(), g.usage()
	return func() time.Duration {
		took, after := time.Since(start), g.usage()
		cores := map[string]float64{}
		for part := range after {
			cores[part] = round(max(0, after[part]-before[part]) / took.Seconds())
		}
		r.Figures["coresUsed"], r.Figures["rssMiB"] = cores, g.memory()
		r.Limited = limit(cores)
		return took
	}
}

// limit returns what limited the measurement: a part that needs the CPU, or waiting.
func limit(cores map[string]float64) string {
	all := float64(runtime.NumCPU())
	if cores[partIdle] > 0.15*all {
		return fmt.Sprintf("not the CPU: %.2f of %v cores were idle", cores[partIdle], all)
	}
	parts := slices.DeleteFunc(slices.Collect(maps.Keys(cores)), func(p string) bool { return p == partIdle })
	slices.SortFunc(parts, func(a, b string) int { return cmp.Compare(cores[b], cores[a]) })
	var used []string
	for _, p := range parts {
		used = append(used, fmt.Sprintf("%s %.2f", p, cores[p]))
	}
	return fmt.Sprintf("the CPU: of %v cores %s", all, strings.Join(used, ", "))
}

// memory returns the current memory of each part, in MiB.
func (g *env) memory() map[string]float64 {
	m := map[string]float64{partLoad: rss(os.Getpid())}
	g.mu.Lock()
	for i, p := range g.workers {
		m[fmt.Sprintf("%s %d", partWorker, i+1)] = rss(p.PID())
	}
	g.mu.Unlock()
	if g.firestore != nil {
		m[partFirestore], m[partPubSub] = rss(g.firestore.PID()), rss(g.pubsub.PID())
	}
	return m
}

func rss(pid int) float64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return 0
	}
	return round(number(fields[1]) * float64(os.Getpagesize()) / (1 << 20))
}

func processSeconds(pid int) float64 {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, ok := strings.Cut(string(data), ") ") // the name before it may contain anything
	fields := strings.Fields(rest)
	if err != nil || !ok || len(fields) < 13 {
		return 0
	}
	return (number(fields[11]) + number(fields[12])) / ticksPerSecond
}

// machineSeconds returns the busy and the idle seconds of all CPUs together.
func machineSeconds() (busy, idle float64) {
	data, err := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(first)
	if err != nil || len(fields) < 9 {
		return 0, 0
	}
	for i, f := range fields[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
		if i == 3 || i == 4 {
			idle += number(f) / ticksPerSecond
			continue
		}
		busy += number(f) / ticksPerSecond
	}
	return busy, idle
}

func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0 // not a number, so this is not Linux's format
	}
	return f
}
