package countersign

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	memorytools "github.com/countersign-run/countersign/shared/tools/memory"
)

// Preferences are what a user has set for all agents of a store. A deployment's tools for mail and calendar follow
// them. In a program, tools and Options.InstructionsFunc read them with [Agent.Preferences] of SessionContext.Agent; a
// model sees only what they pass on.
type Preferences struct {
	Language       string        // BCP 47, such as pt-BR
	MeetingMinutes int           // length of an event without an end, 1 to 1440; 0: not set
	Signature      string        // the end of each e-mail, at most 1000 characters
	WorkingHours   *WorkingHours // nil: not set
	UpdatedAt      time.Time     // when they were last changed
}

// WorkingHours are the same hours on some days of the week.
type WorkingHours struct {
	Days     []string // of mon, tue, wed, thu, fri, sat and sun
	From     string   // 09:00
	To       string   // 17:30; later than From, up to 24:00
	TimeZone string   // Europe/Berlin
}

// Contain reports whether the whole time is within the working hours of one day.
func (w WorkingHours) Contain(start, end time.Time) bool {
	return preference.WorkingHours(w).Contain(start, end)
}

// Preferences returns what the agent's user has set.
func (a *Agent) Preferences(ctx context.Context) (Preferences, error) {
	_, set, err := a.remembered(ctx)
	return preferencesOf(set), err
}

// SetPreferences replaces the preferences of the agent's user, and returns them in their normal form. UpdatedAt must be
// the time that [Agent.Preferences] returned: if they were changed since, they stay as they are, and the error has the
// code stale_view. If one is invalid, the error names it, and nothing changes.
func (a *Agent) SetPreferences(ctx context.Context, p Preferences) (Preferences, error) {
	if err := a.usable(); err != nil {
		return Preferences{}, err
	}
	set, err := a.core.records.SetPreferences(ctx, a.user, preference.Set{Language: p.Language,
		MeetingMinutes: p.MeetingMinutes, Signature: p.Signature,
		WorkingHours: (*preference.WorkingHours)(p.WorkingHours), UpdatedAt: p.UpdatedAt})
	if err != nil {
		return Preferences{}, public(err)
	}
	return preferencesOf(set), nil
}

func preferencesOf(s preference.Set) Preferences {
	return Preferences{s.Language, s.MeetingMinutes, s.Signature, (*WorkingHours)(s.WorkingHours), s.UpdatedAt}
}

// Note is a fact about a user that agents with Options.Memory remember in later sessions.
type Note struct {
	ID        string
	Text      string // on one line
	CreatedAt time.Time
	EditedAt  time.Time // when the user last wrote the text; zero: never
	// After is the origin of the first text of strangers that the model had read when it wrote the note. It is empty if
	// there was none, and once the user has written the text.
	After string
}

// Notes returns the notes about the agent's user, the oldest first.
func (a *Agent) Notes(ctx context.Context) ([]Note, error) {
	kept, _, err := a.remembered(ctx)
	var notes []Note
	for _, n := range kept {
		notes = append(notes, Note(n))
	}
	return notes, err
}

// EditNote replaces the text of a note with the user's own words, at most 300 characters.
func (a *Agent) EditNote(ctx context.Context, id, text string) (Note, error) {
	if err := a.usable(); err != nil {
		return Note{}, err
	}
	n, err := a.core.records.EditNote(ctx, a.user, id, "", text)
	return Note(n), public(err)
}

// DeleteNote deletes a note. Sessions whose model has seen it keep it until they are deleted.
func (a *Agent) DeleteNote(ctx context.Context, id string) error {
	if err := a.usable(); err != nil {
		return err
	}
	return public(a.core.records.DeleteNote(ctx, a.user, id))
}

func (a *Agent) remembered(ctx context.Context) ([]run.Note, preference.Set, error) {
	if err := a.usable(); err != nil {
		return nil, preference.Set{}, err
	}
	notes, set, err := a.core.records.Memory(ctx, a.user)
	return notes, set, public(err)
}

// setMemory adds the tools for notes.
func (c *core) setMemory() error {
	if !c.options.Memory {
		return nil
	}
	for name, t := range memorytools.New(c.store) {
		if c.tools[name] != nil {
			return fault.Invalid("Memory", "Tools has a tool %q as well", name)
		}
		c.tools[name] = c.hooked(t)
	}
	return nil
}
