// Command contents checks that Gemini would refuse no request, and that what the model is told is true.
//
//	go run ./scripts/prove/contents                               100,000 requests, without a wire
//	go run ./scripts/prove/contents -requests 1000000 -seed 7
//	go run ./scripts/prove/contents -requests 20000 -wire         through Google's client, over HTTP
//
// It walks through random stories: a user asks, writes again while something waits, approves, edits, rejects, confirms,
// starts anew, lets approvals expire and cancels; the model makes parallel calls, calls what does not exist, repeats
// itself, writes what cannot be read and fails; the provider loses answers; processes die before and behind their
// commits and others go on. Each request is checked by the strict fake, and each response in it against the user's
// decisions and the provider's effects. A fault is printed with the seed of its story, which repeats it with -seed and
// -stories 1. It exits with 1 when there was one.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"time"
)

// steps of one story.
const steps = 120

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	requests := flag.Int("requests", 100_000, "how many requests to make")
	seed := flag.Uint64("seed", 1, "the first story's seed")
	stories := flag.Int("stories", 0, "how many stories to walk through at most; 0 is no limit")
	overWire := flag.Bool("wire", false, "send the requests through Google's client over HTTP")
	flag.Parse()
	var over *wire
	if *overWire {
		var err error
		if over, err = newWire(); err != nil {
			fmt.Fprintln(os.Stderr, "contents:", err)
			os.Exit(2)
		}
		defer over.server.Close()
	}
	total := series(ctx, *seed, *stories, *requests, over, os.Stdout)
	total.print(os.Stdout)
	if total.faults > 0 {
		os.Exit(1)
	}
}

// tally is the result of a series of stories.
type tally struct {
	stories, faults int
	count           map[string]int
	took            time.Duration
}

// series walks through stories until enough requests were made, and prints each fault with its story's seed.
func series(ctx context.Context, seed uint64, stories, requests int, over *wire, out io.Writer) tally {
	t := tally{count: map[string]int{}}
	began := time.Now()
	for t.count["requests"] < requests && (stories == 0 || t.stories < stories) && ctx.Err() == nil {
		w := tell(ctx, seed+uint64(t.stories), over)
		for _, f := range w.faults {
			fmt.Fprintf(out, "seed %d: %s\n", seed+uint64(t.stories), f)
		}
		t.faults += len(w.faults)
		for k, n := range w.count {
			t.count[k] += n
		}
		if t.stories++; t.stories%500 == 0 {
			fmt.Fprintf(out, "%d requests, %d faults, %s\n", t.count["requests"], t.faults,
				time.Since(began).Round(time.Second))
		}
	}
	t.took = time.Since(began)
	return t
}

// tell walks through one story. A panic in it is a fault.
func tell(ctx context.Context, seed uint64, over *wire) *walk {
	w := newWalk(seed, over)
	defer func() {
		if r := recover(); r != nil {
			w.fault("panic: %v", r)
		}
	}()
	w.walk(ctx, steps)
	return w
}

func (t tally) print(out io.Writer) {
	fmt.Fprintf(out, "%d requests in %d stories, %d faults, %s, %.0f requests a second\n",
		t.count["requests"], t.stories, t.faults, t.took.Round(time.Second),
		float64(t.count["requests"])/t.took.Seconds())
	for _, k := range slices.Sorted(maps.Keys(t.count)) {
		fmt.Fprintf(out, "%9d %s\n", t.count[k], k)
	}
}
