package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// format returns the files that terraform fmt would change.
func (w *workspace) format(ctx context.Context) error {
	_, err := w.terraform(ctx, "terraform", "fmt", "-check", "-recursive", "-diff", "-no-color")
	return err
}

// validate checks the configuration of a root.
func (w *workspace) validate(ctx context.Context, dir string) error {
	if err := w.init(ctx, dir); err != nil {
		return err
	}
	_, err := w.terraform(ctx, dir, "validate", "-no-color")
	return err
}

// run is one run of terraform test, with its state or plan.
type run struct {
	File, Name, Status string
	State              state
	Plan               plan
}

// plan holds the used fields of terraform show -json.
type plan struct {
	Changes []struct {
		Address string `json:"address"`
		Type    string `json:"type"`
		Change  struct {
			Actions []string        `json:"actions"`
			After   json.RawMessage `json:"after"` // without values that are known only after an apply
		} `json:"change"`
	} `json:"resource_changes"`
}

// changed returns the addresses of the resources of one type that the plan would change.
func (p plan) changed(kind string) (addresses []string) {
	for _, c := range p.Changes {
		if c.Type == kind && !slices.Equal(c.Change.Actions, []string{"no-op"}) {
			addresses = append(addresses, c.Address)
		}
	}
	return addresses
}

// test runs a module's tests, with more arguments for terraform test. The error lists each failed assertion, with the
// test's own message.
func (w *workspace) test(ctx context.Context, dir string, more ...string) ([]run, error) {
	if err := w.init(ctx, dir); err != nil {
		return nil, err
	}
	out, failed := w.terraform(ctx, dir, append([]string{"test", "-json", "-verbose"}, more...)...)
	runs, faults, err := readTest(out)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w\n%v", err, failed)
	case len(faults) > 0:
		return nil, fmt.Errorf("terraform test in %s:\n%s", dir, strings.Join(faults, "\n"))
	case failed != nil:
		return nil, failed
	case len(runs) == 0:
		return nil, fmt.Errorf("terraform test in %s ran nothing", dir)
	}
	return runs, nil
}

// message is one line of terraform test -json.
type message struct {
	Type       string                            `json:"type"`
	File       string                            `json:"@testfile"`
	Run        string                            `json:"@testrun"`
	TestRun    struct{ Status, Progress string } `json:"test_run"`
	State      state                             `json:"test_state"`
	Plan       plan                              `json:"test_plan"`
	Diagnostic struct{ Severity, Summary, Detail string }
}

func readTest(out []byte) (runs []run, faults []string, err error) {
	of := map[string]int{} // index in runs, by file and run
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var m message
		if err := lines.Decode(&m); err == io.EOF {
			return runs, faults, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("cannot parse the output of terraform test: %w", err)
		}
		id := m.File + " " + m.Run
		switch at, known := of[id]; {
		case m.Type == "test_run" && m.TestRun.Progress == "complete":
			of[id] = len(runs)
			runs = append(runs, run{File: m.File, Name: m.Run, Status: m.TestRun.Status})
		case m.Type == "test_state" && known:
			runs[at].State = m.State
		case m.Type == "test_plan" && known:
			runs[at].Plan = m.Plan
		case m.Type == "diagnostic" && m.Diagnostic.Severity == "error":
			faults = append(faults, fmt.Sprintf("%s: %s: %s", id, m.Diagnostic.Summary, m.Diagnostic.Detail))
		}
	}
}
