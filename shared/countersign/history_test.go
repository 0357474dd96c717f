package countersign_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

func asLines(contents []json.RawMessage) string {
	var b strings.Builder
	for _, c := range contents {
		b.Write(c)
		b.WriteByte('\n')
	}
	return b.String()
}

// TestHistory reads a session with calls: the messages, and the contents that the model gets next. The messages convert
// to the same contents again.
func TestHistory(t *testing.T) {
	m := newScript(call("get_weather", map[string]any{"city": "Porto"}), say("No station."),
		call("get_weather", map[string]any{"city": "Lisbon"}), say("21 degrees."), say("Yes."))
	a := newAgent(t, countersign.Options{Provider: m, Tools: []*countersign.Tool{getWeather}})
	s := a.NewSession()
	for _, prompt := range []string{"How is Porto?", "And Lisbon?"} {
		if _, err := s.Send(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Messages(t.Context())
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %d messages: %+v", err, len(all), all)
	}
	first, second := all[1], all[4]
	if all[0].Role != "user" || all[0].Text != "How is Porto?" || all[0].RunID == all[3].RunID ||
		first.Role != "model" || len(first.Calls) != 1 || first.Calls[0].Name != "get_weather" ||
		first.Calls[0].Error != "no station in Porto" || string(second.Calls[0].Result) != `{"celsius":21}` ||
		all[5].Text != "21 degrees." {
		t.Errorf("%+v", all)
	}
	told, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := countersign.History(all)
	if err != nil || asLines(again) != asLines(told) {
		t.Errorf("%v: the messages are\n%s\nand the history is\n%s", err, asLines(again), asLines(told))
	}
	if _, err := s.Send(t.Context(), "Thanks?"); err != nil {
		t.Fatal(err)
	}
	if last := m.Requests()[4].Contents; asLines(last[:len(last)-1]) != asLines(told) {
		t.Errorf("the model is told\n%s\nand the history is\n%s", asLines(last), asLines(told))
	}
	for i := range all {
		all[i].Contents = nil
	}
	if made, err := countersign.History(all); err != nil || !bytes.Contains([]byte(asLines(made)),
		[]byte(`"error":"no station in Porto"`)) {
		t.Errorf("%v: made of texts they are %s", err, asLines(made))
	}
	if _, err := countersign.History(all[1:]); err == nil {
		t.Error("an answer without a question is taken")
	}
}

// TestCompression has a session grow above its threshold, and another be compressed by hand.
func TestCompression(t *testing.T) {
	long := strings.Repeat("word ", 2000)
	m := newScript(say(long), say(long), say("A SUMMARY"), say("So."), say("ANOTHER"), say("Yes."))
	a := newAgent(t, countersign.Options{Provider: m, CompressionThreshold: 0.004})
	s := a.NewSession()
	for _, prompt := range []string{"one", "two"} {
		if _, err := s.Send(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for ev, err := range s.SendStream(t.Context(), "three") {
		if err != nil {
			t.Fatal(err)
		}
		if z, ok := ev.(*countersign.ChatCompressed); ok && z.TokensAfter < z.TokensBefore && z.Seq > 0 {
			n++
		}
	}
	if told := asLines(m.Requests()[3].Contents); n != 1 || !strings.Contains(told, "A SUMMARY") {
		t.Errorf("%d compressions, and the model is told %s", n, told)
	}
	z, err := s.Compress(t.Context())
	if err != nil || z == nil || z.TokensAfter >= z.TokensBefore {
		t.Fatalf("%v %+v", err, z)
	}
	if all, err := s.Messages(t.Context()); err != nil || len(all) != 6 || all[0].Text != "one" {
		t.Errorf("%v: %d messages", err, len(all))
	}
	told, err := s.History(t.Context())
	if err != nil || len(told) != 1 || !strings.Contains(asLines(told), "ANOTHER") {
		t.Errorf("%v: %s; want len(told) 1, asLines(told) with “ANOTHER”", err, asLines(told))
	}
	if z, err := s.Compress(t.Context()); err != nil || z != nil {
		t.Errorf("%v: it was compressed again: %+v", err, z)
	}
	if _, err := s.Send(t.Context(), "four"); err != nil {
		t.Fatal(err)
	}
}

// TestContextFull has more said than the model reads: the request is not sent.
func TestContextFull(t *testing.T) {
	m := newScript(say("So."), script.Turn{Text: "never"})
	a := newAgent(t, countersign.Options{Provider: m, Model: "gemma-3", CompressionThreshold: -1,
		Instructions: strings.Repeat("word ", 10_000)})
	s, long := a.NewSession(), strings.Repeat("word ", 50_000)
	if _, err := s.Send(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	_, err := s.Send(t.Context(), long)
	if e := (*countersign.Error)(nil); !errors.Is(err, countersign.ErrContextFull) || !errors.As(err, &e) ||
		e.Code != "context_full" || len(m.Requests()) != 1 {
		t.Errorf("%v, %d requests", err, len(m.Requests()))
	}
}

// TestHistoryFromOtherService checks that a session gives a service no signatures of another service whose model has
// the same name. The scripted model refuses such signatures.
func TestHistoryFromOtherService(t *testing.T) {
	lookup := define[place, any]("lookup", "Looks it up.")
	p := newScript(call("lookup", map[string]any{"city": "Oslo"}), say("One."), say("Two."))
	p.Become("gemini", "gemini-a")
	a := newAgent(t, countersign.Options{Provider: p, Tools: []*countersign.Tool{lookup}})
	s := a.NewSession()
	if _, err := s.Send(t.Context(), "Look it up."); err != nil {
		t.Fatal(err)
	}
	p.Become("vertex", "gemini-a")
	if res, err := s.Send(t.Context(), "Again."); err != nil || res.Text != "Two." {
		t.Errorf("%+v, %v; want res.Text “Two.”", res, err)
	}
}
