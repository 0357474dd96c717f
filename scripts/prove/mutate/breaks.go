package mutate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// cases holds the outcomes of the hostile cases by ID. An outcome is a kind of proof.Line.
type cases map[string]string

// breakAll tries the breaks, several at a time. It prints which cases notice each break, and which cases notice none.
func breakAll(ctx context.Context, r *proof.Run, l listed, root, into string) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := build(root, dir, nil)
	if err != nil {
		return err
	}
	whole, err := play(binary)
	if err != nil {
		return err
	}
	for id, came := range whole {
		if came == proof.KindFinding { // such a case cannot notice a break
			r.Finding(id, "it fails without a break")
		}
	}
	trials := tryAll(ctx, r, l, root, dir, whole)
	table := tabulate(trials, whole)
	r.Note("%s", table)
	if into == "" {
		return ctx.Err()
	}
	return errors.Join(ctx.Err(), insert(filepath.Join(root, into), table))
}

// tabulate returns the table of the breaks and the cases that notice them.
func tabulate(trials []trial, whole cases) string {
	var table strings.Builder
	noticed, missed := map[string]bool{}, 0
	table.WriteString("| what is broken | file | cases that notice |\n|---|---|---|\n")
	for _, t := range trials {
		verdict := few(t.flipped)
		if t.err != nil {
			missed++
			verdict = "**" + t.err.Error() + "**"
		}
		for _, id := range t.flipped {
			noticed[id] = true
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", t.name, strings.TrimPrefix(t.patches[0].file, "shared/"), verdict)
	}
	var never []string
	ran := 0
	for _, id := range slices.Sorted(maps.Keys(whole)) {
		if whole[id] == proof.KindSkipped {
			continue
		}
		if ran++; !noticed[id] {
			never = append(never, id)
		}
	}
	fmt.Fprintf(&table, "\n%d breaches, %d of them noticed; %d cases can be run, %d of them notice a breach.\n",
		len(trials), len(trials)-missed, ran, ran-len(never))
	if len(never) > 0 {
		fmt.Fprintf(&table, "\nNo breach flips: %s.\n", strings.Join(never, ", "))
	}
	return table.String()
}

// trial is a break and its result.
type trial struct {
	mutation
	flipped []string
	err     error
}

// tryAll tries the selected breaks.
func tryAll(ctx context.Context, r *proof.Run, l listed, root, dir string, whole cases) (trials []trial) {
	for _, b := range l.breaks {
		if r.Selects(b.name) {
			trials = append(trials, trial{mutation: b})
		}
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range trials {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if t := &trials[i]; ctx.Err() == nil {
				t.try(r, l.near, root, filepath.Join(dir, strconv.Itoa(i)), whole)
			}
		})
	}
	wg.Wait()
	return trials
}

// try tries the break in a separate folder, unless cases that noticed it before still pass.
func (t *trial) try(r *proof.Run, near map[string]string, root, own string, whole cases) {
	var before []string
	if r.Before(t.key(), &before) {
		if t.flipped = whole.passing(before); len(t.flipped) > 0 {
			r.Held(t.name, "%s noticed before", few(t.flipped))
			return
		}
	}
	from := time.Now()
	if t.err = os.Mkdir(own, 0o700); t.err == nil {
		t.flipped, t.err = t.flips(near, root, own, whole)
	}
	if t.err == nil && len(t.flipped) == 0 {
		t.err = errors.New("no case notices")
	}
	if t.err == nil {
		t.err = r.Keep(t.key(), t.flipped)
	}
	if t.err != nil {
		r.Finding(t.name, "%v", t.err)
	} else {
		r.Held(t.name, "%s notice in %.0f s", few(t.flipped), time.Since(from).Seconds())
	}
	_ = os.RemoveAll(own) // at the end the whole folder is removed
}

// passing returns those of the given cases that exist and pass.
func (c cases) passing(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return c[id] != proof.KindHeld })
}

// flips returns the cases that pass without the break and do not pass with it.
func (m mutation) flips(near map[string]string, root, dir string, whole cases) ([]string, error) {
	args := []string{"-only", m.near(near)}
	if slow[m.name] {
		args = append(args, "-not", "")
	} else {
		args = append(args, "-not", slowCase)
	}
	binary, err := build(root, dir, m.patches)
	if err != nil {
		return nil, err
	}
	ids, err := whole.notIn(binary, args...)
	if err != nil || len(ids) == 0 || len(ids) > 20 {
		return ids, err
	}
	args[1] = strings.Join(ids, ",") // again, because a busy machine fails cases too, but rarely the same ones twice
	return whole.notIn(binary, args...)
}

// notIn returns the cases that pass here and have another outcome there.
func (c cases) notIn(binary string, args ...string) (ids []string, err error) {
	other, err := play(binary, args...)
	for id, came := range other {
		if c[id] == proof.KindHeld && came != proof.KindHeld {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// near returns the cases to try the break on, in the form of -only. They are the cases of the kinds near the changed
// files. The result is empty, which means all cases, if a file has no kinds.
func (m mutation) near(kinds map[string]string) string {
	var ids []string
	for _, p := range m.patches {
		kinds := cmp.Or(kinds[p.file], kinds[path.Dir(p.file)])
		if kinds == "" {
			return ""
		}
		for kind := range strings.SplitSeq(kinds, ",") {
			ids = append(ids, kind+"*")
		}
	}
	return strings.Join(ids, ",")
}

// slowCase takes ten seconds, and runs only for the breaks that it can notice.
const slowCase = "SZ-007"

var slow = map[string]bool{"bodies may take any time": true}

// few returns up to five names.
func few(ids []string) string {
	if len(ids) > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:5], ", "), len(ids)-5)
	}
	return strings.Join(ids, ", ")
}

// build builds scripts/prove with the patches.
func build(root, dir string, patches []patch) (binary string, err error) {
	binary = filepath.Join(dir, "prove")
	list, err := overlay(root, dir, patches)
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-overlay", list, "-o", binary, "./scripts/prove")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not compile: %s", bytes.ReplaceAll(bytes.TrimSpace(out), []byte("\n"), []byte(" ")))
	}
	return binary, nil
}

// play runs cases and returns their outcomes.
func play(binary string, args ...string) (cases, error) {
	out, err := exec.Command(binary, append([]string{"hostile", "-json"}, args...)...).Output()
	came := cases{}
	for line := range bytes.Lines(out) {
		var l proof.Line
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("the runner printed %q: %w", line, err)
		}
		if l.Of != "" && came[l.Of] != proof.KindFinding {
			came[l.Of] = l.Kind
		}
	}
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(came) == 0) {
		return nil, fmt.Errorf("the runner: %w", err)
	}
	return came, nil
}

// These marks enclose the table in a file.
const (
	tableBegins = "<!-- breaks: written by go run ./scripts/prove mutate -breaks -write -->\n"
	tableEnds   = "<!-- end of breaks -->\n"
)

func insert(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), tableBegins)
	_, after, ended := strings.Cut(rest, tableEnds)
	if !found || !ended {
		return fmt.Errorf("%s has no marks for the table", file)
	}
	return os.WriteFile(file, []byte(before+tableBegins+"\n"+table+"\n"+tableEnds+after), 0o644)
}
