package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
)

// harmless is the prompt of a load test. Calls that the model requests in spite of it are rejected.
const harmless = "This is a load test. Call no tool. Answer with the word ok."

const (
	maxTries = 20               // the maximum number of tries of a request that is refused temporarily
	longest  = time.Minute      // the longest wait between two tries
	patience = 30 * time.Minute // the longest wait for one run
)

// loadTest starts runs at a deployment with the tokens of users, and deletes the conversations of the runs that end. It
// approves nothing. Calls that a user always allows still run.
func loadTest(flags *flag.FlagSet) runFunc {
	tokens := flags.String("token", "", "ID tokens of the users, separated by commas (default: LOADTEST_TOKENS)")
	runs := flags.Int("runs", 100, "the number of runs")
	atOnce := flags.Int("at-once", 10, "the number of runs at the same time")
	prompt := flags.String("prompt", harmless, "the prompt of each run")
	return func(ctx context.Context, o *operator, args []string) error {
		base, err := baseURL(args[0])
		if err != nil {
			return err
		}
		given := cmp.Or(*tokens, o.getenv("LOADTEST_TOKENS"))
		if given == "" || *runs < 1 || *atOnce < 1 {
			return errors.New("required: -token with at least one ID token, and -runs and -at-once of at least 1")
		}
		l := &load{prompt: *prompt, ended: map[string]int{}}
		for _, token := range strings.Split(given, ",") {
			l.users = append(l.users, testkit.Connect(nil, base, token))
		}
		l.all(ctx, *runs, *atOnce)
		return l.report(o)
	}
}

// load collects the results of runs.
type load struct {
	users  []testkit.Client
	prompt string

	mu       sync.Mutex
	ended    map[string]int // number of runs, by status or error
	took     []time.Duration
	refused  int // requests that were refused temporarily, and repeated
	rejected int // rejected calls
}

// all starts the runs, several at a time, and waits for them.
func (l *load) all(ctx context.Context, runs, atOnce int) {
	next := make(chan int)
	var working sync.WaitGroup
	for range atOnce {
		working.Go(func() {
			for n := range next {
				began := time.Now()
				status, err := l.one(ctx, l.users[n%len(l.users)], fmt.Sprintf("loadtest-%d-%d", began.UnixNano(), n))
				if err != nil {
					status = err.Error()
				}
				l.mu.Lock()
				l.ended[status]++
				l.took = append(l.took, time.Since(began))
				l.mu.Unlock()
			}
		})
	}
	for n := range runs {
		next <- n
	}
	close(next)
	working.Wait()
}

// one starts a run and follows it to its end. It rejects every call that waits for approval, and then deletes the
// conversation.
func (l *load) one(ctx context.Context, user testkit.Client, key string) (status string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := l.asked(ctx, func() (testkit.Answer, error) {
		return user.Ask(ctx, l.prompt, "Idempotency-Key", key)
	})
	for err == nil && !over(r.Status) {
		for _, a := range r.Approvals {
			l.mu.Lock()
			l.rejected++
			l.mu.Unlock()
			reject := func() (testkit.Answer, error) { return user.Resolve(ctx, a, "reject") }
			if _, err := l.asked(ctx, reject); err != nil {
				return "", err
			}
		}
		id := r.RunID
		r, err = l.asked(ctx, func() (testkit.Answer, error) { return user.Ended(ctx, id) })
	}
	if err != nil {
		return "", err
	}
	_, err = l.asked(ctx, func() (testkit.Answer, error) {
		return user(ctx, http.MethodDelete, "/api/agent/threads/"+r.ThreadID, nil)
	})
	return r.Status, err
}

func over(status string) bool {
	return slices.Contains([]string{"completed", "failed", "cancelled", "expired"}, status)
}

// asked sends a request. If it is refused temporarily, asked repeats it after Retry-After.
func (l *load) asked(ctx context.Context, send func() (testkit.Answer, error)) (testkit.Answer, error) {
	for try := 1; ; try++ {
		a, err := send()
		busy := err == nil && (a.HTTP == http.StatusTooManyRequests || a.HTTP == http.StatusServiceUnavailable)
		switch {
		case err != nil || a.HTTP < 300:
			return a, err
		case !busy || try == maxTries:
			return a, fmt.Errorf("HTTP %d %s", a.HTTP, a.Error.Code)
		}
		l.mu.Lock()
		l.refused++
		l.mu.Unlock()
		seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		if err := wait.For(ctx, min(time.Duration(seconds)*time.Second, longest)); err != nil {
			return a, err
		}
	}
}

// report prints the results. It returns errFailed if a run did not complete.
func (l *load) report(o *operator) (err error) {
	slices.Sort(l.took)
	at := func(share float64) time.Duration {
		return l.took[int(share*float64(len(l.took)-1))].Round(time.Millisecond)
	}
	for _, status := range slices.Sorted(maps.Keys(l.ended)) {
		err = errors.Join(err, o.printf("%6d  %s", l.ended[status], status))
	}
	err = errors.Join(err,
		o.printf("a run took %s (half), %s (9 of 10), %s (99 of 100), %s (the longest)", at(0.5), at(0.9), at(0.99),
			at(1)),
		o.printf("%d requests were refused for now and repeated, %d calls were rejected, and none was approved",
			l.refused, l.rejected))
	if l.ended["completed"] != len(l.took) {
		return cmp.Or(err, errFailed)
	}
	return err
}
