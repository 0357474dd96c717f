package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// Agent is an agent that [Run] evaluates: one of a program ([Of]), or another one.
type Agent struct {
	Name string // for the report
	// Tools are the names of all tools that the agent can have, and whether each changes something.
	Tools map[string]bool
	// Begin begins a conversation. The stage answers the calls of tools and the questions to the user.
	Begin func(ctx context.Context, s *Stage) (Conversation, error)
}

// Conversation is a conversation with an [Agent].
type Conversation struct {
	// Send returns the agent's answer, and all calls that its model made for it. The calls are also returned with an
	// error.
	Send func(ctx context.Context, prompt string) (answer string, calls []Call, err error)
	// Close ends the conversation. Nil: nothing to end.
	Close func() error
}

// Options of [Run].
type Options struct {
	Repeat   int           // runs of a case whose file does not state them, up to 100; 0: 1
	Parallel int           // conversations at once, up to 64; 0: 4
	Timeout  time.Duration // of one run; 0: 5 minutes
	Reads    []string      // tools that only read and that really run; see [Stage.Runs]
	Judge    Judge         // nil: measures that need one are not measured, and the report says so
	// Done is called after each run, one call at a time. Nil: nothing is called.
	Done func(c *Case, r RunResult)
}

// Run runs the cases and returns the results, in the order of the cases. If ctx ends, the error is that of ctx, and the
// report has only the runs that had ended. After any other error, there is no report.
func Run(ctx context.Context, a Agent, s *Set, o Options) (*Report, error) {
	if o.Repeat = max(o.Repeat, 1); o.Repeat > maxRepeat {
		return nil, fmt.Errorf("repeat: %d runs; the limit is %d", o.Repeat, maxRepeat)
	}
	if err := checkReads(o.Reads, a.Tools); err != nil {
		return nil, err
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Minute
	}
	r := &Report{Began: time.Now().UTC().Truncate(time.Second), Agent: a.Name, Cases: []CaseResult{},
		Skipped: s.Skipped}
	for _, p := range s.Problems {
		r.Problems = append(r.Problems, p.Error())
	}
	runs := 0
	for _, c := range s.Cases {
		r.Problems = append(r.Problems, c.checkNames(a.Tools)...)
		n := c.repeat
		if n == 0 {
			n = o.Repeat
		}
		runs += n
		r.Cases = append(r.Cases, CaseResult{File: c.File, Name: c.Name, Passes: c.passes, Runs: make([]RunResult, n)})
	}
	if runs > maxRuns {
		return nil, fmt.Errorf("%d runs of %d cases; the limit is %d", runs, len(s.Cases), maxRuns)
	}
	r.runAll(ctx, a, s.Cases, o)
	r.Cases = slices.DeleteFunc(r.Cases, func(c CaseResult) bool { return len(c.Runs) == 0 })
	return r, ctx.Err()
}

// runAll runs the cases, several at a time, and removes the runs that ctx cut off.
func (r *Report) runAll(ctx context.Context, a Agent, cases []*Case, o Options) {
	var all sync.WaitGroup
	var reporting sync.Mutex
	free := make(chan bool, min(o.Parallel, 64))
	for i, c := range cases {
		for n := range r.Cases[i].Runs {
			free <- true
			all.Go(func() {
				defer func() { <-free }()
				result := runCase(ctx, a, c, o)
				reporting.Lock()
				defer reporting.Unlock()
				r.Cases[i].Runs[n] = result
				if o.Done != nil && !result.cutOff {
					o.Done(c, result)
				}
			})
		}
	}
	all.Wait()
	for i := range r.Cases {
		r.Cases[i].Runs = slices.DeleteFunc(r.Cases[i].Runs, func(r RunResult) bool { return r.cutOff })
	}
}

