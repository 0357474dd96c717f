package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// format gives the files that terraform fmt would write otherwise.
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

// run is one run of terraform test, with its plan.
type run struct {
	File, Name, Status string
	Plan               plan
}

// plan is what is used of the form that terraform show -json has.
type plan struct {
	Changes []change `json:"resource_changes"`
}

// change is one resource with what is known of it before anything is applied.
type change struct {
	Address string `json:"address"`
	Type    string `json:"type"`
	Change  struct {
		After   map[string]any `json:"after"`
		Unknown map[string]any `json:"after_unknown"`
	} `json:"change"`
}

// test runs a module's tests. The error tells each assertion that does not hold, in the words of the test.
func (w *workspace) test(ctx context.Context, dir string) ([]run, error) {
	if err := w.init(ctx, dir); err != nil {
		return nil, err
	}
	out, failed := w.terraform(ctx, dir, "test", "-json", "-verbose")
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
	Plan       plan                              `json:"test_plan"`
	Diagnostic struct {
		Severity, Summary, Detail string
		Address                   string
	} `json:"diagnostic"`
}

func readTest(out []byte) (runs []run, faults []string, err error) {
	plans := map[string]plan{}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var m message
		if err := lines.Decode(&m); err == io.EOF {
			return runs, faults, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("what terraform test printed cannot be read: %w", err)
		}
		switch {
		case m.Type == "test_plan":
			plans[m.File+" "+m.Run] = m.Plan
		case m.Type == "test_run" && m.TestRun.Progress == "complete":
			runs = append(runs, run{m.File, m.Run, m.TestRun.Status, plans[m.File+" "+m.Run]})
		case m.Type == "diagnostic" && m.Diagnostic.Severity == "error":
			faults = append(faults, fmt.Sprintf("%s %s: %s: %s", m.File, m.Run, m.Diagnostic.Summary, m.Diagnostic.Detail))
		}
	}
}
