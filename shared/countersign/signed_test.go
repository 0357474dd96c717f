package countersign_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/store/memory"
)

// TestDecisionKeys approves an effect in one process, and executes it in another one with other keys.
func TestDecisionKeys(t *testing.T) {
	one, two := bytes.Repeat([]byte("1"), 32), bytes.Repeat([]byte("2"), 32)
	for name, c := range map[string]struct {
		decides, executes [][]byte
		sent              []string
		waits             bool
		hears             string
	}{
		"no keys":        {nil, nil, []string{"a@x.com: hello"}, false, `"id"`},
		"the same key":   {[][]byte{one}, [][]byte{one}, []string{"a@x.com: hello"}, false, `"id"`},
		"an earlier key": {[][]byte{one}, [][]byte{two, one}, []string{"a@x.com: hello"}, false, `"id"`},
		"no signature":   {nil, [][]byte{one}, nil, true, ""},
		"another key":    {[][]byte{one}, [][]byte{two}, nil, false, "not made by its user"},
	} {
		t.Run(name, func(t *testing.T) {
			p, m, st := &post{}, newScript(mailTo("a@x.com"), say("So.")), memory.New(time.Now)
			a := newAgent(t, countersign.Options{Provider: m, Tools: p.tools(), Store: st, DecisionKeys: c.decides})
			s := a.NewSession()
			res, err := s.Send(t.Context(), "go")
			if err != nil || len(res.Approvals) != 1 {
				t.Fatalf("%v %+v; want len(res.Approvals) 1", err, res)
			}
			wants(t, a, res.Approvals[0], countersign.Yes(), "")
			b := newAgent(t, countersign.Options{Provider: m, Tools: p.tools(), Store: st, DecisionKeys: c.executes})
			resumed, err := b.Resume(t.Context(), s.ID())
			if err != nil {
				t.Fatal(err)
			}
			lines, err := told(joined(resumed.Continue(t.Context())))
			if err != nil {
				t.Fatal(err)
			}
			waits := strings.HasPrefix(lines[len(lines)-1], "waiting")
			if !slices.Equal(p.sent, c.sent) || waits != c.waits || !strings.Contains(heard(m), c.hears) {
				t.Errorf("sent %q; the session: %q; the model hears %s", p.sent, lines, heard(m))
			}
		})
	}
	for name, keys := range map[string][][]byte{"short": {one[1:]}, "empty": {nil}, "many": {one, one, one, one, one}} {
		_, err := countersign.New(countersign.Options{Provider: newScript(), DecisionKeys: keys})
		if err == nil || !strings.Contains(err.Error(), "DecisionKeys") || strings.Contains(err.Error(), "111") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