// runCase runs a case once.
func runCase(ctx context.Context, a Agent, c *Case, o Options) (r RunResult) {
	if ctx.Err() != nil {
		return RunResult{cutOff: true}
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var err error
	r.Turns, err = converse(ctx, a, c, o)
	if err == nil {
		r.Measures, err = c.measure(ctx, r.Turns, o.Judge)
	}
	if err != nil {
		r.Error, r.cutOff = clip.Text(err.Error(), 1000), whole.Err() != nil
	}
	r.Passed = err == nil
	for _, m := range r.Measures {
		r.Passed = r.Passed && (m.NotMeasured != "" || m.Score >= m.Need)
	}
	for i := range r.Turns {
		r.Turns[i].Answer = clip.Text(r.Turns[i].Answer, maxKept)
	}
	return r
}

// maxKept limits an answer in a report, in bytes.
const maxKept = 16 << 10

// converse has the case's conversation. After an error it returns the turns until then.
func converse(ctx context.Context, a Agent, c *Case, o Options) (turns []Exchange, err error) {
	talk, err := a.Begin(ctx, newStage(c, o))
	if err != nil {
		return nil, err
	}
	if talk.Close != nil {
		defer func() { err = errors.Join(err, talk.Close()) }()
	}
	for i, t := range c.turns {
		answer, calls, err := talk.Send(ctx, t.prompt)
		turns = append(turns, Exchange{Prompt: t.prompt, Calls: calls, Answer: answer, Reference: t.reference})
		if err != nil {
			return turns, fmt.Errorf("turn %d: %w", i+1, err)
		}
	}
	return turns, nil
}

// measure returns the measures that the case needs.
func (c *Case) measure(ctx context.Context, turns []Exchange, j Judge) (map[string]Score, error) {
	all := map[string]Score{}
	for measure, need := range c.needs {
		s := Score{Need: need}
		var err error
		switch measure {
		case Calls:
			s.Score, s.Why = share(c.turns, turns, c.judgesCalls, c.checkCalls)
		case Words:
			s.Score, s.Why = share(c.turns, turns, turn.hasWords, turn.checkWords)
		case Similar:
			s.Score = c.similarity(turns)
		default:
			if j == nil {
				s.NotMeasured = "no model judges"
				break
			}
			s.Score, s.Why, err = c.judged(ctx, measure, turns, j)
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", measure, err)
		}
		all[measure] = s
	}
	return all, nil
}

// share returns the share of the turns that pass a check, among those that it applies to, and why the first fails.
func share(turns []turn, had []Exchange, applies func(turn) bool, check func(turn, Exchange) string) (score float64,
	why string) {
	passed, of := 0, 0
	for i, t := range turns {
		if !applies(t) {
			continue
		}
		of++
		said := check(t, had[i])
		if said == "" {
			passed++
		} else if why == "" {
			why = fmt.Sprintf("turn %d: %s", i+1, said)
		}
	}
	if of == 0 {
		return 1, ""
	}
	return float64(passed) / float64(of), why
}

// judgesCalls reports whether calls of the turn are expected. Tools that must not be called concern every turn.
func (c *Case) judgesCalls(t turn) bool { return t.calls != nil || len(c.never) > 0 }

func (c *Case) checkCalls(t turn, e Exchange) string {
	for _, call := range e.Calls {
		if slices.Contains(c.never, call.Tool) {
			return "must not be called: " + call.String()
		}
	}
	if t.calls == nil {
		return ""
	}
	return t.calls.check(e.Calls)
}

// similarity returns the mean ROUGE-1 of the turns with a reference.
func (c *Case) similarity(turns []Exchange) float64 {
	sum, of := 0.0, 0
	for _, e := range turns {
		if e.Reference != "" {
			sum += rouge1(e.Reference, e.Answer)
			of++
		}
	}
	return sum / float64(max(of, 1))
}

// judged returns the score of a measure that a model judges, and the statements that are not true.
func (c *Case) judged(ctx context.Context, measure string, turns []Exchange, j Judge) (float64, string, error) {
	asked := []Question{{Model: c.judge.model, Turns: turns, Statements: c.rubrics}}
	if measure == Equivalent {
		asked = nil
		for _, e := range turns {
			if e.Reference != "" {
				asked = append(asked, Question{c.judge.model, []Exchange{e}, []string{equivalence}})
			}
		}
	}
	met, of := 0, 0
	var why []string
	for _, q := range asked {
		all, err := majority(ctx, j, q, max(c.judge.samples, 1))
		if err != nil {
			return 0, "", err
		}
		for i, v := range all {
			of++
			if v.True {
				met++
				continue
			}
			why = append(why, fmt.Sprintf("not true: %s (%s)", clip.Text(q.Statements[i], 200), clip.Text(v.Why, 300)))
		}
	}
	return float64(met) / float64(max(of, 1)), strings.Join(why, "; "), nil
}
