package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// block is one task of one contestant, performed by some clients for a while.
type block struct {
	Contestant string  `json:"contestant"`
	Work       work    `json:"work"`
	Clients    int     `json:"clients"`
	Units      int     `json:"units"`
	PerSecond  float64 `json:"perSecond"`
	P50        float64 `json:"p50ms"`
	P99        float64 `json:"p99ms"`
	CPU        float64 `json:"cpuMsPerUnit"`
	Beside     float64 `json:"besideMsPerUnit"` // CPU time of the model and the users
	Polls      float64 `json:"pollsPerUnit"`
	Refused    int     `json:"refused,omitempty"`
}

// do lets clients, each a different user, repeat a task for a while.
func (s *server) do(ctx context.Context, w work, clients int, length time.Duration) (block, error) {
	b := block{Contestant: s.name, Work: w, Clients: clients}
	var users []*client
	for n := range clients {
		c, err := s.client(ctx, n)
		if err != nil {
			return b, err
		}
		c.every = time.Duration(2*clients) * time.Millisecond
		users = append(users, c)
		defer c.close()
	}
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var group sync.WaitGroup
	spent, beside, began := s.cpu(), cpu(os.Getpid()), time.Now()
	for _, c := range users {
		group.Go(func() {
			took, refusals, err := c.repeat(ctx, w, began.Add(length))
			mu.Lock()
			defer mu.Unlock()
			all, errs = append(all, took...), append(errs, err)
			b.Refused, b.Polls = b.Refused+refusals, b.Polls+float64(c.polls)
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return b, fmt.Errorf("%s by %d clients: %w", w, clients, err)
	}
	if len(all) == 0 {
		return b, fmt.Errorf("%s by %d clients: no turn completed in %v", w, clients, length)
	}
	slices.Sort(all)
	seconds, n := time.Since(began).Seconds(), float64(len(all))
	b.Units, b.PerSecond, b.CPU, b.Polls = len(all), n/seconds, 1000*(s.cpu()-spent)/n, b.Polls/n
	b.Beside = 1000 * (cpu(os.Getpid()) - beside) / n
	b.P50, b.P99 = quantile(all, 0.5), quantile(all, 0.99)
	return b, nil
}

// repeat performs a task until the time is over. It counts and repeats requests that are refused with 429 or 503.
func (c *client) repeat(ctx context.Context, w work, end time.Time) (all []time.Duration, refusals int, err error) {
	for time.Now().Before(end) && ctx.Err() == nil {
		took, err := c.unit(w)
		var no refused
		switch {
		case errors.As(err, &no) && (no.status == 429 || no.status == 503):
			refusals++
			time.Sleep(10 * time.Millisecond)
		case err != nil:
			return all, refusals, err
		default:
			all = append(all, took)
		}
	}
	return all, refusals, nil
}

func quantile(sorted []time.Duration, q float64) float64 {
	return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000
}

// twice creates 20 waiting calls, approves each twice at the same time, and returns the number of effects.
func (s *server) twice(ctx context.Context) (int, error) {
	const calls = 20
	w := action
	if s.prompts[mail] != "" {
		w = mail // ours counts e-mails
	}
	before, err := s.effects(ctx, s.base())
	if err != nil {
		return 0, err
	}
	for range calls {
		if err := s.bothAtOnce(ctx, w); err != nil {
			return 0, err
		}
	}
	after, err := s.effects(ctx, s.base())
	return after - before, err
}

// bothAtOnce approves one call on two connections at once. A server may refuse one of them.
func (s *server) bothAtOnce(ctx context.Context, w work) error {
	var users [2]*client
	for i := range users {
		c, err := s.client(ctx, 0)
		if err != nil {
			return err
		}
		users[i] = c
		defer c.close()
	}
	a, err := users[0].ask(w)
	if err != nil {
		return err
	}
	if len(a.Approvals) != 1 {
		return fmt.Errorf("a run has %d approvals, and is %s", len(a.Approvals), a.Status)
	}
	var errs [2]error
	var group sync.WaitGroup
	for i, c := range users {
		group.Go(func() {
			var yes answer
			if yes, errs[i] = c.approve(a.Approvals[0].ApprovalID); errs[i] == nil {
				_, errs[i] = c.end(yes)
			}
		})
	}
	group.Wait()
	if errs[0] != nil && errs[1] != nil {
		return errors.Join(errs[:]...)
	}
	return nil
}

// ticks is the number of units per second in which Linux counts CPU time (USER_HZ).
const ticks = 100

// cpu returns the seconds of CPU time of a process, 0 when it has ended.
func cpu(pid int) float64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return sum(strings.Fields(rest)[11:13])
}

// machineBusy returns the seconds of CPU time of everything on this machine.
func machineBusy() float64 {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	f := strings.Fields(line)
	return sum(f[1:4]) + sum(f[6:8]) // user, nice, system; interrupts
}

func sum(fields []string) (seconds float64) {
	for _, f := range fields {
		n, _ := strconv.ParseFloat(f, 64) // the kernel writes numbers
		seconds += n / ticks
	}
	return seconds
}
