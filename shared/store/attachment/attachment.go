// Package attachment stores the files of a prompt in documents beside the run's document. The commit that creates the
// run creates these documents too, so a run always has its files, and a file always has a run that leads to it. A file
// that was uploaded before ([Upload]) has its bytes in an object instead, and a document that leads to the object.
package attachment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Limits of the files of one prompt. In base64, MaxBytes is two thirds of store.MaxCommit. The other third is for the
// documents of the run, its thread and its user.
const (
	MaxFiles = 16
	MaxBytes = 1536 << 10 // bytes of all files
	maxPart  = 600 << 10  // bytes of one part, below store.MaxDoc in base64

	// MaxParts is the maximum number of documents of one run's files: those of the user, and those in the answers of
	// the model and the results of tools. Both have at most MaxFiles files.
	MaxParts = 2*MaxFiles + (MaxBytes+MaxUpload)/maxPart
)

// File is a file with its content.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"` // MIME type
	Data []byte `json:"data"`
	// LocationRemoved means that Data is a picture without the place that its EXIF or XMP data named.
	LocationRemoved bool `json:"locationRemoved,omitempty"`

	Tool   string  `json:"-"` // see Facts
	FileID string  `json:"-"` // of an uploaded file; Data is then nil until it was read
	upload *Upload // of an uploaded file
}

// Facts describe a file to people and in later prompts, without its content.
type Facts struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Size   int    `json:"size"` // bytes
	SHA256 string `json:"sha256"`
	// LocationRemoved means that the file was stored, and is sent on, without the place where the picture was taken.
	LocationRemoved bool   `json:"locationRemoved,omitempty"`
	FileID          string `json:"fileId,omitempty"` // of an uploaded file
	// Number is the number under which a file of a model's answer, or of a tool's result, is read. The files of a
	// prompt are numbered from 1.
	Number int    `json:"number,omitempty"`
	Tool   string `json:"tool,omitempty"` // name of the tool whose result has the file
}

// firstMade is added to the first part's number of a file in an answer, so that its number is no number of a prompt's
// file.
const firstMade = MaxFiles

// Made returns the descriptions of files of answers and results with their numbers.
func Made(files []Stored) (all []Facts) {
	for _, f := range files {
		f.Number = firstMade + f.First
		all = append(all, f.Facts)
	}
	return all
}

// Numbered returns the file with the number: one of a prompt, or one of the answers and results ([Made]).
func Numbered(prompt, made []Stored, number int) (Stored, bool) {
	if number >= 1 && number <= len(prompt) {
		return prompt[number-1], true
	}
	at := slices.IndexFunc(made, func(f Stored) bool { return firstMade+f.First == number })
	if at < 0 {
		return Stored{}, false
	}
	return made[at], true
}

// Stored describes a stored file.
type Stored struct {
	Facts
	First int `json:"first"` // number of the file's first part among the parts of the run, from 1
	Parts int `json:"parts"`
}

// ErrGone means that the file was deleted, or that it belongs to another user.
var ErrGone = errors.New("attachment: the file is missing")

// part is the content of a document.
type part struct {
	UID  string  `json:"uid"`
	File *Stored `json:"file,omitempty"` // in the first part of a file
	Data []byte  `json:"data"`

	Object string `json:"object,omitempty"` // has the bytes of an uploaded file
}

// Describe returns the description of each file in its stored form, after the files that the run has already.
func Describe(files []File, had ...Stored) (all []Stored) {
	var facts []Facts
	for _, f := range files {
		facts = append(facts, factsOf(f))
	}
	return storedAfter(Count(had), facts)
}

func factsOf(f File) Facts {
	if u := f.upload; u != nil {
		facts := u.Facts
		facts.Name, facts.Tool = f.Name, f.Tool
		return facts
	}
	if f.FileID != "" { // not read yet
		return Facts{Name: f.Name, FileID: f.FileID}
	}
	sum := sha256.Sum256(f.Data)
	return Facts{Name: f.Name, Type: f.Type, Size: len(f.Data), SHA256: hex.EncodeToString(sum[:]),
		LocationRemoved: f.LocationRemoved, Tool: f.Tool}
}

// StoredOf returns the description, in its stored form, of each file of a prompt or an answer with these files.
func StoredOf(files []Facts) []Stored {
	all := storedAfter(0, files)
	for i, f := range all {
		if f.Number > firstMade {
			all[i].First = f.Number - firstMade
		}
	}
	return all
}

