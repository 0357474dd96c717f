package loop_test

import (
	"context"
	"testing"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// pinned is a store that can be put back from a copy.
type pinned struct {
	*faulty.Store
	pins int
	down bool
}

func (p *pinned) Pin(context.Context) error {
	p.pins++
	if p.down {
		return store.ErrUnavailable
	}
	return nil
}

// TestPinBeforeEachEffect checks that the store is pinned once before each effect, and not for calls that only read. No
// effect starts without it.
func TestPinBeforeEachEffect(t *testing.T) {
	for _, down := range []bool{false, true} {
		w := newEnv(t)
		p := &pinned{Store: faulty.Wrap(w.store), down: down}
		w.loop.Store = p
		send := func(to string) script.Call {
			return script.Call{Name: "send", Args: map[string]any{"to": []string{to}, "text": "hi"}}
		}
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "lookup", Args: map[string]any{"word": "tea"}},
			send("bob@example.com"), send("eve@example.com")}}, script.Turn{Text: "Sent."})
		v, err := w.start()
		if err != nil {
			t.Fatal(err)
		}
		w.approve(t, v.RunID, 1)
		w.approve(t, v.RunID, 2)
		_, err = w.loop.Advance(t.Context(), v.RunID, nil)
		if sent := len(w.effects); (err != nil) != down || down && (sent != 0 || p.pins != 1) ||
			!down && (sent != 2 || p.pins != 2) {
			t.Errorf("down %v: %d sent, %d pins, %v", down, sent, p.pins, err)
		}
	}
}
