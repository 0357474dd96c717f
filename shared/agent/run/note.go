package run

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Limits of a user's notes.
const (
	MaxNotes     = 200
	MaxNote      = 300      // characters of one note
	maxMemory    = 64 << 10 // bytes of all notes, because each run stores those that its model sees
	maxForgotten = MaxNotes
)

// A Note is a fact about a user that the assistant remembers in later conversations.
type Note struct {
	ID        string    `json:"id"`
	Text      string    `json:"text"` // on one line
	CreatedAt time.Time `json:"createdAt"`
	EditedAt  time.Time `json:"editedAt,omitzero"` // when the user last wrote the text
	// After is the origin of the first text of strangers that the model had read when it wrote the note. It is empty if
	// there was none, and once the user has written the text.
	After string `json:"after,omitempty"`
}

// Memory is the stored document of a user's notes.
type Memory struct {
	UID       string   `json:"uid"`
	Notes     []Note   `json:"notes,omitempty"`     // the oldest first
	Forgotten []string `json:"forgotten,omitempty"` // IDs of deleted notes, which no late call restores
}

// NoteID returns the ID of the note that an action adds.
func NoteID(actionID string) string {
	sum := sha256.Sum256([]byte("note\x00" + actionID))
	return hex.EncodeToString(sum[:8])
}

// NoteText returns the text of a note on one line. The error is a ValidationError.
func NoteText(text string) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	if visible.Blank(text) {
		return "", fault.Invalid("text", "a text is required")
	}
	if n := utf8.RuneCountInString(text); n > MaxNote {
		return "", fault.Invalid("text", "%d characters; the limit is %d", n, MaxNote)
	}
	return text, nil
}

// Note returns the note with the ID, or nil.
func (m *Memory) Note(id string) *Note {
	if i := m.index(id); i >= 0 {
		return &m.Notes[i]
	}
	return nil
}

func (m *Memory) index(id string) int {
	return slices.IndexFunc(m.Notes, func(n Note) bool { return n.ID == id })
}

// Room returns an error if the memory has no room for the text, or has it already.
func (m *Memory) Room(text string) error {
	size := len(text)
	for _, n := range m.Notes {
		if n.Text == text {
			return fault.New(fault.Policy, fault.CodeNotApplicable, "This note already exists.")
		}
		size += len(n.Text)
	}
	if len(m.Notes) >= MaxNotes || size > maxMemory {
		return fault.New(fault.Policy, fault.CodeNotApplicable,
			"There is no room for another note: %d notes; the limits are %d notes and %d bytes in all. Delete some "+
				"first.", len(m.Notes), MaxNotes, maxMemory)
	}
	return nil
}

// Settled reports whether a note with the ID was added before. It may have been deleted since.
func (m *Memory) Settled(id string) bool { return m.index(id) >= 0 || slices.Contains(m.Forgotten, id) }

// Add adds a note, unless it was added before.
func (m *Memory) Add(n Note) error {
	if m.Settled(n.ID) {
		return nil
	}
	if err := m.Room(n.Text); err != nil {
		return err
	}
	m.Notes = append(m.Notes, n)
	return nil
}

// Edit replaces the text of a note with the user's own words.
func (m *Memory) Edit(id, text string, now time.Time) error {
	i := m.index(id)
	if i < 0 {
		return fault.NotFound()
	}
	others := Memory{Notes: slices.Delete(slices.Clone(m.Notes), i, i+1)}
	if err := others.Room(text); err != nil {
		return err
	}
	m.Notes[i].Text, m.Notes[i].EditedAt, m.Notes[i].After = text, now, ""
	return nil
}

// Forget deletes a note, and reports whether there was one.
func (m *Memory) Forget(id string) bool {
	i := m.index(id)
	if i < 0 {
		return false
	}
	m.Notes = slices.Delete(m.Notes, i, i+1)
	m.Forgotten = append(m.Forgotten, id)
	m.Forgotten = m.Forgotten[max(0, len(m.Forgotten)-maxForgotten):]
	return true
}
