package crash

import (
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// variant is how a worker is struck.
type variant string

const (
	plain  variant = "killed"
	storm  variant = "killed, each message three times"
	zombie variant = "stopped beyond its lease, and woken at the end"
	twin   variant = "stopped, another does the same, and woken"
	spared variant = "spared: its host alone is struck"
)

var variants = []variant{plain, storm, zombie, twin}

// variants are how a worker is struck that does something of the kind.
func (k kind) variants() []variant {
	if k.onHost {
		return append(slices.Clone(variants), spared)
	}
	return variants
}

// faults returns the provider's faults for a call of the kind.
func (k kind) faults() []fault {
	if k.onHost {
		return hostFaults
	}
	if k.mailed {
		return []fault{fakegoogle.StatusBefore, fakegoogle.StatusAfter}
	}
	if k.tool == script.tool { // whose start is waited for as long as it may take
		return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
			return f == fakegoogle.HangBefore || f == fakegoogle.HangAfter
		})
	}
	return faults
}

// stops reports whether the worker is stopped, and woken later.
func (v variant) stops() bool { return v == zombie || v == twin }

// plan is a planned trial: a walk that is struck at a point of a step.
type plan struct {
	walk    walk
	kind    kind
	variant variant
	step    int           // which is struck
	point   int           // from 1
	after   time.Duration // instead of a point: the worker is killed this long after the step began
	torn    fault
}

func (p plan) String() string {
	where := fmt.Sprintf("point %d", p.point)
	if p.point == 0 {
		where = p.after.String()
	}
	s := fmt.Sprintf("%s, %s, %s at %s, %s", p.walk.name, p.kind.name, p.walk.steps[p.step].name, where, p.variant)
	if p.torn != fakegoogle.None {
		s += ", and " + map[bool]string{false: "the provider: ", true: "the host: "}[p.kind.onHost] + string(p.torn)
	}
	return s
}

// outcome is the result of a trial.
type outcome struct {
	plan     plan
	point    string // the point at which the worker was struck; empty: not struck
	effects  int
	reviews  int
	problems []string
	late     []string // problems that a slow machine may cause, given the short times of a step
}
