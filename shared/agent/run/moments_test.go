package run_test

import (
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// TestMomentsOf names the times in messages that the server has written, as instants without a time zone, so that a
// client shows them by the reader's clock.
func TestMomentsOf(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 59, 0, 0, time.FixedZone("", -3600))
	l := run.Limits{CallsPerDay: 1}
	limit := fault.As((&run.UserUsage{}).CheckModelBudget(l, now, 2, 0))
	again := tool.RetrySentence(time.Date(2027, 1, 8, 14, 30, 0, 0, time.FixedZone("", 3600)))
	next := tool.Moment{Text: "2 January, 00:00 UTC", At: "2027-01-02T00:00:00Z"}
	for message, want := range map[string][]tool.Moment{
		limit.Message:                {next},
		run.Tomorrow(now):            {next},
		"Enough." + again:            {{Text: "13:30 UTC on 8 January 2027", At: "2027-01-08T13:30:00Z"}},
		again + " Nothing was sent.": {{Text: "13:30 UTC on 8 January 2027", At: "2027-01-08T13:30:00Z"}},
		"":                           nil,
		"More is possible from 3 January, 00:00 UTC.":   {{Text: "3 January, 00:00 UTC", At: "2027-01-03T00:00:00Z"}},
		"More is possible from 31 December, 00:00 UTC.": {{Text: "31 December, 00:00 UTC", At: "2026-12-31T00:00:00Z"}},
		"More is possible from 33 January, 00:00 UTC.":  nil,
		" It can be tried again later.":                 nil,
		"Already decided: reject, at 2026-12-31T10:11:12Z.": {
			{Text: "2026-12-31T10:11:12Z", At: "2026-12-31T10:11:12Z"}},
		"(2026-12-31T10:11:12.5+01:00)": {
			{Text: "2026-12-31T10:11:12.5+01:00", At: "2026-12-31T10:11:12.5+01:00"}},
		"see https://example.com/2026-12-31T10:11:12Z/x": nil,
		"2026-13-31T10:11:12Z":                           nil,
	} {
		if got := run.MomentsOf(message, now); !slices.Equal(got, want) {
			t.Errorf("%q names %v, want %v", message, got, want)
		}
	}
}

// TestMomentsOfAFailedCall names the time in a run's last words at which a failed call can be tried again.
func TestMomentsOfAFailedCall(t *testing.T) {
	again := tool.RetrySentence(time.Date(2027, 1, 8, 14, 30, 0, 0, time.UTC))
	s := &run.State{Actions: []*run.Action{{Error: &run.ErrorInfo{Message: "Gmail takes no more." + again}}}}
	want := tool.Moment{Text: "14:30 UTC on 8 January 2027", At: "2027-01-08T14:30:00Z"}
	got := run.MomentsIn(nil, s, "Failed: Gmail takes no more."+again+" Nothing was sent.", time.Unix(0, 0))
	if !slices.Equal(got, []tool.Moment{want}) {
		t.Errorf("it names %v", got)
	}
}

// TestMomentsOfViews names the times in the messages of a failed action and of a failed run.
func TestMomentsOfViews(t *testing.T) {
	again := "Gmail takes no more." + tool.RetrySentence(time.Date(2027, 1, 8, 14, 30, 0, 0, time.UTC))
	want := []tool.Moment{{Text: "14:30 UTC on 8 January 2027", At: "2027-01-08T14:30:00Z"}}
	a := &run.Action{Error: &run.ErrorInfo{Message: again}}
	if got := run.NewActionView(nil, &run.State{}, a).Moments; !slices.Equal(got, want) {
		t.Errorf("the action names %v", got)
	}
	s := &run.State{End: &run.End{Summary: "Failed: " + again, Moments: want, Error: &run.ErrorInfo{
		Message: again + " Started at 2027-01-08T13:00:00Z."}}}
	want = append(want, tool.Moment{Text: "2027-01-08T13:00:00Z", At: "2027-01-08T13:00:00Z"})
	if got := run.NewView(run.Run{}, s, "").Moments; !slices.Equal(got, want) {
		t.Errorf("the run names %v", got)
	}
}
