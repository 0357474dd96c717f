package eval

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Stage takes the place of the tools and of the user in one conversation. Its methods are safe for concurrent use.
type Stage struct {
	of    *Case
	reads []string

	mu   sync.Mutex
	used map[string]int // number of results that were returned, by tool and arguments

}

// notRun is the result of a call for which the case has none.
var notRun = json.RawMessage(`{"note":"not run in an evaluation"}`)

func newStage(c *Case, o Options) *Stage {
	return &Stage{of: c, reads: o.Reads, used: map[string]int{}}
}

// Case returns the case of the conversation.
func (s *Stage) Case() *Case { return s.of }

// Result returns the recorded result of a call, in place of the tool. A failure is the text of an error. Results for
// the call's arguments have precedence over those for any. They are returned in their order, the last one repeatedly.
func (s *Stage) Result(c Call) (result json.RawMessage, failure string) {
	key := c.Tool + " " + string(c.Args)
	var fitting []recorded
	for _, r := range s.of.results[c.Tool] {
		if r.args != nil && within(decoded(r.args), decoded(c.Args)) {
			fitting = append(fitting, r)
		}
	}
	if fitting == nil {
		key = c.Tool
		fitting = slices.DeleteFunc(slices.Clone(s.of.results[c.Tool]), func(r recorded) bool { return r.args != nil })
	}
	if len(fitting) == 0 {
		return notRun, ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := fitting[min(s.used[key], len(fitting)-1)]
	s.used[key]++
	return r.value, r.fails
}

// Runs reports whether the tool itself answers its calls: one that only reads, and that [Options.Reads] names. A tool
// with an effect never does.
func (s *Stage) Runs(tool string, effect bool) bool { return !effect && slices.Contains(s.reads, tool) }

// Approves reports whether the user approves calls of the tool.
func (s *Stage) Approves(tool string) bool {
	yes, said := s.of.approvals[tool]
	return yes || !said
}

// checkReads returns an error for names in Options.Reads that are not tools that only read.
func checkReads(reads []string, tools map[string]bool) error {
	for _, name := range reads {
		if effect, known := tools[name]; !known {
			return fmt.Errorf("reads: the agent has no tool %s", name)
		} else if effect {
			return fmt.Errorf("reads: %s changes something; only tools that read can run in an evaluation", name)
		}
	}
	return nil
}

// checkNames returns a problem for each name that no tool has. Such a name would silently have no meaning.
func (c *Case) checkNames(tools map[string]bool) (problems []string) {
	if c.foreign {
		return nil
	}
	var expected []string
	for _, t := range c.turns {
		if t.calls == nil {
			continue
		}
		for _, e := range t.calls.expect {
			expected = append(expected, e.tool)
		}
	}
	for key, names := range map[string][]string{"calls": expected, "never": c.never,
		"tools":     slices.Collect(maps.Keys(c.results)),
		"approvals": slices.Collect(maps.Keys(c.approvals))} {
		for _, name := range names {
			if _, known := tools[name]; !known {
				problems = append(problems, fmt.Sprintf("%s: %s: there is no tool %s", c.ID(), key, name))
			}
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}
