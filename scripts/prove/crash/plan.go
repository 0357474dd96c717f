package crash

import (
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// variant is a way to interrupt a worker.
type variant string

const (
	plain  variant = "killed"
	storm  variant = "killed, each message three times"
	zombie variant = "stopped beyond its lease, and woken at the end"
	twin   variant = "stopped, another does the same, and woken"
	spared variant = "spared: its host alone is struck"
)

var variants = []variant{plain, storm, zombie, twin}

// variants returns the ways to interrupt a worker of this kind.
func (k kind) variants() []variant {
	if k.onHost {
		return append(slices.Clone(variants), spared)
	}
	return variants
}

// faults returns the faults of the provider or the host of this kind.
func (k kind) faults() []fault {
	if k.onHost {
		return hostFaults
	}
	if k.mailed {
		return []fault{fakegoogle.StatusBefore, fakegoogle.StatusAfter}
	}
	if k.inside() || k.tool == fetch.tool { // the wait for its start has no short limit
		return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
			return f == fakegoogle.HangBefore || f == fakegoogle.HangAfter
		})
	}
	return faults
}

// stops reports whether the variant pauses the worker and wakes it later.
func (v variant) stops() bool { return v == zombie || v == twin }

// plan is a planned trial: a scenario that is interrupted at a point of a step.
type plan struct {
	scenario scenario
	kind     kind
	variant  variant
	step     int           // the interrupted step
	point    int           // counted from 1
	after    time.Duration // if set, the worker is killed this long after the step began, instead of at a point
	fault    fault
}

func (p plan) String() string {
	where := fmt.Sprintf("point %d", p.point)
	if p.point == 0 {
		where = p.after.String()
	}
	s := fmt.Sprintf("%s, %s, %s at %s, %s", p.scenario.name, p.kind.name, p.scenario.steps[p.step].name, where,
		p.variant)
	if p.fault != fakegoogle.None {
		s += ", and " + map[bool]string{false: "the provider: ", true: "the host: "}[p.kind.onHost] + string(p.fault)
	}
	return s
}

// outcome is the result of a trial.
type outcome struct {
	plan     plan
	point    string // the point of the interruption; empty if there was none
	effects  int
	reviews  int
	problems []string
	late     []string // problems that a slow machine can cause, because the steps have short time limits
}
