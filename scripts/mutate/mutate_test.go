package main

import "testing"

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
