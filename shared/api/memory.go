package api

import (
	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// getMemory returns the user's notes and preferences.
func getMemory(r *request) (any, error) {
	notes, set, err := r.api.Records.Memory(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Notes       []run.Note     `json:"notes"`
		Preferences preference.Set `json:"preferences"`
	}{ok{true}, notes, set}, nil
}

// patchMemory replaces the user's preferences.
func patchMemory(r *request) (any, error) {
	var in struct {
		Preferences *preference.Set `json:"preferences"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if in.Preferences == nil {
		return nil, fault.Invalid("preferences", "the preferences are required")
	}
	ctx, cancel := r.working()
	defer cancel()
	set, err := r.api.Records.SetPreferences(ctx, r.uid, *in.Preferences)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Preferences preference.Set `json:"preferences"`
	}{ok{true}, set}, nil
}

// patchNote replaces the text of a note. With was, the note must still have that text.
func patchNote(r *request) (any, error) {
	id, err := r.id("noteId")
	if err != nil {
		return nil, err
	}
	var in struct {
		Text *string `json:"text"`
		Was  string  `json:"was"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if in.Text == nil {
		return nil, fault.Invalid("text", "a text is required")
	}
	ctx, cancel := r.working()
	defer cancel()
	note, err := r.api.Records.EditNote(ctx, r.uid, id, in.Was, *in.Text)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Note run.Note `json:"note"`
	}{ok{true}, note}, nil
}

func deleteNote(r *request) (any, error) {
	id, err := r.id("noteId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	return ok{true}, r.api.Records.DeleteNote(ctx, r.uid, id)
}
