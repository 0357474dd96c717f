package run_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// TestHas finds a thread by its title, its user's words and its terms, in any case, with or without accents.
func TestHas(t *testing.T) {
	thread := run.Thread{Title: "Mail to Ana Müller"}
	if _, err := thread.Add(run.Message{Role: run.RoleUser, Text: "Schreib ihr, dass die DEMO um zehn ist"},
		run.Message{Role: run.RoleAssistant, Text: "An unrelated answer"}); err != nil {
		t.Fatal(err)
	}
	thread.Note("ana@example.com", "gmail send", "")
	for query, want := range map[string]bool{
		"muller": true, "MÜLLER mail": true, "demo zehn": true, "ana@ex": true, "gmail": true, "gmail_send": true,
		"":          true,
		"unrelated": false, "demo elf": false,
	} {
		if got := thread.Has(run.SearchWords(query)); got != want {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
}

// TestLongMessageSearch finds a late word of a long message that is no longer among the newest.
func TestLongMessageSearch(t *testing.T) {
	var thread run.Thread
	for i := range 70 {
		text := "Hello."
		if i == 0 {
			text = strings.Repeat("Grüße aus Köln und Bonn. ", 40) + "Das Kennwort ist Zwetschgenröster."
		}
		if _, err := thread.Add(run.Message{Role: run.RoleUser, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if !thread.Has([]string{"zwetschgenroster"}) || !thread.Has([]string{"koln"}) {
		t.Error("a word of the oldest message is not found")
	}
}

// TestTermLimit checks that the newest terms are kept, each once, even if the messages that contain them are no
// longer among the newest.
func TestTermLimit(t *testing.T) {
	var thread run.Thread
	for i := range 400 {
		wish := fmt.Sprintf("wish %d ", i) + strings.Repeat("x", 90)
		if _, err := thread.Add(run.Message{Role: run.RoleUser, Text: wish},
			run.Message{Role: run.RoleAssistant, Text: "Done."}); err != nil {
			t.Fatal(err)
		}
		thread.Note("ana@example.com")
	}
	if size := len(strings.Join(thread.Terms, "")); size > 16<<10 {
		t.Errorf("%d bytes of terms; the limit is 16 KiB", size)
	}
	if !thread.Has([]string{"wish 300"}) || thread.Has([]string{"wish 7 "}) {
		t.Error("the kept words are not the newest")
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(thread.Terms)))); n != len(thread.Terms) {
		t.Errorf("%d of %d terms are duplicates", len(thread.Terms)-n, len(thread.Terms))
	}
}
