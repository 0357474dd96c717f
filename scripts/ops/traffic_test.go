package main

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
)

// gcloudOfTest replaces gcloud. For each service, one file holds its newest revision, and another file holds the
// revisions that get its requests, in gcloud's format.
const gcloudOfTest = `#!/bin/sh
set -eu
[ "$1 $2" = "run services" ]
verb=$3 service=$4 to=$5
case "$*" in *" --project=acme-prod --region=europe-north1 --quiet") ;; *) exit 64 ;; esac
case "$verb $to" in
"describe --format=value(status.traffic[].percent,status.traffic[].revisionName)")
	cat "$GCLOUD/$service.traffic" 2>/dev/null || printf '100\t%s\n' "$(cat "$GCLOUD/$service")"
	exit ;;
"update-traffic --to-latest") now="100	$(cat "$GCLOUD/$service")" ;;
"update-traffic --to-revisions=LATEST="*) now="10;90	a;b" ;;
"update-traffic --to-revisions="*=100) now=${to#*=} now="100	${now%=100}" ;;
*) exit 64 ;;
esac
echo "$now" > "$GCLOUD/$service.traffic"
echo "$service $to" >> "$GCLOUD/log"
`

// cloudRun simulates Cloud Run, with a folder for the scripts that ops prints.
type cloudRun struct {
	t   *testing.T
	dir string
}

// runs prints a script with ops, and runs it. It returns the commands that moved requests.
func (c cloudRun) runs(args ...string) (moved []string, out string, err error) {
	c.t.Helper()
	log := filepath.Join(c.dir, "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
	code, script, errs := exec(c.t, map[string]string{"GOOGLE_CLOUD_PROJECT": "acme-prod"},
		append([]string{"traffic", "-region", "europe-north1", "-functions", "core,plans"}, args...)...)
	if code != 0 {
		c.t.Fatalf("%q: status %d: %s; want 0", args, code, errs)
	}
	cmd := osexec.CommandContext(c.t.Context(), "sh")
	cmd.Dir, cmd.Stdin = c.dir, strings.NewReader(script)
	cmd.Env = append(os.Environ(), "GCLOUD="+c.dir, "PATH="+c.dir+":"+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	lines, reading := os.ReadFile(log)
	if reading != nil {
		c.t.Fatal(reading)
	}
	return strings.Split(strings.TrimSpace(string(lines)), "\n"), string(text), err
}

// TestTraffic holds the requests at the present revisions, moves them to a new release step by step, and moves them
// back.
func TestTraffic(t *testing.T) {
	c := cloudRun{t, t.TempDir()}
	if err := os.WriteFile(filepath.Join(c.dir, "gcloud"), []byte(gcloudOfTest), 0o755); err != nil {
		t.Fatal(err)
	}
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	deployed, err := list.Select([]string{"core", "plans"})
	if err != nil {
		t.Fatal(err)
	}
	release := func(revision string) {
		for _, f := range deployed {
			name := "agent-" + f.Name
			if err := os.WriteFile(filepath.Join(c.dir, name), []byte(name+revision+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(to string, steps ...int) (lines []string) {
		for _, step := range steps {
			for _, f := range deployed {
				if f.UpgradeStep() == step {
					lines = append(lines, "agent-"+f.Name+" "+strings.ReplaceAll(to, "SERVICE", "agent-"+f.Name))
				}
			}
		}
		return lines
	}
	release("-00001-old")
	same := func(args []string, want []string) string {
		t.Helper()
		got, out, err := c.runs(args...)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %s\nmoved %q\nwant  %q", args, err, out, got, want)
		}
		return out
	}
	if _, out, err := c.runs("back"); err == nil || !strings.Contains(out, "held.txt has no revisions") {
		t.Errorf("back without hold: %v, %s; want an error", err, out)
	}
	same([]string{"hold"}, want("--to-revisions=SERVICE-00001-old=100", 1, 2, 3))
	if _, out, err := c.runs("hold"); err == nil || !strings.Contains(out, "held.txt exists") {
		t.Errorf("held again: %v, %s; want an error", err, out)
	}
	release("-00002-new")
	out := same([]string{"move", "-step", "1", "-percent", "10"}, want("--to-revisions=LATEST=10", 1))
	if !strings.Contains(out, "within 540 s") {
		t.Errorf("the script ends with %q; want the longest time of resume", out)
	}
	if _, out, err := c.runs("hold", "-file", "other.txt"); err == nil ||
		!strings.Contains(out, "divides its requests") {
		t.Errorf("held in the middle of a move: %v, %s; want an error", err, out)
	}
	same([]string{"move"}, want("--to-latest", 1, 2, 3))
	back := want("--to-revisions=SERVICE-00001-old=100", 1, 2, 3)
	slices.Reverse(back)
	same([]string{"back"}, back)
	// The newest revision is the one that was given up, so it must not get the requests again.
	same([]string{"hold", "-file", "next.txt"}, want("--to-revisions=SERVICE-00001-old=100", 1, 2, 3))
}

// TestTrafficRefuses checks the errors of wrong arguments.
func TestTrafficRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		`"forward" is not hold, move or back`: {"forward"},
		"-step must be 0 to 3":                {"move", "-step", "4"},
		"-percent 1 to 100":                   {"move", "-percent", "0"},
		"unknown function moon":               {"hold", "-functions", "moon"},
	} {
		code, out, errs := exec(t, map[string]string{"GOOGLE_CLOUD_PROJECT": "acme-prod"},
			append([]string{"traffic"}, args...)...)
		if code != 2 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, %s%s; want 2 and %q", args, code, out, errs, want)
		}
	}
	if code, _, errs := exec(t, nil, "traffic", "hold"); code != 2 || !strings.Contains(errs, "GOOGLE_CLOUD_PROJECT") {
		t.Errorf("without a project: status %d, %s; want 2", code, errs)
	}
}
