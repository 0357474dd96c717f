package approval

import (
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// TestCardWithoutMoments accepts a card that an earlier release stored without moments, and rejects a card whose moment
// was changed in the store.
func TestCardWithoutMoments(t *testing.T) {
	card := func(m ...tool.Moment) *run.Approval {
		return &run.Approval{Preview: tool.Preview{Title: "Create an event", Moments: m,
			Fields: []tool.Field{{Label: "Starts", Value: "noon", At: "2027-01-05T12:00:00Z", Moments: m}}}}
	}
	noon := tool.Moment{Text: "noon", At: "2027-01-05T12:00:00Z", TimeZone: "UTC"}
	later := noon
	later.At = "2027-01-05T13:00:00Z"
	for stored, same := range map[*run.Approval]bool{card(): true, card(noon): true, card(later): false} {
		if samePreview(stored, card(noon)) != same {
			t.Errorf("%+v; want samePreview(stored, card(noon)) %v", stored.Preview, same)
		}
	}
}
