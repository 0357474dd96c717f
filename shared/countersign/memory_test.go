package countersign_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/agenttest"
	"github.com/countersign-run/countersign/shared/store/embedded"
)

// TestPreferences sets a user's preferences. Another agent of the store reads them, also inside a tool; another user
// has none; a wrong or outdated value changes nothing.
func TestPreferences(t *testing.T) {
	st, err := embedded.OpenMemory(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	agent := agenttest.New(t, countersign.Options{Provider: newScript(), Store: st})
	given := countersign.Preferences{Language: "pt-br", MeetingMinutes: 25, Signature: "Ana <3 \"Zoë\"\r\n& co. ",
		WorkingHours: &countersign.WorkingHours{Days: []string{"fri", "mon"}, From: "09:00", To: "17:30",
			TimeZone: "Europe/Berlin"}}
	set, err := agent.SetPreferences(t.Context(), given)
	if err != nil || set.Language != "pt-BR" || set.Signature != "Ana <3 \"Zoë\"\n& co." || set.UpdatedAt.IsZero() ||
		!slices.Equal(set.WorkingHours.Days, []string{"mon", "fri"}) {
		t.Fatalf("%+v %v", set, err)
	}
	if h := set.WorkingHours; !h.Contain(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC),
		time.Date(2027, 3, 1, 16, 30, 0, 0, time.UTC)) ||
		h.Contain(time.Date(2027, 3, 2, 8, 0, 0, 0, time.UTC), time.Date(2027, 3, 2, 9, 0, 0, 0, time.UTC)) {
		t.Errorf("the hours are %+v", h)
	}
	var read countersign.Preferences
	reads := countersign.DefineTool(countersign.ToolConfig{Name: "get_weather", Description: "The weather."},
		func(ctx context.Context, s *countersign.SessionContext, _ struct{}) (out struct{}, err error) {
			read, err = s.Agent.Preferences(ctx)
			return out, err
		})
	other := agenttest.New(t, countersign.Options{Name: "other", Store: st, Tools: []*countersign.Tool{reads},
		Provider: newScript(call("get_weather", map[string]any{}), say("Done."))})
	if _, err := other.NewSession().Send(t.Context(), "go"); err != nil || read.Signature != set.Signature {
		t.Errorf("the tool reads %+v, %v; want %+v", read, err, set)
	}
	if p, err := agent.As("bob").Preferences(t.Context()); err != nil || p != (countersign.Preferences{}) {
		t.Errorf("another user has %+v, %v", p, err)
	}
	for field, wrong := range map[string]countersign.Preferences{
		"language":       {Language: "german", UpdatedAt: set.UpdatedAt},
		"meetingMinutes": {MeetingMinutes: -1, UpdatedAt: set.UpdatedAt},
		"signature":      {Signature: strings.Repeat("x", 1001), UpdatedAt: set.UpdatedAt},
		"workingHours/timeZone": {WorkingHours: &countersign.WorkingHours{Days: []string{"mon"}, From: "09:00",
			To: "10:00"}},
	} {
		var e *countersign.Error
		if _, err := agent.SetPreferences(t.Context(), wrong); !errors.As(err, &e) || e.Field != field ||
			e.Class != countersign.ClassValidation {
			t.Errorf("%s: %v", field, err)
		}
	}
	var e *countersign.Error
	given.MeetingMinutes = 5
	if _, err := agent.SetPreferences(t.Context(), given); !errors.As(err, &e) || e.Code != "stale_view" ||
		e.Class != countersign.ClassPolicy {
		t.Errorf("outdated preferences: %v; want a %s", err, countersign.ClassPolicy)
	}
	if p, err := agent.Preferences(t.Context()); err != nil || p.Signature != set.Signature {
		t.Errorf("they became %+v, %v", p, err)
	}
}

// TestNotes remembers a note after an approval. The model of a later session reads it before the prompt; its user edits
// and deletes it; another user has none.
func TestNotes(t *testing.T) {
	m := newScript(call("remember", map[string]any{"text": "Ana's  office is in Aarhus."}), say("Noted."),
		say("Aarhus."), say("I do not know."))
	var asked []string
	agent := agenttest.New(t, countersign.Options{Provider: m, Memory: true,
		Approve: func(_ context.Context, a countersign.Approval) (countersign.Decision, error) {
			asked = append(asked, a.Tool+": "+a.Preview.Title)
			return countersign.Yes(), nil
		}})
	send := func(prompt string) model.Request {
		t.Helper()
		if _, err := agent.NewSession().Send(t.Context(), prompt); err != nil {
			t.Fatal(err)
		}
		all := m.Requests()
		return all[len(all)-1]
	}
	send("my office is in Aarhus")
	if !slices.Equal(asked, []string{"remember: Remember a note"}) {
		t.Errorf("asked %v", asked)
	}
	notes, err := agent.Notes(t.Context())
	if err != nil || len(notes) != 1 || notes[0].Text != "Ana's office is in Aarhus." || notes[0].CreatedAt.IsZero() {
		t.Fatalf("%+v %v; want one note", notes, err)
	}
	edited, err := agent.EditNote(t.Context(), notes[0].ID, "Ana moved to Odense.")
	if err != nil || edited.Text != "Ana moved to Odense." || edited.EditedAt.IsZero() {
		t.Errorf("%+v %v", edited, err)
	}
	if r := send("where is my office?"); !strings.Contains(string(r.Contents[0]), "Ana moved to Odense.") ||
		!strings.HasSuffix(string(r.Contents[0]), `{"text":"where is my office?"}]}`) {
		t.Errorf("the model reads %s", r.Contents)
	}
	for one, err := range agent.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := agent.Resume(t.Context(), one.SessionID)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := s.Messages(t.Context())
		if b, _ := json.Marshal(messages); err != nil || strings.Contains(string(b), "the user did not write it") {
			t.Errorf("the session has %s, %v", b, err)
		}
	}
	if notes, err := agent.As("bob").Notes(t.Context()); err != nil || len(notes) > 0 {
		t.Errorf("another user has %v, %v", notes, err)
	}
	if err := agent.As("bob").DeleteNote(t.Context(), edited.ID); err == nil {
		t.Error("another user deletes the note")
	}
	if err := agent.DeleteNote(t.Context(), edited.ID); err != nil {
		t.Error(err)
	}
	if r := send("and now?"); strings.Contains(string(r.Contents[0]), "Odense") {
		t.Errorf("the model reads %s", r.Contents)
	}
}
