package main

import (
	"fmt"
	"slices"
	"testing"
)

// TestMutationsApply holds the list to the code: every text is there once, and what it becomes compiles. That the tests
// catch them is for the command itself, which takes minutes.
func TestMutationsApply(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			overlay, err := m.overlay("../..", t.TempDir())
			if err == nil && m.isGo() {
				err = compiles("../..", overlay, m)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestATextThatIsGone is told, and not taken for a mutation that was caught.
func TestATextThatIsGone(t *testing.T) {
	m := mutation{"gone", "shared/loop/act.go", []edit{{"this is nowhere", ""}}, model}
	if _, err := m.overlay("../..", t.TempDir()); err == nil {
		t.Error("a text that is not in the file was replaced")
	}
}

// TestOutcome names the tests that failed.
func TestOutcome(t *testing.T) {
	for want, by := range map[string][]string{"the whole package": nil, "a, b": {"a", "b"}, "a, b, c and 2 more": {"a", "b", "c", "d", "e"}} {
		if got := (outcome{by: by}).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestATestThatTookTooLong has caught nothing.
func TestATestThatTookTooLong(t *testing.T) {
	const fails = `{"Action":"run","Test":"TestTerraform/agent"}
{"Action":"output","Test":"TestTerraform/agent","Output":"%s"}
{"Action":"fail","Test":"TestTerraform/agent"}
{"Action":"fail"}`
	for said, cut := range map[string]bool{"panic: test timed out after 10m0s\\n": true, "    a_test.go:1: it timed out\\n": false} {
		if o := read(fmt.Appendf(nil, fails, said), true); o.cut != cut || !o.failed || o.String() != "TestTerraform/agent" {
			t.Errorf("%q is read as %+v", said, o)
		}
	}
}

// TestBreaksApply holds the list of single breaks to the code: every text is there once. That what it becomes compiles, and is noticed, is for the
// command.
func TestBreaksApply(t *testing.T) {
	named := map[string]bool{}
	for _, b := range breaks {
		if named[b.name] {
			t.Errorf("two are called %q", b.name)
		}
		named[b.name] = true
		if _, err := overlay("../..", t.TempDir(), b.patches); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
	if len(breaks) < 150 {
		t.Errorf("there are %d", len(breaks))
	}
}

// TestABreachIsNoticed tries one of them for real; the command tries all.
func TestABreachIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("building the product twice over takes a while")
	}
	const name = "a history need not be sealed"
	b, dir := breaks[slices.IndexFunc(breaks, func(b breach) bool { return b.name == name })], t.TempDir()
	binary, err := build("../..", dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := play(binary, "-only", b.near(), "-not", slowCase)
	if err != nil {
		t.Fatal(err)
	}
	if flipped, err := b.flips("../..", dir, whole); err != nil || len(flipped) == 0 {
		t.Errorf("%v notice it (%v)", flipped, err)
	}
}
