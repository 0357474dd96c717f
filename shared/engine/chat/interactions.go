package chat

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// interaction is one possible interaction from a page's state, with the fields that the summary needs. An interaction
// with the elements of a list has items.
type interaction struct {
	Ref       string            `json:"refName"`
	Says      string            `json:"description"`
	Type      string            `json:"elementType"`
	Value     json.RawMessage   `json:"value"`
	Options   []json.RawMessage `json:"options"`
	Items     []json.RawMessage `json:"items"`
	Disabled  bool              `json:"disabled"`
	Hidden    bool              `json:"hidden"`
	NeedsUser bool              `json:"needsUser"`
}

// maxInteractions is the maximum length of the summary for the model, in bytes. Interactions that do not fit are still
// in the page's state.
const maxInteractions = 8 << 10

// interactions returns a summary of the page's possible interactions (seed 001 Q9): a JSON list in one line, with a
// text for each interaction. The list is empty if the page's state contains none, or contains them in another form.
func interactions(state json.RawMessage) []byte {
	var page struct {
		Interactions []json.RawMessage `json:"interactions"`
	}
	if json.Unmarshal(state, &page) != nil {
		return []byte("[]")
	}
	lines, size := []string{}, 0
	for i, raw := range page.Interactions {
		var in interaction
		if json.Unmarshal(raw, &in) != nil || in.Ref == "" {
			continue
		}
		line := in.String()
		if size += len(line) + 8; size > maxInteractions {
			lines = append(lines, fmt.Sprintf("[%d more]", len(page.Interactions)-i))
			break
		}
		lines = append(lines, line)
	}
	b, err := strictjson.Marshal(lines)
	if err != nil {
		return []byte("[]")
	}
	return b
}

// String describes the interaction in a few words: its name, its kind, and its current state.
func (in interaction) String() string {
	s := clip.Text(in.Ref, 80)
	if in.Says != "" && in.Says != in.Ref {
		s += ": " + clip.Text(in.Says, 80)
	}
	if in.Type != "" {
		s += ", " + clip.Text(in.Type, 40)
	}
	if len(in.Items) > 0 {
		s += fmt.Sprintf(", %d in a list", len(in.Items))
	}
	if len(in.Options) > 0 {
		s += fmt.Sprintf(", %d options", len(in.Options))
	}
	if len(in.Value) > 0 && string(in.Value) != "null" {
		s += ", now " + clip.Text(string(in.Value), 60)
	}
	for _, is := range []struct {
		so   bool
		word string
	}{{in.Disabled, "disabled"}, {in.Hidden, "hidden"}, {in.NeedsUser, "for the user's own click"}} {
		if is.so {
			s += ", " + is.word
		}
	}
	return s
}
