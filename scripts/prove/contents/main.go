// Package contents checks that Gemini would accept every request, and that the contents of the requests are true.
//
// It plays random stories. The user writes (also while something waits), approves, edits, rejects, confirms, starts
// over, lets approvals expire, cancels and compresses. The model makes parallel calls, calls tools that do not exist,
// repeats itself, writes malformed answers, and fails. The provider loses answers. Processes die before and after their
// commits, and other processes continue their runs. A strict fake checks each request. The proof compares each response
// in it with the user's decisions and the provider's effects.
package contents

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// options are the flags.
type options struct {
	requests, stories int
	wire              bool
}

// steps is the number of steps of a story.
const steps = 120

// met lists the situations that must occur in the stories. Without them, the run proves nothing.
var met = []string{"requests", "responses compared", "parallel calls", "correction", "model error", "call made again",
	"asked while something waits", "long thread", "expired", "cancelled", "process died", "tool withdrawn",
	"edits told", "decided approve_once", "decided approve_and_always_allow_recipient", "decided approve_with_edits",
	"decided reject", "decided confirm_done", "decided start_new", "summarised", "results cut", "told in words",
	"compressed by hand", "more than the model reads"}

// Proof is the command that scripts/prove runs.
func Proof() proof.Proof {
	o := options{requests: 100_000}
	return proof.Proof{
		Name: "contents", Chance: true, List: list,
		Tries: "random stories: every request to Gemini must follow its rules and be true",
		Takes: "7 minutes; -requests 2000 is a sample of 10 s",
		About: `A finding names the seed of its story, which repeats it with -seed and -stories 1.`,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&o.requests, "requests", o.requests, "how many requests to make")
			f.IntVar(&o.stories, "stories", 0, "the maximum number of stories; 0 is no limit")
			f.BoolVar(&o.wire, "wire", false, "send the requests through Google's client over HTTP, which takes longer")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return execute(ctx, o, r) },
	}
}

func list() ([]proof.Count, error) {
	return []proof.Count{
		{N: 100_000, What: "requests to the model, unless -requests says otherwise"},
		{N: steps, What: "steps of each story"},
		{N: len(met), What: "things that stories must have met: " + strings.Join(met, "; ")},
	}, nil
}

func execute(ctx context.Context, o options, r *proof.Run) error {
	var over *wire
	if o.wire {
		var err error
		if over, err = newWire(); err != nil {
			return err
		}
		defer over.server.Close()
	}
	series(ctx, o, r, over)
	for _, what := range met {
		if o.stories == 0 && o.requests >= 1500 && ctx.Err() == nil && r.Counted(what) == 0 {
			r.Finding("the stories", "none had: %s", what)
		}
	}
	return nil
}

// series plays stories until enough requests were made.
func series(ctx context.Context, o options, r *proof.Run, over *wire) {
	for n := 0; r.Counted("requests") < o.requests && (o.stories == 0 || n < o.stories) && ctx.Err() == nil; n++ {
		seed := r.Seed + uint64(n)
		name, w := fmt.Sprintf("the story of seed %d", seed), tell(ctx, seed, over)
		for _, f := range w.faults {
			r.Finding(name, "%s", f)
		}
		if len(w.faults) == 0 {
			r.Held(name, "%d requests", w.count["requests"])
		}
		for what, times := range w.count {
			r.Count(what, times)
		}
		if (n+1)%500 == 0 {
			r.Note("%d stories, %d requests, %d findings", n+1, r.Counted("requests"), r.Findings())
		}
	}
}

// tell plays one story. A panic during the story is a finding.
func tell(ctx context.Context, seed uint64, over *wire) *scenario {
	w := newScenario(seed, over)
	defer func() {
		if r := recover(); r != nil {
			w.fault("panic: %v", r)
		}
	}()
	w.scenario(ctx, steps)
	return w
}
