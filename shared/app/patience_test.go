package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestPatienceOverHTTP checks over HTTP that a run waits while Gemini's quota of a minute is used up, says until when,
// and continues by itself, after its e-mail was sent once.
func TestPatienceOverHTTP(t *testing.T) {
	w, forward := deployTimed(t)
	w.mail()
	a := w.ask()
	w.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"90"}}}
	})
	w.approve(a)
	waits := func() (v testkit.Answer, until time.Time) {
		v = w.call("GET", "/api/agent/runs/"+a.RunID, "")
		var body struct{ ResumesAt time.Time }
		if err := json.Unmarshal(v.Body, &body); err != nil {
			t.Fatal(err)
		}
		return v, body.ResumesAt
	}
	v, until := waits()
	if wait := time.Until(until); v.Status != "planning" || wait < time.Minute || wait > 3*time.Minute {
		t.Fatalf("%s until %s: %s", v.Status, until, v.Body)
	}
	w.SetModel(testkit.Says("It is sent."))
	forward(3 * time.Minute)
	w.swept()
	w.deliver()
	if v, until = waits(); v.Status != "completed" || !until.IsZero() || len(w.Google.Messages()) != 1 {
		t.Errorf("%s until %s with %d e-mails: %s", v.Status, until, len(w.Google.Messages()), v.Body)
	}
	events := string(w.call("GET", "/api/agent/runs/"+a.RunID+"/events?after=0", "").Body)
	if strings.Count(events, `"type":"model.postponed"`) != 1 || strings.Count(events, `"until":"`) != 1 {
		t.Errorf("the events: %s", events)
	}
}
