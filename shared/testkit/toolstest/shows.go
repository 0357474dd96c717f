package toolstest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// showsAll checks that each argument changes the preview, and changes the pinned arguments unless it is free text.
func (s Suite) showsAll(t *testing.T) {
	ordinary, ok := s.Holds(t, s.With(nil))
	if !ok {
		t.Fatal("an ordinary call is refused")
	}
	properties, _ := s.schema(t)
	for name := range properties {
		change, there := s.Other[name]
		if _, fixed := s.Fixed[name]; fixed && !there {
			continue
		} else if !there {
			t.Errorf("the suite has no other call for the argument %s", name)
			continue
		}
		other, ok := s.Holds(t, s.With(change))
		if !ok || bytes.Equal(other, ordinary) {
			t.Errorf("%s: %v makes %s of %s", name, change, other, ordinary)
			continue
		}
		if equal(s.preview(t, other), s.preview(t, ordinary)) {
			t.Errorf("the preview does not show the argument %s: %+v", name, s.preview(t, other))
		}
		if same := bytes.Equal(s.bound(t, other), s.bound(t, ordinary)); same != slices.Contains(s.Free, name) {
			t.Errorf("%s: of %s is bound %s, and without it %s", name, other, s.bound(t, other), s.bound(t, ordinary))
		}
	}
}

// hidesNothing adds to each text a character that is invisible or changes the display of others, and checks the
// preview.
func (s Suite) hidesNothing(t *testing.T) {
	for argument, label := range s.Texts {
		taken := 0
		for _, hidden := range []string{"\u202e", "\u200b", "\u2066", "\u2800", "\ufeff", "\u00ad", "\U000E0041",
			"\ufe0f", "\ue000", "\u2028", "\u034f", "\u115f", "⟨U+202E⟩"} {
			if label == Title && strings.HasPrefix(hidden, "⟨") {
				continue // a title may have been brought into visible form as a whole
			}
			if _, ok := s.Holds(t, s.With(map[string]any{argument: "a" + hidden + "b"})); ok {
				taken++
			}
		}
		if taken == 0 {
			t.Errorf("%s takes no hidden character, so the suite proves nothing", argument)
		}
	}
}

// saysAll checks what previews contain, and that an ordinary call has no warning.
func (s Suite) saysAll(t *testing.T) {
	for name, c := range s.Previews {
		t.Run(name, func(t *testing.T) {
			got := s.shown(t, c.Change)
			for _, w := range c.Want {
				if !strings.Contains(got, w) {
					t.Errorf("the preview lacks %q:\n%.600s", w, got)
				}
			}
		})
	}
	if got := s.shown(t, nil); strings.Contains(got, "! ") {
		t.Errorf("an ordinary call has a warning:\n%s", got)
	}
}

// shown returns a preview as one text.
func (s Suite) shown(t *testing.T, change map[string]any) string {
	t.Helper()
	args, ok := s.Holds(t, s.With(change))
	if !ok {
		t.Fatalf("%v is refused", change)
	}
	p := s.preview(t, args)
	lines := []string{p.Title}
	for _, f := range p.Fields {
		lines = append(lines, f.Label+": "+f.Value)
	}
	for _, w := range p.Warnings {
		lines = append(lines, "! "+w)
	}
	return strings.Join(lines, "\n")
}
