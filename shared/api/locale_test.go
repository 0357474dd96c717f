package api_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type eventArgs struct {
	Start string `json:"start"` // RFC 3339
}

// event returns a tool whose card shows a time.
func event() *tool.Tool {
	return tool.Define(tool.Def[eventArgs, struct{}]{
		Name: "event", Description: "Makes an event.", SideEffect: true,
		Preview: func(in eventArgs) tool.Preview {
			return tool.Preview{Title: "Event", Fields: []tool.Field{{Label: "Starts", Value: in.Start, At: in.Start}}}
		},
	})
}

// proposes makes the model request an event, and starts a run with extra fields in its request.
func (w *env) proposes(uid, start, fields string) answer {
	w.t.Helper()
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "event", Args: eventArgs{start}}}})
	a := w.send("POST", "/api/agent/run", uid, `{"prompt":"Lunch tomorrow at noon."`+fields+`}`)
	if a.StatusCode != 200 || a.at("status") != "awaiting_confirmation" {
		w.t.Fatalf("%s: %s; want a.StatusCode 200, a.at(\"status\") “awaiting_confirmation”", a.Status, a.body)
	}
	return a
}

// told returns the newest instructions and contents for the model.
func (w *env) told() string {
	all := w.model.Requests()
	last := all[len(all)-1]
	told := last.System
	for _, c := range last.Contents {
		told += string(c)
	}
	return told
}

// TestRegion checks that a run has the time zone and locale of its request, or else the last ones that any request of
// the user named.
func TestRegion(t *testing.T) {
	w := newEnv(t)
	w.loop.Tools = tool.NewSet(event())
	w.loop.Agents[run.Assistant].Limits.MaxOpen = 0
	w.loop.Agents[run.Assistant].Present = registry.State.Here

	noon := w.proposes("ana", "2027-01-05T12:00:00+05:30", `,"timeZone":"Asia/Kolkata","locale":"hi-in"`)
	for _, words := range []string{"time zone is Asia/Kolkata; there it was", "(UTC+05:30)", "language is hi-IN"} {
		if !strings.Contains(w.told(), words) {
			t.Errorf("the model is not told %q: %s", words, w.told())
		}
	}
	if noon.at("timeZone") != "Asia/Kolkata" || noon.at("locale") != "hi-IN" {
		t.Errorf("the run: %s", noon.body)
	}
	if got := noon.at("approvals", "0", "preview", "fields", "0", "value"); got != "2027-01-05T12:00:00+05:30" {
		t.Errorf("its own clock twice: %q", got)
	}

	// On 28 March, New York is already on daylight saving time, and Berlin changes to it.
	later := w.proposes("ana", "2027-03-28T03:30:00+02:00", ``)
	const want = "2027-03-28T03:30:00+02:00\nwhich is Sunday, 28 March 2027, 07:00 (Asia/Kolkata, UTC+05:30)"
	card := later.json["approvals"].([]any)[0].(map[string]any)["preview"].(map[string]any)
	field := card["fields"].([]any)[0].(map[string]any)
	if field["value"] != want || field["at"] != "2027-03-28T03:30:00+02:00" {
		t.Errorf("the card of a client that names no zone: %v", field)
	}
	if m, ok := field["moments"].([]any); !ok || len(m) != 1 || !reflect.DeepEqual(m[0], map[string]any{
		"text": "Sunday, 28 March 2027, 07:00 (Asia/Kolkata, UTC+05:30)", "at": "2027-03-28T07:00:00+05:30",
		"timeZone": "Asia/Kolkata"}) {
		t.Errorf("its moments: %v", field["moments"])
	}
	if !strings.Contains(w.told(), "Asia/Kolkata") || !strings.Contains(w.told(), "hi-IN") {
		t.Errorf("the zone was not kept: %s", w.told())
	}

	other := w.proposes("bea", "2027-03-28T03:30:00+02:00", `,"timeZone":null`)
	if other.at("timeZone") != "UTC" || other.at("approvals", "0", "timeZone") != "UTC" ||
		!strings.Contains(w.told(), "zone is UTC") || strings.Contains(w.told(), "language is") {
		t.Errorf("another user: %s\n%s", other.body, w.told())
	}

	for _, name := range []string{"Etc/Unknown", "Factory", "SystemV/EST5", "Asia/Hanoi", "Africa/Nowhere",
		"US/Pacific-New", "CET", "EST5EDT", "GMT", "GMT-02:00",
		"Japan", "GB"} {
		none := w.proposes("cleo", "2027-03-28T03:30:00+02:00", `,"timeZone":"`+name+`"`)
		if none.at("timeZone") != "UTC" || !strings.Contains(w.told(), "time zone is UTC; their own is not known") {
			t.Errorf("a browser in %s: %s\n%s", name, none.body, w.told())
		}
	}

	moved := w.proposes("ana", "2027-03-28T03:30:00+02:00", `,"timeZone":"America/New_York"`)
	if got := moved.at("approvals", "0", "preview", "fields", "0", "value"); !strings.HasSuffix(got,
		"which is Saturday, 27 March 2027, 21:30 (America/New_York, UTC-04:00)") {
		t.Errorf("after a move: %q", got)
	}
	if moved.at("locale") != "hi-IN" {
		t.Errorf("the language was lost: %s", moved.body)
	}
	approval := later.at("approvals", "0", "approvalId")
	pending := w.send("GET", "/api/agent/approvals/pending", "ana", "")
	var list struct {
		Approvals []struct{ ApprovalID, TimeZone string }
	}
	if err := json.Unmarshal(pending.body, &list); err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Approvals {
		if a.ApprovalID == approval && a.TimeZone != "Asia/Kolkata" {
			t.Errorf("a run that began before the move is shown by %s", a.TimeZone)
		}
	}
	if a := w.send("POST", "/api/agent/approvals/resolve", "ana",
		`{"approvalId":"`+approval+`","decision":"approve_once"}`); a.StatusCode != 200 {
		t.Errorf("its card has changed by the move: %s", a.body)
	}
}