func storedAfter(parts int, files []Facts) (all []Stored) {
	next := parts + 1
	for _, f := range files {
		parts := max(1, (f.Size+maxPart-1)/maxPart)
		if f.FileID != "" {
			parts = 1
		}
		all = append(all, Stored{f, next, parts})
		next += parts
	}
	return all
}

// CheckSizes checks the number of files, and the size of those that are not uploaded. The error has the field.
func CheckSizes(field string, files []Facts) error {
	size := 0
	for _, f := range files {
		if f.FileID == "" {
			size += f.Size
		}
	}
	switch {
	case len(files) > MaxFiles:
		return fault.Invalid(field, "%d files; the limit is %d", len(files), MaxFiles)
	case size > MaxBytes:
		return fault.Invalid(field, "%d bytes in all; the limit is %d", size, MaxBytes)
	}
	return nil
}

// Same reports whether the files are those that were stored. An uploaded file without a name keeps the name of its
// upload.
func Same(stored []Stored, files []File) bool {
	return slices.EqualFunc(stored, Describe(files), func(a, b Stored) bool {
		if b.FileID != "" {
			return a.FileID == b.FileID && (b.Name == "" || a.Name == b.Name)
		}
		return a.FileID == "" && a.Name == b.Name && a.SHA256 == b.SHA256
	})
}

// FactsOf returns the facts about each file.
func FactsOf(files []Stored) (all []Facts) {
	for _, f := range files {
		all = append(all, f.Facts)
	}
	return all
}

// Documents returns the content of each document of the run's files, by path. stored describes them.
func Documents(uid, runID string, files []File, stored []Stored) map[string]any {
	docs := map[string]any{}
	for i, s := range stored {
		rest, head := files[i].Data, &s
		if u := files[i].upload; u != nil {
			docs[document.FilePath(runID, s.First)] = part{UID: uid, File: head, Object: u.Object}
			continue
		}
		for n := range s.Parts {
			size := min(len(rest), maxPart)
			docs[document.FilePath(runID, s.First+n)] = part{UID: uid, File: head, Data: rest[:size]}
			rest, head = rest[size:], nil
		}
	}
	return docs
}

// Paths returns the paths of the first n documents of the run's files.
func Paths(runID string, n int) (all []string) {
	for i := range n {
		all = append(all, document.FilePath(runID, i+1))
	}
	return all
}

// Count returns the number of documents of the files.
func Count(files []Stored) (n int) {
	for _, f := range files {
		n += f.Parts
	}
	return n
}

// Read returns a file of the user from the store. The error is [ErrGone], the store's, or reports documents that do not
// hold the file's bytes. An uploaded file has no bytes until [File.Fill].
func Read(ctx context.Context, st store.Store, uid string, ref Ref) (*File, error) {
	docs, err := st.Get(ctx, ref.Paths()...)
	if err != nil {
		return nil, err
	}
	parts := make([]json.RawMessage, len(docs))
	for i, d := range docs {
		if d.Exists() {
			parts[i] = d.Data
		}
	}
	return Join(uid, parts)
}

// Join returns the user's file with these documents. A missing document is nil. The error is [ErrGone], or reports
// documents that do not hold the file's bytes. An uploaded file has no bytes until [File.Fill].
func Join(uid string, docs []json.RawMessage) (*File, error) {
	var f File
	var head *Stored
	for i, raw := range docs {
		if raw == nil {
			return nil, ErrGone
		}
		var p part
		if err := strictjson.Decode(raw, &p); err != nil {
			return nil, fmt.Errorf("attachment: part %d cannot be read: %w", i+1, err)
		}
		if p.UID != uid {
			return nil, ErrGone
		}
		if i == 0 {
			head = p.File
		}
		if head != nil && head.FileID != "" {
			u := Upload{UID: uid, Facts: head.Facts, Object: p.Object}
			f = u.File(head.Name)
			f.Tool = head.Tool
			return &f, nil
		}
		f.Data = slices.Concat(f.Data, p.Data)
	}
	if sum := sha256.Sum256(f.Data); head == nil || hex.EncodeToString(sum[:]) != head.SHA256 {
		return nil, errors.New("attachment: the stored bytes differ from the file")
	}
	f.Name, f.Type, f.LocationRemoved, f.Tool = head.Name, head.Type, head.LocationRemoved, head.Tool
	return &f, nil
}
