package document_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// documents contains, for each collection, the fields of a document that has all of them.
var documents = map[string]map[string]any{
	document.Runs: document.RunFields{UID: "ana", ThreadID: "t", Status: "queued", CreatedAt: at, Due: at, Tries: 1,
		Quarantined: true}.Map("r"),
	document.Threads: document.ThreadFields{UID: "ana", UpdatedAt: at, Deleting: at}.Map("t"),
	document.Approvals: document.ApprovalFields{UID: "ana", RunID: "r", ThreadID: "t", Status: "open", RequestedAt: at,
		ExpiresAt: at}.Map(),
	document.Audit:        document.AuditFields{UID: "ana", RunID: "r", Seq: 1, At: at, ExpireAt: at}.Map(),
	document.AuditHeads:   document.AuditHeadFields(at, at),
	document.Consents:     document.ConsentFields(at),
	document.Queue:        document.MessageFields(at),
	document.Uploads:      document.UploadFields("f", "ana", at),
	document.Users:        nil,
	document.Connections:  nil,
	document.Hosts:        nil,
	document.Terminals:    nil,
	document.TerminalRuns: nil,
	document.Sweeps:       nil,
	document.Quotas:       nil,
	"outputs":             nil, // the output of actions
	"parts":               nil, // of outputs
	"events":              nil, // the older parts of logs
	"messages":            nil,
}

// coolEnough lists the fields that grow with the clock and begin an index, and why not all users' requests write to the
// same end of that index.
var coolEnough = map[string]string{
	"queue.due": "the embedded queue is on one machine, and never in Firestore",
	"audit.at": "a call that its user approves has five entries: 500 a second are 8 million approvals a day; a shard " +
		"would need a query for each shard and minute, and entries of earlier releases have none",
	"oauth_states.due": "a consent is begun once by a user who links an account: 500 a second are 43 million a day",
}

// TestIndexesNotHot finds fields that grow with the clock and that Firestore would index on their own, as it does by
// default, although no query needs this. An index that grows at one end takes about 500 writes a second, for all users
// together. The test compares the documents' fields with infra/firestore-indexes.json.
func TestIndexesNotHot(t *testing.T) {
	exempt := exemptions(t)
	needed := map[string]bool{}
	for _, x := range store.Indexes {
		fields, known := documents[x.Collection]
		if !known {
			t.Errorf("%s is queried, and its fields are not known here", x.Collection)
		}
		if x.OrderBy == store.ByName || len(x.Equal) > 0 && !grows(fields[x.Equal[0]]) {
			continue
		}
		name := x.Collection + "." + x.OrderBy
		if needed[name] = true; coolEnough[name] == "" {
			t.Errorf("the index %+v grows at one end with everybody's writes", x)
		}
	}
	for collection, fields := range documents {
		names := append(slices.Sorted(maps.Keys(fields)), store.DataField, store.PreviousField)
		for _, name := range names {
			switch field := collection + "." + name; {
			case exempt[field] && needed[field]:
				t.Errorf("%s is exempt, and a query needs it", field)
			case !exempt[field] && !needed[field]:
				t.Errorf("%s has an index of its own that no query asks for (grows: %t)", field, grows(fields[name]))
			}
			delete(exempt, collection+"."+name)
		}
	}
	if len(exempt) > 0 {
		t.Errorf("no document has the fields %v", slices.Sorted(maps.Keys(exempt)))
	}
}

// grows reports whether the values of a field grow with the clock.
func grows(v any) bool {
	_, is := v.(time.Time)
	return is
}

// exemptions returns the fields that have no index of their own.
func exemptions(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("../../../infra/firestore-indexes.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		FieldOverrides []struct {
			CollectionGroup, FieldPath string
			Indexes                    []any
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	exempt := map[string]bool{}
	for _, o := range file.FieldOverrides {
		if len(o.Indexes) == 0 {
			exempt[o.CollectionGroup+"."+o.FieldPath] = true
		}
	}
	return exempt
}