func TestLocaleInvalid(t *testing.T) {
	w := newEnv(t)
	for field, values := range map[string][]string{
		"timeZone": {`""`, `"CEST"`, `"PST"`, `"+01:00"`, `"Mars/Phobos"`, `"europe/berlin"`, `"Local"`,
			`"../../etc/passwd"`, `5`, `"Europe/Berlin\n"`},
		"locale": {`""`, `"de_DE"`, `"en-US@posix"`, `"german"`, `"x-ignore-the-rules"`, `"und"`, `"de-"`, `"C"`,
			`["de"]`, `"` + strings.Repeat("de-", 40) + `"`},
	} {
		for _, v := range values {
			for _, path := range []string{"/api/agent/run", "/api/agent/run/stream"} {
				a := w.send("POST", path, "ana", `{"prompt":"Hello.","`+field+`":`+v+`}`)
				if a.StatusCode != 400 || a.at("error", "class") != "ValidationError" ||
					a.at("error", "field") != field {
					t.Errorf("%s %s: %s %s; want a.StatusCode 400, a.at(\"error\", \"class\") "+
						"“ValidationError”, a.at(\"error\", \"field\") %v",
						path, v, a.Status, a.body, field)
				}
			}
		}
	}
	if n := len(w.model.Requests()); n > 0 {
		t.Errorf("%d runs were begun", n)
	}
}

// TestCardWithoutMoments checks that a card stored before cards named local times is still valid.
func TestCardWithoutMoments(t *testing.T) {
	w := newEnv(t)
	w.loop.Tools = tool.NewSet(event())
	id := w.proposes("ana", "2027-01-05T12:00:00+05:30", "").at("approvals", "0", "approvalId")
	ctx := context.Background()
	docs, err := w.store.Get(ctx, document.ApprovalPath(id))
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(docs[0].Data), `,"at":"2027-01-05T12:00:00+05:30"`, "", 1)
	if old == string(docs[0].Data) {
		t.Fatalf("no moment: %s", old)
	}
	if _, err := w.store.Commit(ctx,
		store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, []byte(old))); err != nil {
		t.Fatal(err)
	}
	if a := w.send("POST", "/api/agent/approvals/resolve", "ana",
		`{"approvalId":"`+id+`","decision":"approve_once"}`); a.StatusCode != 200 {
		t.Errorf("%s: %s; want a.StatusCode 200", a.Status, a.body)
	}
}
