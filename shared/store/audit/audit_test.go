package audit_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// chain seals n entries of a run.
func chain(run string, n int) (entries []audit.Entry, head audit.Head) {
	kinds := []string{audit.Requested, audit.Decided, audit.Intent, audit.Outcome}
	for i := range n {
		var e audit.Entry
		e, head = audit.Seal(head, audit.Entry{
			RunID: run, UID: "user-a", At: start.Add(time.Duration(i) * time.Second), Kind: kinds[i%len(kinds)],
			ActionID: fmt.Sprintf("action-%d", i/4), Tool: "gmail_send", Model: "gemini-flash-latest", InputHash: "abc",
			Decision: "approve_once",
			Rule:     "recipient_not_allowlisted", ApprovalID: "approval-1", ExecutionStatus: "succeeded",
			ErrorCode: "none", Message: "Done & <safe>.",
		})
		entries = append(entries, e)
	}
	return entries, head
}

func problems(t testing.TB, entries []audit.Entry, head audit.Head) (texts []string) {
	t.Helper()
	for _, p := range audit.Verify(entries, head) {
		texts = append(texts, p.String())
	}
	return texts
}

func TestSeal(t *testing.T) {
	entries, head := chain("run-1", 3)
	if head.Seq != 3 || head.Hash != entries[2].Hash {
		t.Errorf("the head is %v, want entry 3 with the hash %s", head, entries[2].Hash)
	}
	before := [2]string{entries[0].PrevHash, entries[1].PrevHash}
	if want := [2]string{"", entries[0].Hash}; before != want {
		t.Errorf("the first entries follow %q, want %q", before, want)
	}
	if at := entries[0].At; at.Nanosecond() != 123456000 {
		t.Errorf("the time is %v, and a store keeps microseconds", at)
	}
	again, _ := chain("run-1", 3)
	if !reflect.DeepEqual(entries, again) {
		t.Error("the same entries have other hashes")
	}
	// The hash of a known entry, computed with another implementation (Python's hashlib over sorted, compact JSON): the
	// format of an entry must not change, or every chain in every store would seem to have been tampered with.
	e, _ := audit.Seal(audit.Head{}, audit.Entry{RunID: "r", UID: "u", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Kind: audit.Intent, Message: "<ü>"})
	if want := "5af9eec360654a31fdc074fec3d817322bec120cff7e4a899573c25651c6ba15"; e.Hash != want {
		t.Errorf("the hash is %s, want %s", e.Hash, want)
	}
}

func TestSealRedaction(t *testing.T) {
	e, _ := audit.Seal(audit.Head{},
		audit.Entry{Message: "sent to CANARY@example.com with Bearer CANARY " + strings.Repeat("x ", 1000)})
	if strings.Contains(e.Message, "CANARY") || len(e.Message) > 500 {
		t.Errorf("the message is %q", e.Message)
	}
	if p := problems(t, []audit.Entry{e}, audit.HeadOf([]audit.Entry{e})); p != nil {
		t.Error(p)
	}
}

// Entries that a store returns verify: a time in UTC, text that is not UTF-8, any characters.
func TestChainsReadBack(t *testing.T) {
	var entries []audit.Entry
	var head audit.Head
	for _, message := range []string{"", "\xff\xfe", "\u2028 <&> \" \\ \x00 ü 😀", "é"} {
		var e audit.Entry
		e, head = audit.Seal(head,
			audit.Entry{RunID: "r", UID: message, At: start.In(time.FixedZone("", 3600)), Message: message})
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := audit.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, back)
	}
	if p := problems(t, entries, head); p != nil {
		t.Error(p)
	}
}

