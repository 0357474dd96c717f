// Package memory has the tools with which the assistant keeps notes about its user for later conversations: remember
// adds one, and forget deletes one. Both ask, unless the user always allows it. A permission in advance does not apply
// once the model has read text from strangers (tool.Spec.Lasting), and the card names that text.
package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/store"
)

// The names of the tools.
const (
	Remember = "remember"
	Forget   = "forget"
)

// Names are the names of all tools of this package.
var Names = []string{Remember, Forget}

// RuleAsks is the ID of the rule for every call. The audit stores it, so do not rename it.
const RuleAsks = "memory_asks"

// CodeChanged is the error code of a deletion if the note has changed since the card showed it.
const CodeChanged fault.Code = "note_changed"

// New returns the tools. With a nil store, as in a check of names, they cannot be called.
func New(st store.Store) tool.Set {
	k := noteStore{st}
	return tool.NewSet(k.remember(), k.forget())
}

// noteStore stores users' notes.
type noteStore struct{ store store.Store }

type fact struct {
	Text string `json:"text" jsonschema:"one fact about the user, in one sentence and in the user's language"`
}

type kept struct {
	ID string `json:"id"`
}

func (k noteStore) remember() *tool.Tool {
	return tool.Define(tool.Def[fact, kept]{
		Name: Remember,
		Description: "Keeps one short fact about the user for later conversations, such as a preference. The user " +
			"sees it first, and can edit and delete it. Never for passwords or other secrets.",
		SideEffect: true,
		Lasting:    true,
		Refine: func(s *jsonschema.Schema) {
			text := s.Properties["text"]
			text.MinLength, text.MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(run.MaxNote)
		},
		Normalize: func(f fact) (fact, error) {
			text, err := run.NoteText(f.Text)
			return fact{text}, err
		},
		Complete: k.fits,
		Preview: func(f fact) tool.Preview {
			p := tool.Preview{Title: "Remember a note"}
			p.AddText("Text", f.Text)
			return p
		},
		Summary:   func(f fact) string { return "Noted: " + line(f.Text) },
		Rule:      asks[fact](Remember, "Remember notes about you, whatever they say"),
		Execute:   k.add,
		Reconcile: k.added,
		LookUp:    k.added, // the notes were restored with the run
	})
}

// fits returns an error if the note has no place, so that the user is not asked in vain.
func (k noteStore) fits(ctx context.Context, c tool.Call, f fact) (fact, error) {
	b, err := Read(ctx, k.store, c.UID)
	if err == nil {
		err = b.Room(f.Text)
	}
	return f, readable(err)
}

// added reports whether the call has added its note.
func (k noteStore) added(ctx context.Context, c tool.Call, _ fact) (tool.Verdict, kept, string, error) {
	id := run.NoteID(c.ActionID)
	v, err := k.found(ctx, c, func(b *Book) bool { return b.Settled(id) })
	return v, kept{id}, "", err
}

// add adds the note. A repeated call adds no second one, and does not restore a note that was deleted since.
func (k noteStore) add(ctx context.Context, c tool.Call, f fact) (kept, error) {
	n := run.Note{ID: run.NoteID(c.ActionID), Text: f.Text, CreatedAt: c.Since.UTC(), After: c.After}
	err := update(ctx, k.store, c.UID, func(b *Book) (bool, error) { return !b.Settled(n.ID), b.Add(n) })
	return kept{n.ID}, again(err)
}

type note struct {
	ID string `json:"id" jsonschema:"the id of the note"`
	// Text is the text that the server adds for the card.
	Text string `json:"text,omitempty" jsonschema:"the text of the note; leave it out"`
}

type gone struct {
	Deleted bool `json:"deleted"` // false: the user had deleted it already
}

func (k noteStore) forget() *tool.Tool {
	return tool.Define(tool.Def[note, gone]{
		Name:        Forget,
		Description: "Deletes one of the user's notes, by its id. The user sees the note first.",
		SideEffect:  true,
		Lasting:     true,
		Refine: func(s *jsonschema.Schema) {
			s.Properties["id"].Pattern = "^[0-9a-f]{16}$"
			s.Properties["text"].MaxLength = jsonschema.Ptr(run.MaxNote)
		},
		Complete: k.find,
		Bare:     func(n note) note { return note{ID: n.ID} },
		Preview: func(n note) tool.Preview {
			p := tool.Preview{Title: "Delete a note"}
			p.AddText("Text", n.Text)
			return p
		},
		Summary:   func(n note) string { return "Deleted the note: " + line(n.Text) },
		Rule:      asks[note](Forget, "Delete notes about you"),
		Execute:   k.remove,
		Reconcile: k.removed,
		LookUp:    k.removed,
	})
}

// find adds the note's text for the card.
func (k noteStore) find(ctx context.Context, c tool.Call, n note) (note, error) {
	b, err := Read(ctx, k.store, c.UID)
	if err != nil {
		return n, readable(err)
	}
	known := b.Note(n.ID)
	if known == nil {
		return n, fault.Invalid("id", "no note has this ID")
	}
	return note{n.ID, known.Text}, nil
}

// remove deletes the note if it still is as the card showed it.
func (k noteStore) remove(ctx context.Context, c tool.Call, n note) (out gone, err error) {
	err = update(ctx, k.store, c.UID, func(b *Book) (bool, error) {
		if known := b.Note(n.ID); known != nil && known.Text != n.Text {
			return false, fault.New(fault.Policy, CodeChanged,
				"The note has changed in the meantime, so it was not deleted.")
		}
		out.Deleted = b.Forget(n.ID)
		return out.Deleted, nil
	})
	return out, again(err)
}

// removed reports whether the note is gone.
func (k noteStore) removed(ctx context.Context, c tool.Call, n note) (tool.Verdict, gone, string, error) {
	v, err := k.found(ctx, c, func(b *Book) bool { return b.Note(n.ID) == nil })
	return v, gone{true}, "", err
}

// found reports whether the notes show that the call was done. A call that is repeated changes nothing.
func (k noteStore) found(ctx context.Context, c tool.Call, done func(*Book) bool) (tool.Verdict, error) {
	b, err := Read(ctx, k.store, c.UID)
	switch {
	case err != nil:
		return "", again(readable(err))
	case done(b):
		return tool.Done, nil
	}
	return tool.NotDone, nil
}

// asks returns the rule for a tool's calls: the user is asked, and can always allow the tool.
func asks[In any](name, shown string) func(context.Context, tool.Call, In) (tool.CallPolicy, error) {
	return func(context.Context, tool.Call, In) (tool.CallPolicy, error) {
		return tool.CallPolicy{Class: tool.ClassChange, Mode: tool.RuleAsk, ID: RuleAsks,
			Reason: "It counts in all later conversations, so it needs your approval.",
			Always: &tool.Always{Key: name, Whole: true, Shown: shown +
				". You are still asked once the assistant has read text from others"}}, nil
	}
}

// again makes an error of the store one after which the call can be repeated.
func again(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.CodeStoreUnavailable {
		return tool.Transient(err)
	}
	return err
}

func line(text string) string {
	shown, _ := visible.Line(text)
	return fmt.Sprintf("“%s”.", shown)
}
