package loop_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// An object is JSON whose members keep their bytes.
type object = map[string]json.RawMessage

// released stores a document as another release does: change edits its JSON.
func (w *env) released(path string, change func(doc object)) {
	w.t.Helper()
	docs, err := w.store.Get(w.t.Context(), path)
	if err != nil || !docs[0].Exists() {
		w.t.Fatalf("%s: %v", path, err)
	}
	doc := decoded[object](w.t, docs[0].Data)
	change(doc)
	if _, err := w.store.Commit(w.t.Context(), store.Update(path, docs[0].Version, docs[0].Fields,
		encoded(w.t, doc))); err != nil {
		w.t.Fatal(err)
	}
}

func decoded[T any](t testing.TB, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func encoded(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// laterField is a field that this release does not know.
const laterField = `"later":{"number":1.50,"text":"<é> & …"}`

// laterFields adds the field to a document, to the items of its log, and to the contents of events. It returns how many
// it has added.
func laterFields(t testing.TB, doc object, events bool) (added int) {
	field := decoded[object](t, []byte("{"+laterField+"}"))["later"]
	doc["later"], added = field, 1
	if doc["log"] == nil {
		return added
	}
	log := decoded[object](t, doc["log"])
	items := decoded[[]object](t, log["tail"])
	for _, item := range items {
		for name, content := range item {
			if events && content[0] == '{' {
				of := decoded[object](t, content)
				of["later"], added = field, added+1
				item[name] = encoded(t, of)
			}
		}
		item["later"], added = field, added+1
	}
	log["tail"] = encoded(t, items)
	doc["log"] = encoded(t, log)
	return added
}

// TestFieldsOfALaterRelease lets this release decide and end a run that a later release began. All fields that only the
// later release knows are still there, in the run, its conversation, the approval and the user's document.
func TestFieldsOfALaterRelease(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		w.model.Then(callOf("lookup"), script.Turn{Calls: []script.Call{{Name: "send",
			Args: map[string]any{"to": []string{"bo@x.org"}, "text": "ten"}}}})
		v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "Write to Bo."})
		if err != nil || v.Status != run.Awaiting {
			t.Fatalf("%v %+v; want v.Status %v", err, v, run.Awaiting)
		}
		card := w.open("ana")[0]
		added := map[string]int{}
		for _, path := range []string{document.RunPath(v.RunID), document.ThreadPath(v.ThreadID),
			document.ApprovalPath(card.ApprovalID), document.UserPath("ana")} {
			w.released(path, func(doc object) { added[path] = laterFields(t, doc, path == document.RunPath(v.RunID)) })
		}
		w.model.Then(script.Turn{Text: "Done."})
		if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: card.ApprovalID,
			Decision: run.ApproveOnce, ArgsHash: card.ArgsHash}); err != nil {
			t.Fatal(err)
		}
		deliver(t, w)
		if v, _ = w.see(t, v.RunID); v.Status != run.Completed || len(w.effects) != 1 {
			t.Fatalf("%s with %d effects: %s", v.Status, len(w.effects), v.Message)
		}
		for path, n := range added {
			docs, err := w.store.Get(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if kept := strings.Count(string(docs[0].Data), laterField); kept != n || strings.Contains(string(docs[0].Data), `"Later"`) {
				t.Errorf("%s has %d of %d fields: %s", path, kept, n, docs[0].Data)
			}
		}
	})
}

// TestEventsOfALaterRelease checks that this release leaves a run alone whose events it does not know: it neither
// advances, decides nor cancels the run, and says so. The later release continues the run.
func TestEventsOfALaterRelease(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		w.model.Then(callOf("send"), script.Turn{Text: "Done."})
		v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "Write to Bo."})
		if err != nil || v.Status != run.Awaiting {
			t.Fatalf("%v %+v; want v.Status %v", err, v, run.Awaiting)
		}
		card, path := w.open("ana")[0], document.RunPath(v.RunID)
		known := w.document(v.RunID).Data
		w.released(path, func(doc object) {
			log := decoded[object](t, doc["log"])
			items := decoded[[]json.RawMessage](t, log["tail"])
			log["count"] = encoded(t, len(items)+1)
			log["tail"] = encoded(t, append(items, encoded(t, map[string]any{"seq": len(items) + 1,
				"at": w.clock(), "type": "run.of_a_later_release", "detail": map[string]bool{"new": true}})))
			doc["log"] = encoded(t, log)
		})
		later := string(w.document(v.RunID).Data)
		approve := approval.Resolution{UID: "ana", ApprovalID: card.ApprovalID, Decision: run.ApproveOnce}
		if _, err := w.loop.Resolve(t.Context(), approve); err == nil {
			t.Error("a decision was taken")
		}
		if _, err := w.loop.Cancel(t.Context(), "ana", v.RunID); err == nil {
			t.Error("a cancel was taken")
		}
		w.tick(25 * time.Hour) // the approval expires
		if s, err := w.loop.Sweep(t.Context()); err != nil || s.Due != 1 {
			t.Fatalf("%v %+v; want s.Due 1", err, s)
		}
		if err := w.deliver(t.Context()); !unit.Postponed(err) {
			t.Errorf("the run was not postponed: %v", err)
		}
		left := w.document(v.RunID)
		if f := document.RunFieldsOf(left); string(left.Data) != later || f.Tries == 0 {
			t.Errorf("%d tries, and the run is\n%s\nwas\n%s", f.Tries, left.Data, later)
		}
		w.released(path, func(doc object) { // as the later release reads it
			for name, value := range decoded[object](t, known) {
				doc[name] = value
			}
		})
		w.queue = nil
		w.tick(time.Hour)
		w.sweepsAnew(t)
		if v, _ = w.see(t, v.RunID); v.Status != run.Failed || len(w.effects) > 0 {
			t.Errorf("the run whose approval expired is %s with %d effects", v.Status, len(w.effects))
		}
	})
}