func TestDecodeRefused(t *testing.T) {
	for _, text := range []string{``, `null`, `[]`, `{"seq":1,"body":"x"}`, `{"seq":1,"seq":2}`, `{"SEQ":1}`,
		`{"seq":"1"}`, `{"seq":1} {}`} {
		if _, err := audit.Decode([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

func TestVerifyEntry(t *testing.T) {
	type chained = []audit.Entry
	forge := func(e audit.Entry, behind audit.Head) audit.Entry { // the work of an attacker who knows how to seal
		e, _ = audit.Seal(behind, e)
		return e
	}
	tests := map[string]struct {
		tamper func(e chained, h *audit.Head) chained
		want   []string
	}{
		"nothing": {func(e chained, _ *audit.Head) chained { return e }, nil},
		"SE-007: a field of entry 3 of 7": {
			func(e chained, _ *audit.Head) chained { e[2].Decision = "reject"; return e },
			[]string{"entry 3 was changed"}},
		"entry 3 changed and its hash computed again": {func(e chained, _ *audit.Head) chained {
			e[2] = forge(audit.Entry{RunID: e[2].RunID, UID: e[2].UID, At: e[2].At, Kind: audit.Denied},
				audit.Head{Seq: 2, Hash: e[1].Hash})
			return e
		}, []string{"entry 3 was changed"}},
		"the last changed and its hash computed again": {func(e chained, _ *audit.Head) chained {
			e[6] = forge(audit.Entry{RunID: "run-1"}, audit.Head{Seq: 6, Hash: e[5].Hash})
			return e
		}, []string{"entry 7 was changed"}},
		"two changed": {func(e chained, _ *audit.Head) chained { e[2].Tool, e[3].Tool = "x", "y"; return e },
			[]string{"entry 3 was changed", "entry 4 was changed"}},
		"its hash": {func(e chained, _ *audit.Head) chained { e[2].Hash = e[3].Hash; return e },
			[]string{"entry 3 was changed"}},
		"its hash emptied": {func(e chained, _ *audit.Head) chained { e[2].Hash = ""; return e },
			[]string{"entry 3 was changed"}},
		"its link": {func(e chained, _ *audit.Head) chained { e[2].PrevHash = e[0].Hash; return e },
			[]string{"entry 3 was changed"}},
		"the first one's link": {func(e chained, _ *audit.Head) chained { e[0].PrevHash = e[3].Hash; return e },
			[]string{"entry 1 was changed"}},
		"its number, to a new one": {func(e chained, _ *audit.Head) chained { e[2].Seq = 99; return e },
			[]string{"entry 3 was moved"}},
		"its number, to another's": {func(e chained, _ *audit.Head) chained { e[2].Seq = 5; return e },
			[]string{"entry 3 was moved"}},
		"SE-008: delete entry 5": {func(e chained, _ *audit.Head) chained { return slices.Delete(e, 4, 5) },
			[]string{"entry 5 was removed"}},
		"delete the first": {func(e chained, _ *audit.Head) chained { return e[1:] },
			[]string{"entry 1 was removed"}},
		"delete 3 and 4": {func(e chained, _ *audit.Head) chained { return slices.Delete(e, 2, 4) },
			[]string{"entries 3 to 4 were removed"}},
		"delete 2 and 5": {func(e chained,
			_ *audit.Head) chained {
			return slices.Delete(slices.Delete(e, 4, 5), 1, 2)
		},
			[]string{"entry 2 was removed", "entry 5 was removed"}},
		"delete 5 and count on": {func(e chained, _ *audit.Head) chained {
			e = slices.Delete(e, 4, 5)
			e[4].Seq, e[5].Seq = 5, 6
			return e
		}, []string{"entry 5 was removed", "entry 6 was moved", "entry 7 was moved"}},
		"SE-010: swap entries 2 and 3": {func(e chained, _ *audit.Head) chained { e[1], e[2] = e[2], e[1]; return e },
			[]string{"entry 2 was moved", "entry 3 was moved"}},
		"swap their contents, not their numbers": {func(e chained, _ *audit.Head) chained {
			e[1], e[2] = e[2], e[1]
			e[1].Seq, e[2].Seq = 2, 3
			return e
		}, []string{"entry 2 was moved", "entry 3 was moved"}},
		"cut off the last two": {func(e chained, _ *audit.Head) chained { return e[:5] },
			[]string{"entries 6 to 7 were cut off"}},
		"cut off the last, and change the one before": {
			func(e chained, _ *audit.Head) chained { e[5].Tool = "x"; return e[:6] },
			[]string{"entry 6 was changed", "entry 7 was cut off"}},
		"all gone": {func(chained, *audit.Head) chained { return nil }, []string{"entries 1 to 7 were cut off"}},
		"insert a copy": {func(e chained, _ *audit.Head) chained { return slices.Insert(e, 3, e[2]) },
			[]string{"entry 3 was inserted"}},
		"insert a forgery": {func(e chained, _ *audit.Head) chained {
			return slices.Insert(e, 3, forge(audit.Entry{RunID: "run-1"}, audit.Head{Seq: 3, Hash: e[2].Hash}))
		}, []string{"entry 4 was inserted"}},
		"append a forgery": {func(e chained, _ *audit.Head) chained {
			return append(e, forge(audit.Entry{RunID: "run-1"}, audit.Head{Seq: 7, Hash: e[6].Hash}))
		}, []string{"entry 8 was inserted"}},
		"an entry of another run": {func(e chained, _ *audit.Head) chained {
			other, _ := chain("run-2", 7)
			e[3] = other[3]
			return e
		}, []string{"entry 4 was changed"}},
		"another run": {func(chained, *audit.Head) chained { other, _ := chain("run-2", 7); return other[:1] },
			[]string{"entries 2 to 7 were cut off"}}, // the first entry cannot be verified without the rest
		"the head's hash": {func(e chained, h *audit.Head) chained { h.Hash = e[0].Hash; return e },
			[]string{"entry 7 was changed"}},
		"the head's number": {func(e chained, h *audit.Head) chained { h.Seq = 1 << 60; return e },
			[]string{"entries 8 to 1152921504606846976 were cut off"}},
		"the head, back by one": {
			func(e chained, h *audit.Head) chained { *h = audit.Head{Seq: 6, Hash: e[5].Hash}; return e },
			[]string{"entry 7 was inserted"}},
		"the head emptied": {func(e chained, h *audit.Head) chained { *h = audit.Head{}; return e[:2] },
			[]string{"entry 1 was inserted", "entry 2 was inserted"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			entries, head := chain("run-1", 7)
			entries = tt.tamper(entries, &head)
			if got := problems(t, entries, head); !slices.Equal(got, tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPath(t *testing.T) {
	if got := document.AuditPath("run-1", 7); got != "audit/run-1_000007" {
		t.Error(got)
	}
}
