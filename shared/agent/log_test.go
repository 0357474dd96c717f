package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent"
)

// TestLogKeepsEverything appends items of any size and number, and reads them back from the chunks and the tail.
func TestLogKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.IntRange(0, 30).Draw(t, "keep")
		most := keep + rapid.IntRange(1, 40).Draw(t, "most")
		var l agent.Log[string]
		var want []string
		chunks := map[int64]json.RawMessage{}
		for range rapid.IntRange(1, 40).Draw(t, "appends") {
			items := make([]string, rapid.IntRange(1, 5).Draw(t, "items"))
			for i := range items {
				items[i] = strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 1000, 50_000, 200_000}).Draw(t, "size"))
			}
			want = append(want, items...)
			out, err := l.Append(keep, most, items...)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range out {
				data, err := agent.Marshal(c.Items)
				if err != nil {
					t.Fatal(err)
				}
				if len(data) > 900<<10 {
					t.Fatalf("a chunk of %d bytes", len(data))
				}
				if _, twice := chunks[c.First]; twice {
					t.Fatalf("the chunk of item %d is written twice", c.First)
				}
				chunks[c.First] = data
			}
			tail, err := agent.Marshal(l.Tail)
			if err != nil || len(tail) > agent.MaxTail+400_000 || len(l.Tail) > most {
				t.Fatalf("%v: a tail of %d items and %d bytes", err, len(l.Tail), len(tail))
			}
		}
		parts := make([]json.RawMessage, len(l.Chunks))
		for i, first := range l.Chunks {
			parts[i] = chunks[first]
		}
		got, err := l.All(parts...)
		if err != nil || !slices.Equal(got, want) || l.Count != int64(len(want)) || l.First() != int64(len(want)-len(l.Tail)+1) {
			t.Fatalf("%v: %d items of %d, first of the tail %d", err, len(got), len(want), l.First())
		}
	})
}

func TestALogWithAMissingChunkIsNoLog(t *testing.T) {
	var l agent.Log[string]
	if _, err := l.Append(0, 1, "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.All(); err == nil {
		t.Error("three items are read from a tail of fewer")
	}
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(10, 50).Draw(t, "n")
		got := agent.Cut(s, n)
		if len(got) > n || !utf8.ValidString(got) || len(s) <= n && got != s {
			t.Fatalf("%q cut to %d is %q", s, n, got)
		}
	})
}

func TestIDs(t *testing.T) {
	run := agent.KeyedRunID("ana", "k")
	for _, id := range []string{run, agent.NewThreadID(run), agent.ActionID(run, 1, 0, 0), agent.ApprovalID(run, 12)} {
		if !agent.ValidID(id) {
			t.Errorf("%q is not an id", id)
		}
	}
	if got, ok := agent.RunOfApproval(agent.ApprovalID(run, 12)); !ok || got != run {
		t.Errorf("%q %v", got, ok)
	}
	for _, bad := range []string{"", "-", "x-1", run, run + "-", run + "-x", "../" + run + "-1"} {
		if got, ok := agent.RunOfApproval(bad); ok {
			t.Errorf("%q is an approval of %q", bad, got)
		}
	}
	seen := map[string]bool{run: true}
	for _, id := range []string{agent.KeyedRunID("eve", "k"), agent.KeyedRunID("ana", "l"), agent.KeyedRunID("an", "ak"), agent.NewThreadID(run),
		agent.ActionID(run, 1, 0, 0), agent.ActionID(run, 0, 1, 0), agent.ActionID(run, 1, 0, 1)} {
		if seen[id] {
			t.Errorf("two things are called %q", id)
		}
		seen[id] = true
	}
}
